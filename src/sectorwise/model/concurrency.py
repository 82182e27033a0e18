"""Turns a warp's schedule and the warps of an SM into bytes in flight over time, and those into bandwidth."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.device import require_capability
from sectorwise.errors import ArgumentError
from sectorwise.model.latency import describe_memory
from sectorwise.model.walking import PASSES_COUNTED, PASSES_SKIPPED, list_issues, merge_plain, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.device import DeviceSpec
    from sectorwise.model.latency import MemoryModel
    from sectorwise.model.schedule import Access, Schedule
    from sectorwise.model.walking import Issue

    Times = npt.NDArray[np.float64]

_WARPS_SAMPLED = 512
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


class Concurrency(Struct, frozen=True):
    """How much of its memory traffic a kernel keeps in flight, averaged over time, and the bandwidth that it gives.

    `requested_bytes_per_sm` is what the resident warps ask for in one pass of the loop, the naive figure;
    `in_flight_bytes_per_sm` what is outstanding on average, less because a burst drains before the next begins;
    `needed_bytes_per_sm` what keeps the memory 95 % busy. `pass_ns` is the time of one pass, `walk_ns` that of a warp
    to which every issue slot is free. `latency_ns` is the mean of a load under this load of the memory, of which
    `queued_ns` is waiting; `memory_busy` the busy part of the memory's time. Before an idle memory, as the last warps
    of a launch find it, passes of a warp are `spread_ns` apart (one standard deviation; of the sum of n passes, sqrt n
    times as much), and the slowest of one pass of all warps of the device is `slowest_ns` above the mean. `assumed`
    says which numbers of the device were borrowed or guessed; empty: all measured on it.
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


class _Draws(Struct, frozen=True):
    """Random numbers of one load in every pass, the same for every trial load of the memory: results stay smooth.

    Each is of shape (passes, blocks, warps of a block). `idle_ns` is the latency of an idle DRAM, `waits` the wait in
    its queue, in units of the mean wait; `level` says where the data are found.
    """

    access: Access
    idle_ns: Times
    waits: Times
    level: Times


class _Walk(Struct, frozen=True):
    """Means over the sampled warps: a pass with free issue slots and with others', a load, and bytes times latency.

    `ends_cycles` says when each warp ends each pass.
    """

    walk_ns: float
    pass_ns: float
    latency_ns: float
    byte_ns: float
    ends_cycles: Times


class Leg(Struct, frozen=True):
    """A part of a warp's way: its schedule, how often it passes through it, and the least that a pass takes.

    `pipe_cycles` is what all resident warps together take of an SM's busiest pipe in one pass.
    """

    schedule: Schedule
    passes: float = 1.0
    pipe_cycles: float = 0.0


class _Prepared(Struct, frozen=True):
    """A leg with what is random of its loads; `issue_cycles` is the least that a pass takes an SM.

    Its loads wait in the memory's queue, if it `queues`; some of them for what others asked for, if it `follows`.
    """

    leg: Leg
    draws: list[_Draws]
    issues: list[Issue]
    issue_cycles: float

    @property
    def queues(self) -> bool:
        return any(draw.access.dram_share + draw.access.waiting_share > 0 for draw in self.draws)

    @property
    def follows(self) -> bool:
        return any(draw.access.waiting_share > 0 for draw in self.draws)


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
    sms = sm_count or device.sm_count
    leg = Leg(schedule, pipe_cycles=pipe_cycles)
    return estimate_legs([leg], warps_per_sm, device, warps_per_block=warps_per_block, sm_count=sms, share=share)[0]


