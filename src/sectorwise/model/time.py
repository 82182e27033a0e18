"""Turns an executed launch and its traffic into how long it takes, what holds it up, and what each line costs."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.counting.request import Operation, Space
from sectorwise.model.accesses import average_accesses, count_written, find_idle, find_shares
from sectorwise.model.bounds import NOTHING, Obstacle, bound_dram, combine_bounds, find_pace, name_longest
from sectorwise.model.copy_sites import add_copy_sites
from sectorwise.model.ending import Stretch, find_end
from sectorwise.model.latency import describe_memory
from sectorwise.model.rings import bound_ring, find_ring
from sectorwise.model.roofline import Level, draw_roofline
from sectorwise.model.schedule import WARP_LANES
from sectorwise.model.segments import name_pipe, split_segments
from sectorwise.model.waves import weigh_blocks
from sectorwise.model.way import Ledger, Setting, list_lanes, list_waves, walk_wave

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.machine.execution import Execution, Site
    from sectorwise.measurements import PaceBehaviour
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.traffic import Traffic

SECTOR_BYTES: Final = 32
SECTORS_IN_LINE: Final = 4
LONE_SECTORS: Final = 1.5
"""Sectors a line up to which a request is taken to ask for lone ones."""

MOST_UNEVEN_WAVES: Final = 16
"""Waves up to which it is looked at how uneven blocks are."""

SPREAD_LANES: Final = 4096
"""Lanes on one address up to which atomics are taken to be spread over the L2, where they add to its other work."""


class Time(Struct, frozen=True):
    """How long a launch takes, caches cold, and why.

    `estimate_ns` is `parts_ns["launch"]`, `parts_ns["end"]` (what the last warp takes longer than the mean one, and the
    way of the last store) and the others together, of which the longest counts for most. `parts_ns` has
    `warps` (the warps' way through their instructions, waiting and contending on their SM, or, where blocks are uneven,
    that of those which end last), `dram`, `l2` (all bytes at
    its full speed), `blocks` (starting them all) and `atomics` (at the L2); of launches with bulk loads
    `copies` (their stages filled and used in turn). `bound` names the longest; of `warps` what
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
    bulk, execution = execution.bulk, add_copy_sites(bound.kernel, execution)
    device = bound.device
    pace, assumed = find_pace(device)
    if Obstacle.BLOCKS in without:
        pace = replace(pace, block_start_ns=0.0, block_turnaround_ns=0.0)
    warps = bound.launch.blocks_total * occupancy.warps_per_block
    setting = Setting(
        device=device,
        pace=pace,
        accesses=average_accesses(execution.sites, find_shares(execution, traffic), find_idle(bound.kernel, execution)),
        pipe_cycles=_list_pipe_cycles(bound, execution, traffic, pace),
        warps_per_block=occupancy.warps_per_block,
        without=without,
    )
    segments = split_segments(bound.kernel, execution.issued.tolist(), warps)
    ledger = Ledger()
    stretches: list[Stretch] = []
    walked_ns = 0.0
    for wave in list_waves(bound, occupancy, whole=Obstacle.LAST_WAVE in without):
        stretches = walk_wave(setting, segments, wave, ledger)
        walked_ns += wave.times * sum(each.passes * each.walk.walk_ns for each in stretches)
    uneven = {Obstacle.LATENCY, Obstacle.LAST_WAVE}.isdisjoint(without)
    parts = {
        "launch": pace.launch_ns,
        "end": 0.0 if Obstacle.LATENCY in without else find_end(stretches) + _time_stores(device, execution),
        "warps": max(ledger.total(), walked_ns * _slow_down(bound, execution, occupancy) if uneven else 0.0),
        **_bound_memory(device, pace, execution, traffic, without),
        "blocks": pace.block_start_ns * bound.launch.blocks_total,
        "atomics": 0.0 if Obstacle.ATOMICS in without else _bound_atomics(pace, execution, traffic),
    }
    ring = find_ring(bound, bulk, occupancy)
    if ring is not None and Obstacle.LATENCY not in without:
        parts["copies"] = bound_ring(bound, ring, bulk, traffic.shares(), parts["warps"])
    longest = name_longest(parts)
    held_up = max(ledger.by_bound, key=lambda name: ledger.by_bound[name], default="latency")
    if parts["warps"] > ledger.total():
        held_up = "latency"
    return Time(
        estimate_ns=combine_bounds(parts, atomics_spread=traffic.contention.hottest_lanes < SPREAD_LANES),
        bound=held_up if longest == "warps" else longest,
        parts_ns=parts,
        instructions_ns=ledger.by_instruction,
        assumed=(*assumed, *(text for text in traffic.assumed if text not in assumed)),
    )


def _slow_down(bound: BoundLaunch, execution: Execution, occupancy: Occupancy) -> float:
    """How much later blocks of these lengths end than blocks of the mean length would, each at its own pace.

    Blocks whose warps wait for data take as long beside others as alone. Where they are many, lengths average out.
    """
    blocks, sms = bound.launch.blocks_total, bound.device.sm_count
    if execution.lengths is None or blocks > MOST_UNEVEN_WAVES * occupancy.blocks_per_sm * sms:
        return 1.0
    balance = weigh_blocks(execution.lengths, occupancy.blocks_per_sm, sms)
    return 1.0 if balance is None else balance.slowdown


def _time_stores(device: DeviceSpec, execution: Execution) -> float:
    """The ns that the last store of a launch is on its way to the far half of the L2, and its answer back."""
    stores = {Operation.STORE, Operation.REDUCTION}
    stored = any(
        site.access.operation in stores and site.access.space is not Space.SHARED and site.executed
        for site in execution.sites
    )
    return describe_memory(device).l2_far_ns if stored else 0.0


def _list_pipe_cycles(
    bound: BoundLaunch, execution: Execution, traffic: Traffic, pace: PaceBehaviour
) -> dict[int, dict[str, float]]:
    """Cycles of each pipe of an SM that one warp takes with each instruction."""
    lanes = list_lanes(bound.device)
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


def _bound_atomics(pace: PaceBehaviour, execution: Execution, traffic: Traffic) -> float:
    """Time in which the L2 works off all atomics: those that meet at a sector or a slice, and all of them together."""
    atomics = {Operation.ATOMIC, Operation.REDUCTION}
    sectors = sum(
        site.sectors
        for site in execution.sites
        if site.access.operation in atomics and site.access.space is not Space.SHARED and site.unknown_because is None
    )
    met = traffic.contention
    return max(met.hottest_ns, met.busiest_ns, sectors / pace.atomic_sectors_per_ns)


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
    dense = sum(each.asked - each.l1_hits for each in traffic.sites) - lone + count_written(others)
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
