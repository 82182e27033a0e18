"""Turns an executed launch and its traffic into how long it takes, what holds it up, and what each line costs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.device import load_device, require_capability
from sectorwise.model.accesses import average_accesses, count_written, find_idle, find_shares
from sectorwise.model.bounds import (
    DATA_PIPES,
    bound_dram,
    combine_bounds,
    combine_pass,
    find_pace,
    join_times,
    name_longest,
)
from sectorwise.model.concurrency import Bound, Leg, estimate_legs
from sectorwise.model.ending import Stretch, find_end
from sectorwise.model.latency import MEASURED_DEVICE, describe_memory
from sectorwise.model.roofline import Level, draw_roofline
from sectorwise.model.schedule import Schedule, Slot, schedule_instructions
from sectorwise.model.segments import list_usual, name_pipe, split_segments
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.machine.execution import Execution, Site
    from sectorwise.measurements import PaceBehaviour
    from sectorwise.model.concurrency import Concurrency
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.schedule import Access
    from sectorwise.model.segments import Segment
    from sectorwise.model.traffic import Traffic

SECTOR_BYTES: Final = 32
WARP_LANES: Final = 32
SECTORS_IN_LINE: Final = 4
LONE_SECTORS: Final = 1.5
"""Sectors a line up to which a request is taken to ask for lone ones."""

IN_STEP_WAVES: Final = 2
"""Waves up to which the blocks of an SM are taken to go through the code in step, as the first ones do."""

SPREAD_LANES: Final = 4096
"""Lanes on one address up to which atomics are taken to be spread over the L2, where they add to its other work."""


class Obstacle(StrEnum):
    """What can be imagined away, to see how much of the time it is to blame for."""

    LATENCY = "latency"
    """The wait for data that too few warps cover."""
    ISSUE = "issue"
    """Instructions issued one a cycle and scheduler."""
    ARITHMETIC = "arithmetic"
    """Pipes that compute."""
    PASSES = "passes"
    """L1, shared memory, and stores line by line."""
    LAST_WAVE = "last_wave"
    """SMs without work in the last wave."""
    BLOCKS = "blocks"
    """Starting blocks, and what lies between one and the next."""
    ATOMICS = "atomics"
    """Atomics on one address."""
    LONE_FETCHES = "lone_fetches"
    """64-byte blocks of DRAM that lie alone."""


NOTHING: Final[frozenset[Obstacle]] = frozenset()


@dataclass(frozen=True, slots=True)
class Time:
    """How long a launch takes, caches cold, and why.

    `estimate_ns` is `parts_ns["launch"]`, `parts_ns["end"]` (what the last warp takes longer than the mean one, and the
    way of the last store) and the others together, of which the longest counts for most. `parts_ns` has
    `warps` (the warps' way through their instructions, waiting and contending on their SM), `dram`, `l2` (all bytes at
    its full speed), `blocks` (starting them all) and `atomics` (at the L2). `bound` names the longest; of `warps` what
    holds them up:
    `latency`, `dram`, `issue`, or a pipe: `fp32`, `fp64`, `int`, `special`, `memory`, `l1`, `stores`.
    `instructions_ns` gives the warps' time to the instructions that hold them up, in proportion. `assumed` says what
    was borrowed.
    """

    estimate_ns: float
    bound: str
    parts_ns: Mapping[str, float]
    instructions_ns: Mapping[int, float]
    assumed: tuple[str, ...]


@dataclass(slots=True)
class _Ledger:
    """Time by what holds the warps up, and by instruction."""

    by_bound: dict[str, float] = field(default_factory=dict)
    by_instruction: dict[int, float] = field(default_factory=dict)

    def total(self) -> float:
        return sum(self.by_bound.values())


@dataclass(frozen=True, slots=True)
class _Wave:
    """So many waves alike: warps of an SM, SMs, and what `share` of the warps there are, as some SMs have a block less.

    While blocks are `in_step`, all are in one segment; else at any time some are in each.
    """

    times: float
    warps: int
    sms: int
    share: float
    in_step: bool


@dataclass(frozen=True, slots=True)
class _Setting:
    """What the walks of a launch have in common."""

    device: DeviceSpec
    pace: PaceBehaviour
    accesses: Mapping[int, Access]
    pipe_cycles: Mapping[int, Mapping[str, float]]
    warps_per_block: int
    without: frozenset[Obstacle]


def estimate_time(
    bound: BoundLaunch,
    execution: Execution,
    occupancy: Occupancy,
    traffic: Traffic,
    without: frozenset[Obstacle] = NOTHING,
) -> Time:
    """How long the launch takes, or would take `without` some obstacles.

    Segment by segment, pass by pass, a wave of blocks takes the longer of two times: that in which one warp walks
    through its instructions as their scoreboards let it, with the latencies of the loaded memory, and that in which
    the SM's busiest pipe serves all resident warps; and of the shorter one, where the pipe moves data, the part that a
    scheduler with few warps cannot overlap: 1 / warps of a scheduler. The last wave is walked by itself, and ends with
    its slowest warp.
    """
    device = bound.device
    pace, assumed = find_pace(device)
    if Obstacle.BLOCKS in without:
        pace = replace(pace, block_start_ns=0.0, block_turnaround_ns=0.0)
    warps = bound.launch.blocks_total * occupancy.warps_per_block
    setting = _Setting(
        device=device,
        pace=pace,
        accesses=average_accesses(execution.sites, find_shares(execution, traffic), find_idle(bound.kernel, execution)),
        pipe_cycles=_list_pipe_cycles(bound, execution, traffic, pace),
        warps_per_block=occupancy.warps_per_block,
        without=without,
    )
    segments = split_segments(bound.kernel, execution.issued.tolist(), warps)
    ledger = _Ledger()
    stretches: list[Stretch] = []
    for wave in _list_waves(bound, occupancy, whole=Obstacle.LAST_WAVE in without):
        stretches = _walk_wave(setting, segments, wave, ledger)
    parts = {
        "launch": pace.launch_ns,
        "end": 0.0 if Obstacle.LATENCY in without else find_end(stretches) + _time_stores(device, execution),
        "warps": ledger.total(),
        **_bound_memory(device, pace, execution, traffic, without),
        "blocks": pace.block_start_ns * bound.launch.blocks_total,
        "atomics": 0.0 if Obstacle.ATOMICS in without else _bound_atomics(pace, execution, traffic),
    }
    longest = name_longest(parts)
    held_up = max(ledger.by_bound, key=lambda name: ledger.by_bound[name], default="latency")
    return Time(
        estimate_ns=combine_bounds(parts, atomics_spread=traffic.hottest_lanes < SPREAD_LANES),
        bound=held_up if longest == "warps" else longest,
        parts_ns=parts,
        instructions_ns=ledger.by_instruction,
        assumed=(*assumed, *(text for text in traffic.assumed if text not in assumed)),
    )


def _time_stores(device: DeviceSpec, execution: Execution) -> float:
    """The ns that the last store of a launch is on its way to the far half of the L2, and its answer back."""
    stores = {Operation.STORE, Operation.REDUCTION}
    stored = any(
        site.access.operation in stores and site.access.space is not Space.SHARED and site.executed
        for site in execution.sites
    )
    return describe_memory(device).l2_far_ns if stored else 0.0


def _list_waves(bound: BoundLaunch, occupancy: Occupancy, *, whole: bool) -> Iterable[_Wave]:
    """The full waves together, and the last one, in which `whole` leaves no SM idle."""
    waves = count_waves(bound.launch.blocks_total, occupancy.blocks_per_sm, bound.device.sm_count)
    held, in_step = occupancy.warps_per_block, waves.waves <= IN_STEP_WAVES
    full, last = divmod(waves.blocks, waves.blocks_per_wave)
    if whole and waves.blocks > waves.sm_count:
        blocks = min(occupancy.blocks_per_sm, waves.blocks // waves.sm_count)
        yield _Wave(waves.blocks / (blocks * waves.sm_count), blocks * held, waves.sm_count, 1.0, in_step)
        return
    if full:
        yield _Wave(full, occupancy.blocks_per_sm * held, waves.sm_count, 1.0, in_step)
    if last:
        blocks, sms = -(-last // waves.sm_count), min(last, waves.sm_count)
        yield _Wave(1, blocks * held, sms, last / (blocks * sms), in_step)


def _list_pipe_cycles(
    bound: BoundLaunch, execution: Execution, traffic: Traffic, pace: PaceBehaviour
) -> dict[int, dict[str, float]]:
    """Cycles of each pipe of an SM that one warp takes with each instruction."""
    lanes = _list_lanes(bound.device)
    cycles = {
        each.index: {pipe: WARP_LANES / lanes[pipe]}
        for each in bound.kernel.instructions
        if (pipe := name_pipe(each.opcode)) is not None and pipe in lanes
    }
    for site in execution.sites:
        if not site.executed or site.unknown_because is not None:
            continue
        local_lines = site.sectors_local / SECTORS_IN_LINE
        cycles.setdefault(site.instruction, {})["l1"] = (
            _count_passes(site, traffic) + (site.wavefronts_hardware + local_lines) / site.executed
        )
        if site.access.operation is Operation.STORE:
            lines = (site.tag_requests + local_lines) / site.executed
            cycles[site.instruction]["stores"] = pace.store_line_cycles * lines
    return cycles


def _count_passes(site: Site, traffic: Traffic) -> float:
    """Passes of L1 that a request to global memory takes."""
    if site.access.space is Space.LOCAL or not site.tag_requests:
        return 0.0
    most = site.tag_requests / site.executed
    return min(most, traffic.passes.get(site.instruction, most))


def _list_lanes(device: DeviceSpec) -> dict[str, float]:
    found = require_capability(device)
    lender = require_capability(load_device(MEASURED_DEVICE))
    lanes: dict[str, float] = {}
    for pipe, own, other in (
        ("fp32", found.fp32_lanes, lender.fp32_lanes),
        ("fp64", found.fp64_lanes, lender.fp64_lanes),
        ("int", found.int_lanes, lender.int_lanes),
        # Integer multiplies have a pipe of their own, of the width of the other integer pipe (measured on an H200).
        ("multiply", found.int_lanes, lender.int_lanes),
        ("special", found.special_lanes, lender.special_lanes),
        ("memory", found.memory_lanes, lender.memory_lanes),
    ):
        if own or other:
            lanes[pipe] = float(own or other or 0)
    return lanes


def _walk_wave(setting: _Setting, segments: Sequence[Segment], wave: _Wave, ledger: _Ledger) -> list[Stretch]:
    """Add the time of all segments in a kind of wave to the ledger; the way through it once."""
    walked = [(number, segment) for number, segment in enumerate(segments) if list_usual(segment)]
    legs = [
        Leg(_schedule(setting, segment, begins=number == 0 and not segment.repeats), segment.passes)
        for number, segment in walked
    ]
    if not legs:
        return []

    def estimate(some: list[Leg]) -> list[Concurrency]:
        return estimate_legs(
            some,
            wave.warps,
            setting.device,
            warps_per_block=setting.warps_per_block,
            sm_count=wave.sms,
            share=wave.share,
        )

    walks = [estimate([leg])[0] for leg in legs] if wave.in_step else estimate(legs)
    return [
        _spend(setting, segment, (leg.schedule, walk), wave, ledger)
        for (_, segment), leg, walk in zip(walked, legs, walks, strict=True)
    ]


def _schedule(setting: _Setting, segment: Segment, *, begins: bool) -> Schedule:
    """A segment's schedule; where it `begins` a block, after what lies between that and the block before."""
    schedule = schedule_instructions(list_usual(segment), _weigh_accesses(setting, segment), repeats=segment.repeats)
    if not begins:
        return schedule
    turnaround = Slot(round(setting.pace.block_turnaround_ns * setting.device.boost_mhz / 1000))
    return Schedule((turnaround, *schedule.slots), schedule.repeats)


