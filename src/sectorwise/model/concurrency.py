"""Turns a warp's schedule and the warps of an SM into bytes in flight over time, and those into bandwidth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.device import require_capability
from sectorwise.errors import ArgumentError
from sectorwise.model.latency import describe_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.device import DeviceSpec
    from sectorwise.model.latency import MemoryModel
    from sectorwise.model.schedule import Access, Schedule, Slot

    Times = npt.NDArray[np.float64]

_SCOREBOARDS = 6
_WARPS_SAMPLED = 512
_PASSES_SKIPPED = 4
_PASSES_COUNTED = 12
_BUSIEST = 0.9999
_BUSY_ENOUGH = 0.9
_MOST_TRIALS = 30
_SOLVED = 2e-5


class Bound(StrEnum):
    """What sets the pace: schedulers without a gap, a memory that is busy 90 % of its time, else the wait for data.

    Or `OTHER` work of the launch that takes longer than its loads: arithmetic, passes of L1, the L2, atomics.
    """

    LATENCY = "latency"
    MEMORY = "memory"
    ISSUE = "issue"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How much of its memory traffic a kernel keeps in flight, averaged over time, and the bandwidth that it gives.

    `requested_bytes_per_sm` is what the resident warps ask for in one pass of the loop, the naive figure;
    `in_flight_bytes_per_sm` what is outstanding on average, less because a burst drains before the next begins;
    `needed_bytes_per_sm` what keeps the memory 95 % busy. `pass_ns` is the time of one pass, `walk_ns` that of a warp
    to which every issue slot is free. `latency_ns` is the mean of a load under this load of the memory, of which
    `queued_ns` is waiting; `memory_busy` the busy part of the memory's time. Before an idle memory, as the last warps of a
    launch find it, passes of a warp are `spread_ns` apart (one standard deviation; of the sum of n passes, sqrt n times
    as much), and the slowest of one pass of all warps of the device is `slowest_ns` above the mean. `assumed` says which
    numbers of the device were borrowed or guessed; empty: all measured on it.
    """

    device: str
    warps_per_sm: int
    sm_count: int
    requested_bytes_per_sm: float
    in_flight_bytes_per_sm: float
    needed_bytes_per_sm: float
    pass_ns: float
    walk_ns: float
    latency_ns: float
    queued_ns: float
    memory_busy: float
    dram_gbs: float
    load_gbs: float
    bound: Bound
    spread_ns: float
    slowest_ns: float
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Draws:
    """Random numbers of one load in every pass, the same for every trial load of the memory: results stay smooth.

    Each is of shape (passes, blocks, warps of a block). `idle_ns` is the latency of an idle DRAM, `waits` the wait in
    its queue, in units of the mean wait; `level` says where the data are found.
    """

    access: Access
    idle_ns: Times
    waits: Times
    level: Times


@dataclass(frozen=True, slots=True)
class _Issue:
    """What issuing one slot does; what would change nothing is left out.

    `waits_for` are the scoreboards that may be set later than now; `sets` and `frees` are scoreboards, with whether
    what they are set to is certainly later than what they are at.
    """

    waits_for: tuple[int, ...]
    is_block_barrier: bool
    load: int | None
    sets: tuple[int, bool] | None
    frees: tuple[int, bool] | None
    stall_cycles: int


@dataclass(frozen=True, slots=True)
class _Walk:
    """Means over the sampled warps: cycles of a pass, latency of a load, and the product of bytes and latency.

    And when each pass of each warp ends, float64 [passes + 1, blocks, warps of a block].
    """

    pass_cycles: float
    latency_cycles: float
    byte_cycles: float
    ends: Times


