"""Turns the segments of a kernel and its waves into the warps' way through them: how long it takes, and due to what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from sectorwise.device import load_device, require_capability
from sectorwise.model.bounds import DATA_PIPES, IN_STEP_WAVES, Obstacle, combine_pass, join_times
from sectorwise.model.concurrency import Bound, Leg, estimate_legs
from sectorwise.model.ending import Stretch
from sectorwise.model.latency import MEASURED_DEVICE
from sectorwise.model.schedule import WARP_LANES, Schedule, Slot, schedule_instructions
from sectorwise.model.segments import list_usual
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.measurements import PaceBehaviour
    from sectorwise.model.concurrency import Concurrency
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.schedule import Access
    from sectorwise.model.segments import Segment


class Ledger(Struct):
    """Time by what holds the warps up, and by instruction."""

    by_bound: dict[str, float] = field(default_factory=dict)
    by_instruction: dict[int, float] = field(default_factory=dict)

    def total(self) -> float:
        """All of it, in ns."""
        return sum(self.by_bound.values())


class Wave(Struct, frozen=True):
    """So many waves alike: warps of an SM, SMs, and what `share` of the warps there are, as some SMs have a block less.

    While blocks are `in_step`, all are in one segment; else at any time some are in each.
    """

    times: float
    warps: int
    sms: int
    share: float
    in_step: bool


class Setting(Struct, frozen=True):
    """What the walks of a launch have in common."""

    device: DeviceSpec
    pace: PaceBehaviour
    accesses: Mapping[int, Access]
    pipe_cycles: Mapping[int, Mapping[str, float]]
    warps_per_block: int
    without: frozenset[Obstacle]


def list_waves(bound: BoundLaunch, occupancy: Occupancy, *, whole: bool) -> Iterable[Wave]:
    """The full waves together, and the last one, in which `whole` leaves no SM idle."""
    waves = count_waves(bound.launch.blocks_total, occupancy.blocks_per_sm, bound.device.sm_count)
    held, in_step = occupancy.warps_per_block, waves.waves <= IN_STEP_WAVES
    full, last = divmod(waves.blocks, waves.blocks_per_wave)
    if whole and waves.blocks > waves.sm_count:
        blocks = min(occupancy.blocks_per_sm, waves.blocks // waves.sm_count)
        yield Wave(waves.blocks / (blocks * waves.sm_count), blocks * held, waves.sm_count, 1.0, in_step)
        return
    if full:
        yield Wave(full, occupancy.blocks_per_sm * held, waves.sm_count, 1.0, in_step)
    if last:
        blocks, sms = -(-last // waves.sm_count), min(last, waves.sm_count)
        yield Wave(1, blocks * held, sms, last / (blocks * sms), in_step)


def list_lanes(device: DeviceSpec) -> dict[str, float]:
    """Lanes an SM of each pipe that takes instructions lane by lane; of one that is not known, the lender's."""
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


def walk_wave(setting: Setting, segments: Sequence[Segment], wave: Wave, ledger: Ledger) -> list[Stretch]:
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


def _schedule(setting: Setting, segment: Segment, *, begins: bool) -> Schedule:
    """A segment's schedule; where it `begins` a block, after what lies between that and the block before."""
    schedule = schedule_instructions(list_usual(segment), _weigh_accesses(setting, segment), repeats=segment.repeats)
    if not begins:
        return schedule
    turnaround = Slot(round(setting.pace.block_turnaround_ns * setting.device.boost_mhz / 1000))
    return Schedule((turnaround, *schedule.slots), schedule.repeats)


def _weigh_accesses(setting: Setting, segment: Segment) -> dict[int, Access]:
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
    setting: Setting, segment: Segment, way: tuple[Schedule, Concurrency], wave: Wave, ledger: Ledger
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
    queues = list_lanes(setting.device).get(busiest, 0.0) < WARP_LANES * schedulers
    at_once = wave.in_step and not segment.repeats
    held = setting.warps_per_block if any(slot.is_block_barrier for slot in schedule.slots) else 1
    pass_ns = combine_pass(walk_ns, pipe_ns, busiest, wave.warps / held, queues=queues, at_once=at_once)
    held_up = busiest if pipe_ns >= walk.pass_ns else {Bound.MEMORY: "dram"}.get(walk.bound, str(walk.bound))
    spent = wave.times * segment.passes * pass_ns
    ledger.by_bound[held_up] = ledger.by_bound.get(held_up, 0.0) + spent
    for index, share in _share_out(setting, segment, held_up).items():
        ledger.by_instruction[index] = ledger.by_instruction.get(index, 0.0) + share * spent
    return Stretch(segment.passes, walk, pass_ns)


def _is_spared(pipe: str, without: frozenset[Obstacle]) -> bool:
    """Whether a pipe is imagined away."""
    return (Obstacle.PASSES if pipe in DATA_PIPES else Obstacle.ARITHMETIC) in without


def _share_out(setting: Setting, segment: Segment, held_up: str) -> dict[int, float]:
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
