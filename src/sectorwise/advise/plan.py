"""Turns a kernel that is still on paper (what one warp issues, how often, in how many blocks) into its cost and time.

Addresses are counted by `counting`, warps walk through their instructions by `model.concurrency`, blocks are held by
`model.occupancy`: the functions that judge compiled kernels, and what they find is put together by those of
`model.bounds`, as in `model.time`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec import structs

from sectorwise.advise.steps import SECTOR_BYTES, WARP_LANES, Step
from sectorwise.device import DeviceSpec, load_device, require_capability
from sectorwise.model.bounds import (
    IN_STEP_WAVES,
    PROLOGUE_NS,
    bound_dram,
    combine_bounds,
    combine_pass,
    count_store_cycles,
    find_pace,
    name_longest,
)
from sectorwise.model.concurrency import Bound, estimate_concurrency
from sectorwise.model.ending import Stretch, find_end
from sectorwise.model.latency import MEASURED_DEVICE, describe_memory
from sectorwise.model.occupancy import occupancy
from sectorwise.model.roofline import Level, draw_roofline
from sectorwise.model.schedule import Access, Schedule, Slot
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sectorwise.measurements import PaceBehaviour
    from sectorwise.model.concurrency import Concurrency
    from sectorwise.model.waves import Waves

L2_KEEPS: Final = 0.55
"""Of the L2's bytes: 32 MiB read twice are served once from DRAM, 44 only in part (`k_l2_twice_16`, `_44`)."""

_LOADS, _RESULTS = 0, 1
_STALL_CYCLES: Final = 2
"""Between two instructions of a warp, as compilers state it most often."""

_MANY_WAVES: Final = 16
"""From so many waves on the last one is not walked by itself, for it is a few percent of the time; and blocks are out
of step: while some begin, the others load."""

_SETTLED: Final = 0.02
_QUEUES: Final = 0.5
"""A smaller change of the memory's load is not followed, nor any where it is less than half of what the memory can do:
then nothing queues."""

_SELDOM: Final = 0.03
_MOST_DRAWN: Final = 8
"""Loads of one kind and pass that draw latencies of their own, where none of them comes from DRAM."""