def estimate_concurrency(
    schedule: Schedule,
    warps_per_sm: int,
    device: DeviceSpec,
    *,
    warps_per_block: int = 1,
    sm_count: int | None = None,
    pipe_cycles: float = 0.0,
    share: float = 1.0,
) -> Concurrency:
    """Bytes in flight and bandwidth of `warps_per_sm` warps on each of `sm_count` SMs (all, if None).

    Warps walk their schedule in order, stalling as its control fields say, with latencies drawn from the device's; all
    SMs together load the memory, whose latency grows with the load: the two are solved for each other. The clock is
    the device's boost clock. Warps wait for each other at block barriers only. `pipe_cycles` is what all resident warps
    together take of an SM's busiest pipe in one pass: a pass takes as long at least. `share` is the part of
    `warps_per_sm` that an SM holds in the mean over the SMs, where some hold a block less.
    """
    if warps_per_sm < 1 or warps_per_sm % warps_per_block:
        raise ArgumentError(f"{warps_per_sm} resident warps are no whole number of blocks of {warps_per_block}")
    memory = describe_memory(device)
    capability = require_capability(device)
    sms = sm_count or device.sm_count
    draws = _draw(schedule, warps_per_block, memory)
    issues = _list_issues(_merge_plain(schedule, memory.taken_branch_cycles))
    shape = (max(1, _WARPS_SAMPLED // warps_per_block), warps_per_block)
    issue_cycles = max(-(-warps_per_sm // capability.sub_partitions) * len(schedule.slots), pipe_cycles)
    cycles_per_ns, written_share = device.boost_mhz / 1000, schedule.written_share

    @cache
    def load_memory(busy: float) -> tuple[_Walk, float, float]:
        wait_ns = memory.wait_ns(busy, written_share)
        latencies = [_draw_latencies(draw, memory, wait_ns) * cycles_per_ns for draw in draws]
        walk = _walk(issues, shape, latencies, memory.l1_hit_ns * cycles_per_ns, draws)
        pass_ns = max(walk.pass_cycles, issue_cycles) / cycles_per_ns
        return walk, pass_ns, share * sms * warps_per_sm * schedule.dram_bytes / pass_ns

    busy = _solve(lambda trial: load_memory(trial)[2] / memory.ceiling_gbs) if schedule.dram_bytes else 0.0
    walk, pass_ns, dram_gbs = load_memory(busy)
    alone = [_draw_latencies(draw, memory, 0.0, in_step=True) * cycles_per_ns for draw in draws]
    ends = _walk(issues, shape, alone, memory.l1_hit_ns * cycles_per_ns, draws).ends
    passes = np.diff(ends, axis=0) / cycles_per_ns
    bound = Bound.MEMORY if busy >= _BUSY_ENOUGH else Bound.LATENCY
    if issue_cycles >= walk.pass_cycles:
        bound = Bound.ISSUE
    return Concurrency(
        device=device.id,
        warps_per_sm=warps_per_sm,
        sm_count=sms,
        requested_bytes_per_sm=share * warps_per_sm * schedule.load_bytes,
        in_flight_bytes_per_sm=share * warps_per_sm * walk.byte_cycles / (pass_ns * cycles_per_ns),
        needed_bytes_per_sm=memory.needed_bytes(0.95) / device.sm_count,
        pass_ns=pass_ns,
        walk_ns=walk.pass_cycles / cycles_per_ns,
        latency_ns=walk.latency_cycles / cycles_per_ns,
        queued_ns=memory.wait_ns(busy, written_share),
        memory_busy=busy,
        dram_gbs=dram_gbs,
        load_gbs=share * sms * warps_per_sm * schedule.load_bytes / pass_ns,
        bound=bound,
        spread_ns=float(passes.sum(axis=0).std()) / _PASSES_COUNTED**0.5,
        slowest_ns=float(np.quantile(passes, 1 - 1 / max(2, warps_per_sm * sms)) - passes.mean()),
        assumed=memory.assumed,
    )


def _draw(schedule: Schedule, warps_per_block: int, memory: MemoryModel) -> list[_Draws]:
    """What is random of each load of a pass."""
    generator = np.random.default_rng(0)
    loads = [slot.load for slot in schedule.slots if slot.load is not None]
    blocks = max(1, _WARPS_SAMPLED // warps_per_block)
    shape = (_PASSES_SKIPPED + _PASSES_COUNTED, len(loads), blocks, warps_per_block)
    idle, queued, level = (generator.random(shape) for _ in range(3))
    return [
        _Draws(
            access,
            memory.draw_idle_ns(idle[:, load], access.request_bytes / access.places, access.places),
            memory.draw_waits(queued[:, load], access.request_bytes / access.places, access.places),
            level[:, load],
        )
        for load, access in enumerate(loads)
    ]


def _list_issues(slots: Sequence[Slot]) -> list[_Issue]:
    """What a pass does, slot after slot.

    Time only goes on. So a scoreboard that was waited for is clear until it is set again, and what it is set to then is
    later than what it was at.
    """
    issues = []
    loads = 0
    # A pass begins as the one before left the scoreboards: all may be set.
    pending = set(range(_SCOREBOARDS))
    for slot in slots:
        waits_for = tuple(barrier for barrier in slot.waits_for if barrier in pending)
        pending -= set(slot.waits_for)
        sets, frees = slot.sets, slot.frees
        later = sets not in pending
        later_freed = frees not in pending and frees != sets
        pending |= {barrier for barrier in (sets, frees) if barrier is not None}
        issues.append(
            _Issue(
                waits_for,
                slot.is_block_barrier,
                loads if slot.load else None,
                None if sets is None else (sets, later),
                None if frees is None else (frees, later_freed),
                slot.stall_cycles,
            )
        )
        loads += slot.load is not None
    return issues


def _walk(
    issues: Sequence[_Issue],
    shape: tuple[int, int],
    latencies: Sequence[Times],
    short_cycles: float,
    draws: Sequence[_Draws],
) -> _Walk:
    """Let the sampled warps issue their schedule, pass after pass, with these latencies of each load, in cycles."""
    now = np.zeros(shape)
    clear = [np.zeros(shape) for _ in range(_SCOREBOARDS)]
    ends = []
    for one_pass in range(_PASSES_SKIPPED + _PASSES_COUNTED):
        if one_pass >= _PASSES_SKIPPED:
            ends.append(now)
        for issue in issues:
            result_cycles = short_cycles if issue.load is None else latencies[issue.load][one_pass]
            now = _issue(issue, now, clear, result_cycles, short_cycles)
    counted = [latency[_PASSES_SKIPPED:].mean() for latency in latencies]
    ends.append(now)
    return _Walk(
        pass_cycles=float((now - ends[0]).mean()) / _PASSES_COUNTED,
        latency_cycles=float(np.mean(counted)) if counted else 0.0,
        byte_cycles=float(sum(draw.access.request_bytes * mean for draw, mean in zip(draws, counted, strict=True))),
        ends=np.array(ends),
    )


def _issue(issue: _Issue, now: Times, clear: list[Times], result_cycles: Times | float, short_cycles: float) -> Times:
    """Issue one slot at `now` or later; `clear` (when each scoreboard is) is brought up to date. When the next may."""
    for barrier in issue.waits_for:
        now = np.maximum(now, clear[barrier])
    if issue.is_block_barrier:
        now = np.maximum(now, now.max(axis=-1, keepdims=True))
    for place, cycles in ((issue.sets, result_cycles), (issue.frees, short_cycles)):
        if place is not None:
            barrier, is_later = place
            done = now + cycles
            clear[barrier] = done if is_later else np.maximum(clear[barrier], done)
    return now + issue.stall_cycles


def _merge_plain(schedule: Schedule, taken_branch_cycles: int) -> tuple[Slot, ...]:
    """The same schedule with runs of slots that touch no scoreboard, memory or barrier added to the slot before."""
    merged: list[Slot] = []
    for slot in schedule.slots:
        stall = slot.stall_cycles
        if slot.branches and schedule.repeats:
            stall += taken_branch_cycles
        plain = not slot.waits_for and slot.sets is None and slot.frees is None
        plain = plain and slot.load is None and not slot.is_block_barrier
        if plain and merged:
            merged[-1] = replace(merged[-1], stall_cycles=merged[-1].stall_cycles + stall)
        else:
            merged.append(replace(slot, stall_cycles=stall))
    return tuple(merged)


def _draw_latencies(draws: _Draws, memory: MemoryModel, wait_ns: float, *, in_step: bool = False) -> Times:
    """Latencies in ns of one load in every pass, shape (passes, blocks, warps), by the mean wait in a queue.

    Who waits for what others asked for waits with them: `in_step` gives all of these the mean.
    """
    access = draws.access
    from_dram = draws.idle_ns + wait_ns * draws.waits
    if in_step and access.waiting_share:
        from_dram = np.where(draws.level < access.dram_share, from_dram, from_dram.mean())
    if access.dram_share >= 1:
        return from_dram
    from_l2 = np.where(draws.level < access.dram_share + access.l2_share, memory.l2_hit_ns, memory.l1_hit_ns)
    return np.where(draws.level < access.dram_share + access.waiting_share, from_dram, from_l2)


def _solve(demand: Callable[[float], float]) -> float:
    """The busy part of the memory's time at which what the warps demand is what it serves; demand falls with it.

    Regula falsi in the Illinois variant: an end that stays twice running counts half. It takes a handful of walks,
    where halving takes fourteen.
    """
    low, high = 0.0, _BUSIEST
    over, under = demand(low), demand(high) - high
    if under >= 0:
        return high
    busy = low
    moved = 0
    for _ in range(_MOST_TRIALS):
        busy = (low * under - high * over) / (under - over)
        excess = demand(busy) - busy
        if abs(excess) < _SOLVED:
            break
        if excess > 0:
            low, over = busy, excess
            under, moved = (under / 2 if moved > 0 else under), 1
        else:
            high, under = busy, excess
            over, moved = (over / 2 if moved < 0 else over), -1
    return busy