def _weigh_accesses(setting: _Setting, segment: Segment) -> dict[int, Access]:
    """What an instruction moves a pass, where only a part of the passes issue it: in the others nobody waits for it."""
    weighed = {}
    for instruction, weight in zip(segment.instructions, segment.weights, strict=True):
        access = setting.accesses.get(instruction.index)
        if access is not None:
            part = min(1.0, weight)
            weighed[instruction.index] = replace(
                access,
                dram_share=part * access.dram_share,
                l2_share=part * access.l2_share,
                waiting_share=part * access.waiting_share,
            )
    return weighed


def _spend(
    setting: _Setting, segment: Segment, way: tuple[Schedule, Concurrency], wave: _Wave, ledger: _Ledger
) -> Stretch:
    """Add a segment's time, whose schedule is walked like that, to the ledger."""
    schedule, walk = way
    cycles_per_ns = setting.device.boost_mhz / 1000
    pipes: dict[str, float] = {}
    for instruction, weight in zip(segment.instructions, segment.weights, strict=True):
        for pipe, cycles in setting.pipe_cycles.get(instruction.index, {}).items():
            pipes[pipe] = pipes.get(pipe, 0.0) + weight * cycles
    pipes = {name: cycles for name, cycles in pipes.items() if not _is_spared(name, setting.without)}
    busiest = max(pipes, key=lambda name: pipes[name], default="issue")
    pipe_ns = wave.warps * pipes.get(busiest, 0.0) / cycles_per_ns
    schedulers = require_capability(setting.device).sub_partitions
    issue_ns = -(-wave.warps // schedulers) * len(schedule.slots) / cycles_per_ns
    walk_ns = join_times(
        0.0 if Obstacle.LATENCY in setting.without else walk.walk_ns,
        0.0 if Obstacle.ISSUE in setting.without else issue_ns,
    )
    queues = _list_lanes(setting.device).get(busiest, 0.0) < WARP_LANES * schedulers
    pass_ns = combine_pass(walk_ns, pipe_ns, busiest, wave.warps / schedulers, queues=queues)
    held_up = busiest if pipe_ns >= walk.pass_ns else {Bound.MEMORY: "dram"}.get(walk.bound, str(walk.bound))
    spent = wave.times * segment.passes * pass_ns
    ledger.by_bound[held_up] = ledger.by_bound.get(held_up, 0.0) + spent
    for index, share in _share_out(setting, segment, held_up).items():
        ledger.by_instruction[index] = ledger.by_instruction.get(index, 0.0) + share * spent
    return Stretch(segment.passes, walk, pass_ns)


def _is_spared(pipe: str, without: frozenset[Obstacle]) -> bool:
    """Whether a pipe is imagined away."""
    return (Obstacle.PASSES if pipe in DATA_PIPES else Obstacle.ARITHMETIC) in without


def _share_out(setting: _Setting, segment: Segment, held_up: str) -> dict[int, float]:
    """The part of a segment's time that each instruction answers for: of what holds the segment up."""
    weights: dict[int, float] = {}
    for instruction, issued in zip(segment.instructions, segment.weights, strict=True):
        access = setting.accesses.get(instruction.index)
        match held_up:
            case "latency" | "dram":
                wait = 0.0 if access is None else access.dram_share + access.waiting_share + access.l2_share / 2
                weight = issued * wait * (1.0 if access is None or held_up == "latency" else access.request_bytes)
            case "issue":
                weight = issued
            case _:
                weight = issued * setting.pipe_cycles.get(instruction.index, {}).get(held_up, 0.0)
        weights[instruction.index] = weight
    total = sum(weights.values())
    if not total:
        return {index: 1 / len(weights) for index in weights}
    return {index: weight / total for index, weight in weights.items() if weight}


def _bound_atomics(pace: PaceBehaviour, execution: Execution, traffic: Traffic) -> float:
    """Time in which the L2 works off all atomics: those on one address one by one, all of them sector by sector."""
    atomics = {Operation.ATOMIC, Operation.REDUCTION}
    sectors = sum(
        site.sectors
        for site in execution.sites
        if site.access.operation in atomics and site.access.space is not Space.SHARED and site.unknown_because is None
    )
    floats = any(
        name.startswith(("F16", "F32", "F64", "BF16"))
        for site in execution.sites
        if site.access.operation in atomics
        for name in site.access.modifiers
    )
    one_by_one = pace.same_address_float_ns if floats else pace.same_address_ns
    return max(one_by_one * traffic.hottest_lanes, sectors / pace.atomic_sectors_per_ns)


def _bound_memory(
    device: DeviceSpec,
    pace: PaceBehaviour,
    execution: Execution,
    traffic: Traffic,
    without: frozenset[Obstacle],
) -> dict[str, float]:
    """Times in which DRAM and the L2 move all bytes at full speed."""
    roofline = draw_roofline(device)
    lone_gbs = inf if Obstacle.LONE_FETCHES in without else pace.lone_read_gbs
    per_sector_ns = SECTOR_BYTES / roofline.ceiling(Level.L2).per_ns
    stores = [each for each in execution.sites if each.access.operation is Operation.STORE]
    lone_stores = [each for each in stores if _asks_for_lone(each)]
    lone, stored = _count_lone(execution, traffic), sum(each.tag_requests for each in lone_stores)
    others = [each for each in stores if not _asks_for_lone(each)]
    dense = traffic.l2_sectors_read_from_sm - lone + count_written(others)
    return {
        "dram": bound_dram(
            device, traffic.dram_bytes_read, traffic.dram_bytes_write, traffic.lone_bytes_read, lone_gbs
        ),
        "l2": dense * per_sector_ns + lone / pace.l2_lone_per_ns + stored / pace.l2_store_lines_per_ns,
    }


def _asks_for_lone(site: Site) -> bool:
    """Whether requests ask for a single sector of each of their lines, or hardly more."""
    return site.unknown_because is None and 0 < site.sectors < LONE_SECTORS * site.tag_requests


def _count_lone(execution: Execution, traffic: Traffic) -> float:
    """Requests that reach the L2 for a single sector of a line."""
    reached = {site.instruction: site.asked - site.l1_hits for site in traffic.sites}
    asked = sum(site.asked - site.l1_hits for site in traffic.sites)
    merged = traffic.l2_sectors_read_from_sm / asked if asked else 1.0
    return sum(
        min(1.0, merged) * reached.get(site.instruction, 0.0) for site in execution.sites if _asks_for_lone(site)
    )