def estimate_legs(
    legs: Sequence[Leg],
    warps_per_sm: int,
    device: DeviceSpec,
    *,
    warps_per_block: int,
    sm_count: int,
    share: float = 1.0,
) -> list[Concurrency]:
    """The same of each of several legs, of which at any time some warps are in one and some in another.

    So all of them meet a memory that is as busy as the whole way makes it.
    """
    if warps_per_sm < 1 or warps_per_sm % warps_per_block:
        raise ArgumentError(f"{warps_per_sm} resident warps are no whole number of blocks of {warps_per_block}")
    memory = describe_memory(device)
    cycles_per_ns = device.boost_mhz / 1000
    warps = share * sm_count * warps_per_sm
    shape = (max(1, _WARPS_SAMPLED // warps_per_block), warps_per_block)
    prepared = [_prepare(leg, warps_per_sm, shape, memory, device) for leg in legs]

    @cache
    def walk_leg(number: int, wait_ns: float) -> _Walk:
        return _walk_leg(prepared[number], shape, memory, wait_ns, cycles_per_ns)

    bytes_moved = sum(leg.passes * leg.schedule.dram_bytes for leg in legs)
    bytes_written = sum(leg.passes * leg.schedule.dram_bytes * leg.schedule.written_share for leg in legs)
    written_share = bytes_written / bytes_moved if bytes_moved else 0.0

    @cache
    def load_memory(busy: float) -> tuple[list[_Walk], float]:
        wait_ns = memory.wait_ns(busy, written_share)
        walks = [walk_leg(number, wait_ns if each.queues else 0.0) for number, each in enumerate(prepared)]
        whole_ns = sum(leg.passes * walked.pass_ns for leg, walked in zip(legs, walks, strict=True))
        return walks, warps * bytes_moved / whole_ns

    busy = _solve(lambda trial: load_memory(trial)[1] / memory.ceiling_gbs) if bytes_moved else 0.0
    walks = load_memory(busy)[0]
    found = []
    for number, (each, walked) in enumerate(zip(prepared, walks, strict=True)):
        schedule = each.leg.schedule
        ends = _walk_alone(each, shape, memory, cycles_per_ns) if each.follows else walk_leg(number, 0.0).ends_cycles
        spread_ns, slowest_ns = _spread(ends / cycles_per_ns, warps_per_sm * sm_count)
        bound = Bound.MEMORY if busy >= _BUSY_ENOUGH else Bound.LATENCY
        found.append(
            Concurrency(
                device=device.id,
                warps_per_sm=warps_per_sm,
                sm_count=sm_count,
                requested_bytes_per_sm=share * warps_per_sm * schedule.load_bytes,
                in_flight_bytes_per_sm=share * warps_per_sm * walked.byte_ns / walked.pass_ns,
                needed_bytes_per_sm=memory.needed_bytes(0.95) / device.sm_count,
                pass_ns=walked.pass_ns,
                walk_ns=walked.walk_ns,
                latency_ns=walked.latency_ns,
                queued_ns=memory.wait_ns(busy, written_share),
                memory_busy=busy,
                dram_gbs=warps * schedule.dram_bytes / walked.pass_ns,
                load_gbs=warps * schedule.load_bytes / walked.pass_ns,
                bound=Bound.ISSUE if each.issue_cycles >= walked.walk_ns * cycles_per_ns else bound,
                spread_ns=spread_ns,
                slowest_ns=slowest_ns,
                assumed=memory.assumed,
            )
        )
    return found


def _prepare(leg: Leg, warps_per_sm: int, shape: tuple[int, int], memory: MemoryModel, device: DeviceSpec) -> _Prepared:
    schedulers = require_capability(device).sub_partitions
    issue_cycles = -(-warps_per_sm // schedulers) * len(leg.schedule.slots)
    return _Prepared(
        leg,
        _draw(leg.schedule, shape, memory),
        list_issues(merge_plain(leg.schedule, memory.taken_branch_cycles)),
        max(issue_cycles, leg.pipe_cycles),
    )


def _walk_leg(
    each: _Prepared, shape: tuple[int, int], memory: MemoryModel, wait_ns: float, cycles_per_ns: float
) -> _Walk:
    """The sampled warps' way through a leg, loads waiting so long in the memory's queue in the mean."""
    latencies_ns = [_draw_latencies(draw, memory, wait_ns) for draw in each.draws]
    ends = walk(each.issues, shape, [ns * cycles_per_ns for ns in latencies_ns], memory.l1_hit_ns * cycles_per_ns)
    walk_ns = float((ends[-1] - ends[0]).mean()) / PASSES_COUNTED / cycles_per_ns
    means_ns = [float(ns[PASSES_SKIPPED:].mean()) for ns in latencies_ns]
    return _Walk(
        walk_ns=walk_ns,
        pass_ns=max(walk_ns, each.issue_cycles / cycles_per_ns),
        latency_ns=sum(means_ns) / len(means_ns) if means_ns else 0.0,
        byte_ns=sum(draw.access.request_bytes * ns for draw, ns in zip(each.draws, means_ns, strict=True)),
        ends_cycles=ends,
    )


def _walk_alone(each: _Prepared, shape: tuple[int, int], memory: MemoryModel, cycles_per_ns: float) -> Times:
    """When each sampled warp ends each pass before an idle memory, those that follow others in the mean."""
    alone = [_draw_latencies(draw, memory, 0.0, in_step=True) * cycles_per_ns for draw in each.draws]
    return walk(each.issues, shape, alone, memory.l1_hit_ns * cycles_per_ns)


def _spread(ends_ns: Times, warps: int) -> tuple[float, float]:
    """How far passes are apart before an idle memory, and the slowest one of so many warps (see `Concurrency`)."""
    passes_ns = np.diff(ends_ns, axis=0)
    slowest_ns = float(np.quantile(passes_ns, 1 - 1 / max(2, warps)) - passes_ns.mean())
    return float(passes_ns.sum(axis=0).std()) / PASSES_COUNTED**0.5, slowest_ns


def _draw(schedule: Schedule, warps: tuple[int, int], memory: MemoryModel) -> list[_Draws]:
    """What is random of each load of a pass, for so many blocks and warps of a block."""
    generator = np.random.default_rng(0)
    loads = [slot.load for slot in schedule.slots if slot.load is not None]
    shape = (PASSES_SKIPPED + PASSES_COUNTED, len(loads), *warps)
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
    low, over = 0.0, demand(0.0)
    # Demand falls, so that it is met before the memory is as busy as it would keep an idle one.
    high = min(over, _BUSIEST)
    under = demand(high) - high
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