_DENSE_SECTORS: Final = 3
"""Lines of which fewer sectors are asked for are places of their own, as in `model.accesses`."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A kernel on paper: `once` a warp, then `loop` `passes` times, by so many blocks of so many threads.

    DRAM bytes are of the whole launch, `lone_bytes` those read in blocks that lie alone; `l2_bytes` is what passes
    between L1 and L2 (None: what the steps' shares say).
    """

    name: str
    blocks: int
    threads_per_block: int
    loop: tuple[Step, ...]
    once: tuple[Step, ...] = ()
    passes: float = 1.0
    registers: int = 32
    shared_bytes: int = 0
    dram_read_bytes: float = 0.0
    dram_write_bytes: float = 0.0
    lone_bytes: float = 0.0
    l2_bytes: float | None = None
    same_address: int = 0
    launches_beside: int = 0


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs on a device.

    Of the loads and stores of global memory `sectors_per_request` and `efficiency` (ideal over real) are averages,
    `wavefronts_per_request` of shared memory. `bytes_in_flight` and `bytes_needed` are an SM's; `time_ns` is the
    estimate, `bound` what holds the launch up, `parts_ns` the times that `model.bounds.combine_bounds` joins to it.
    """

    name: str
    time_ns: float
    bound: str
    parts_ns: Mapping[str, float] = field(metadata={"document": False})
    sectors_per_request: float
    efficiency: float
    wavefronts_per_request: float
    instructions: float
    requests: float
    sectors: float
    wavefronts: float
    dram_bytes: float
    bytes_in_flight: float
    bytes_needed: float
    blocks: int
    threads: int
    warps_per_sm: int
    waves: float
    last_wave_pct: float
    limiter: str
    assumed: tuple[str, ...] = ()


def estimate(plan: Plan, device: str | DeviceSpec) -> Cost:
    """What the plan costs; raises `ArgumentError` where its block cannot be resident."""
    spec = load_device(device)
    stored_bytes, plan = plan.dram_write_bytes, _leave_dirty(plan, spec)
    held = occupancy(plan.threads_per_block, plan.registers, plan.shared_bytes, device=spec)
    waves = count_waves(plan.blocks, held.blocks_per_sm, spec.sm_count)
    pace, assumed = find_pace(spec)
    bounds: dict[str, float] = {}
    walks: list[Concurrency] = []
    stretches: list[Stretch] = []
    for times, blocks, sms, present in _list_kinds(plan, held.blocks_per_sm, waves):
        stretches, beside_ns = [], 0.0
        for steps, passes, repeats in ((plan.once, 1.0, False), (plan.loop, plan.passes, True)):
            if steps and passes:
                warps = blocks * held.warps_per_block
                shape = warps, sms, held.warps_per_block, present
                at_once = not repeats and waves.waves <= IN_STEP_WAVES
                walk, bound, pass_ns = _walk(
                    steps, shape, spec, pace, repeats=repeats, at_once=at_once, beside_ns=beside_ns
                )
                beside_ns = pass_ns / plan.passes if _has_many(plan, waves) else 0.0
                bounds[bound] = bounds.get(bound, 0.0) + times * passes * pass_ns
                walks.append(walk)
                stretches.append(Stretch(passes, walk, pass_ns))
    parts = _list_parts(plan, spec, pace, sum(bounds.values()), find_end(stretches))
    longest = name_longest(parts)
    held_up = max(bounds, key=lambda name: bounds[name], default="latency")
    busiest = max(walks, key=lambda walk: walk.in_flight_bytes_per_sm)
    return Cost(
        name=plan.name,
        time_ns=combine_bounds(parts),
        bound=held_up if longest == "warps" else longest,
        parts_ns=parts,
        **_sum_counts(plan),
        dram_bytes=plan.dram_read_bytes + stored_bytes,
        bytes_in_flight=busiest.in_flight_bytes_per_sm,
        bytes_needed=busiest.needed_bytes_per_sm,
        blocks=plan.blocks,
        threads=plan.blocks * plan.threads_per_block,
        warps_per_sm=min(held.blocks_per_sm, waves.most_blocks_an_sm) * held.warps_per_block,
        waves=waves.waves,
        last_wave_pct=waves.last_wave_pct,
        limiter=str(held.limiter),
        assumed=(*assumed, *busiest.assumed),
    )


def _has_many(plan: Plan, waves: Waves) -> bool:
    return plan.blocks // waves.blocks_per_wave >= _MANY_WAVES


def _list_kinds(plan: Plan, blocks_per_sm: int, waves: Waves) -> list[tuple[float, int, int, float]]:
    """How many waves of a kind, blocks an SM, SMs, and what part of the blocks there are, as some SMs have one less."""
    if _has_many(plan, waves):
        return [(waves.waves, blocks_per_sm, waves.sm_count, 1.0)]
    full, last = divmod(plan.blocks, waves.blocks_per_wave)
    kinds = [(float(full), blocks_per_sm, waves.sm_count, 1.0)] if full else []
    if last:
        most, sms = -(-last // waves.sm_count), min(last, waves.sm_count)
        kinds.append((1.0, most, sms, last / (most * sms)))
    return kinds


def _list_parts(
    plan: Plan, device: DeviceSpec, pace: PaceBehaviour, warps_ns: float, slowest_ns: float
) -> dict[str, float]:
    """The times that `model.bounds.combine_bounds` joins; the slowest warp takes so much longer than the mean one."""
    far_ns = describe_memory(device).l2_far_ns
    stores = any(step.is_store and not step.is_shared for step in (*plan.once, *plan.loop))
    return {
        "launch": pace.launch_ns + plan.launches_beside * (pace.launch_ns + PROLOGUE_NS + far_ns),
        "atomics": pace.same_address_float_ns * plan.same_address,
        "end": slowest_ns + (far_ns if stores else 0.0),
        "warps": warps_ns,
        **_bound_memory(plan, device, pace),
        "blocks": pace.block_start_ns * plan.blocks,
    }


def _leave_dirty(plan: Plan, device: DeviceSpec) -> Plan:
    """The plan, of whose stores only what the L2 may not keep is written before the launch has ended."""
    caches = device.caches or load_device(MEASURED_DEVICE).caches
    if caches is None or not plan.dram_write_bytes:
        return plan
    written = max(0.0, plan.dram_write_bytes - caches.l2_dirty_share * device.l2_bytes)
    part = written / plan.dram_write_bytes

    def leave(step: Step) -> Step:
        if step.is_shared or not step.is_store:
            return step
        return dataclasses.replace(step, dram_share=part * step.dram_share, l2_share=1 - part * step.dram_share)

    return dataclasses.replace(
        plan,
        loop=tuple(leave(step) for step in plan.loop),
        once=tuple(leave(step) for step in plan.once),
        dram_write_bytes=written,
    )


@lru_cache(maxsize=2048)
def _walk(
    steps: tuple[Step, ...],
    shape: tuple[int, int, int, float],
    device: DeviceSpec,
    pace: PaceBehaviour,
    *,
    repeats: bool,
    at_once: bool,
    beside_ns: float,
) -> tuple[Concurrency, str, float]:
    """The walk of the warps of an SM through one pass, what holds them up, and how long it takes.

    The `shape` is warps an SM, SMs, warps a block, and the part of these warps that there is; `beside_ns` is what a
    pass takes else, in which it loads nothing.
    It depends on a problem's size through the steps only, so that looking at other sizes repeats it.
    """
    warps, sms, warps_per_block, present = shape
    slots = [slot for step in steps for slot in _list_slots(step)]
    issued = sum(max(1, round(step.times)) for step in steps)
    cycles_per_ns = device.boost_mhz / 1000
    if not repeats:
        slots = [Slot(round((pace.block_turnaround_ns + PROLOGUE_NS) * cycles_per_ns)), *slots]
    schedulers = require_capability(device).sub_partitions
    pipes = _count_pipes(steps, device, pace)
    busiest = max(pipes, key=lambda name: pipes[name], default="issue")
    pipe_ns = warps * pipes.get(busiest, 0.0) / cycles_per_ns
    schedule, share = Schedule(tuple(slots), repeats), 1.0
    # What a pipe adds to a pass is time in which the memory is asked for less: its queue is that of whole passes.
    while True:
        walk = estimate_concurrency(
            schedule,
            warps,
            device,
            warps_per_block=warps_per_block,
            sm_count=sms,
            pipe_cycles=-(-warps // schedulers) * issued,
            share=present * share,
        )
        pass_ns = combine_pass(walk.pass_ns, pipe_ns, busiest, warps / schedulers, at_once=at_once)
        paced = walk.pass_ns / (pass_ns + beside_ns)
        if share - paced < _SETTLED or walk.memory_busy < _QUEUES:
            break
        share = paced
    if pipe_ns >= walk.pass_ns:
        return walk, busiest, pass_ns
    return walk, {Bound.MEMORY: "dram"}.get(walk.bound, str(walk.bound)), pass_ns


def _list_slots(step: Step) -> list[Slot]:
    waits = (_LOADS, _RESULTS) if step.waits else ()
    access = None
    # Loads that hit in L1 take as long as shared memory's, and no draws of latencies.
    hits = step.is_load and step.dram_share + step.l2_share < _SELDOM
    if not (step.is_shared or hits) and (step.is_load or step.is_store):
        access = Access(
            SECTOR_BYTES * step.sectors,
            1 if step.sectors >= _DENSE_SECTORS * step.lines else max(1, round(step.lines)),
            step.dram_share,
            step.l2_share,
            step.waiting_share,
        )
    sets = None
    if step.is_load:
        sets = _RESULTS if step.is_shared or hits else _LOADS
    count, stall = max(1, round(step.times)), _STALL_CYCLES
    if access is not None and step.dram_share == 0 and count > _MOST_DRAWN:
        # Any of several that the L2 may answer makes the warp wait: one draw stands for them.
        each = count / _MOST_DRAWN
        count, stall = _MOST_DRAWN, round(_STALL_CYCLES * each)
        access = structs.replace(
            access, request_bytes=access.request_bytes * each, l2_share=1 - (1 - min(1.0, access.l2_share)) ** each
        )
    one = Slot(
        stall,
        sets=sets,
        load=access if step.is_load else None,
        store=access if step.is_store else None,
    )
    if access is not None:
        slots = [one] * count
    else:
        # Of results that arrive in order only the last is waited for: those before are time, and one slot.
        before = [Slot(_STALL_CYCLES * (count - 1))] if count > 1 else []
        slots = [*before, one]
    slots[0] = structs.replace(slots[0], waits_for=waits, is_block_barrier=step.is_barrier)
    return slots


def _count_pipes(steps: Sequence[Step], device: DeviceSpec, pace: PaceBehaviour) -> dict[str, float]:
    """Cycles of each pipe of an SM that one warp takes in one pass."""
    capability, lender = require_capability(device), require_capability(load_device(MEASURED_DEVICE))
    lanes = {
        "fp32": capability.fp32_lanes or lender.fp32_lanes,
        "int": capability.int_lanes or lender.int_lanes,
        "memory": capability.memory_lanes or lender.memory_lanes,
    }
    pipes: dict[str, float] = {}
    for step in steps:
        width = lanes.get(step.pipe)
        if step.pipe_cycles:
            pipes[step.pipe] = pipes.get(step.pipe, 0.0) + step.times * step.pipe_cycles
        elif width:
            pipes[step.pipe] = pipes.get(step.pipe, 0.0) + step.times * WARP_LANES / width
        passes = step.wavefronts + step.passes
        if passes:
            pipes["l1"] = pipes.get("l1", 0.0) + step.times * passes
        if step.is_store and not step.is_shared:
            pipes["stores"] = pipes.get("stores", 0.0) + step.times * count_store_cycles(device, pace) * step.lines
    return pipes


def _bound_memory(plan: Plan, device: DeviceSpec, pace: PaceBehaviour) -> dict[str, float]:
    """Times in which DRAM and the L2 move all bytes at full speed."""
    read, written = plan.dram_read_bytes, plan.dram_write_bytes
    l2_bytes = plan.l2_bytes
    if l2_bytes is None:
        l2_bytes = SECTOR_BYTES * sum(
            times * step.times * step.sectors * (step.dram_share + step.l2_share) for step, times in _list_steps(plan)
        )
    return {
        "dram": bound_dram(device, read, written, plan.lone_bytes, pace.lone_read_gbs),
        "l2": l2_bytes / draw_roofline(device).ceiling(Level.L2).per_ns,
    }


def _list_steps(plan: Plan) -> list[tuple[Step, float]]:
    """Every step, and how many warp passes of the launch go through it."""
    warps = plan.blocks * -(-plan.threads_per_block // WARP_LANES)
    return [(step, float(warps)) for step in plan.once] + [(step, warps * plan.passes) for step in plan.loop]


def _sum_counts(plan: Plan) -> dict[str, float]:
    steps = [(step, passes * step.times) for step, passes in _list_steps(plan)]
    in_global = [(step, times) for step, times in steps if step.sectors]
    in_shared = [(step, times) for step, times in steps if step.is_shared]
    requests = sum(times for _, times in in_global)
    sectors = sum(times * step.sectors for step, times in in_global)
    ideal = sum(times * step.sectors_ideal for step, times in in_global)
    wavefronts = sum(times * step.wavefronts for step, times in in_shared)
    return {
        "sectors_per_request": sectors / requests if requests else 0.0,
        "efficiency": ideal / sectors if sectors else 1.0,
        "wavefronts_per_request": wavefronts / sum(times for _, times in in_shared) if in_shared else 0.0,
        "instructions": sum(times for _, times in steps),
        "requests": requests,
        "sectors": sectors,
        "wavefronts": wavefronts,
    }
