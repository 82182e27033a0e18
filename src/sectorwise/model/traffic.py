"""Turns an executed launch into where its bytes come from and go to: L1, L2 and DRAM."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.counting.request import Operation, Space
from sectorwise.device import load_device, require_capability
from sectorwise.errors import UnsupportedDeviceError
from sectorwise.model.caches.batches import find_depths
from sectorwise.model.caches.chain import Chain, move_window, place_launch
from sectorwise.model.caches.contention import grow_contention
from sectorwise.model.caches.flow import Flow, extrapolate
from sectorwise.model.caches.l1 import L1Setup, simulate_l1
from sectorwise.model.caches.l2 import Rest, simulate_l2
from sectorwise.model.caches.lines import SECTOR_BYTES, Role, list_roles, read_hint
from sectorwise.model.caches.merging import Merging, find_merging
from sectorwise.model.caches.placement import place_blocks, split_evenly
from sectorwise.model.caches.reuse import cut_rereads
from sectorwise.model.caches.storage import L2Setup
from sectorwise.model.caches.window import observe_last, open_window
from sectorwise.model.caches.written import Stored, count_written, size_written
from sectorwise.model.copy_sites import add_copy_sites
from sectorwise.model.latency import MEASURED_DEVICE
from sectorwise.model.schedule import Shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.device import DeviceSpec
    from sectorwise.machine.execution import Execution, Site
    from sectorwise.measurements import CacheBehaviour
    from sectorwise.model.caches.chain import Placing
    from sectorwise.model.caches.contention import Contention
    from sectorwise.model.caches.held import Held
    from sectorwise.model.caches.l1 import L1Result
    from sectorwise.model.caches.l2 import L2Result
    from sectorwise.model.caches.window import Window
    from sectorwise.model.occupancy import Occupancy

DEFAULT_FETCH_BYTES: Final = 64

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})
_CACHED_SPACES: Final = frozenset({Space.GLOBAL, Space.GENERIC, Space.LOCAL})


@dataclass(frozen=True, slots=True)
class SiteTraffic:
    """Where the sectors come from that one load asks for; all sectors of 32 bytes, over the launch.

    `waiting` are those of `l2_hits` that were still on their way from DRAM for another SM. `late_share` is the part of
    the requests that ask for a line that L1 does not have at the time, `late_lines_share` that of the lines: a sector
    that is on its way to L1 counts as a hit, and its request waits like one that missed.
    """

    instruction: int
    asked: float
    l1_hits: float
    l2_hits: float
    dram: float
    waiting: float
    late_share: float
    late_lines_share: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a launch moves between the levels; its L2 is `warm` from the same launch before, or empty.

    Or it has what the launches before it left (`chained`); `left` is what the next one finds, of a chain.

    `l1_hit_sectors` are sectors of global loads that L1 has, or is waiting for. `l2_sectors_read_from_sm` is what
    reaches the L2 from the SMs, `l2_sectors_fabric_read` what crosses between its halves, `l2_sectors_read` both.
    `dram_bytes_write` leaves out what stays dirty in the L2. `lone_bytes_read` are those
    of `dram_bytes_read` that lie alone, without a neighbour of 64 bytes; `wanted_bytes_read` those in sectors that
    loads want, then or later. `sites` has each load from global or local
    memory, `passes` the cycles that L1 takes for a request of each memory instruction, and
    `contention` what atomics that meet keep the L2 busy with.
    `distinct_load_sectors` are those that loads ask for at least once, None where not all of them were seen.
    `window_blocks` of the launch's blocks were followed; `borrowed`: the caches are those of another
    device. `assumed` says what was borrowed or guessed.
    """

    l1_hit_sectors: int
    l2_sectors_read_from_sm: int
    l2_sectors_fabric_read: int
    dram_bytes_read: int
    dram_bytes_write: int
    lone_bytes_read: int
    wanted_bytes_read: int
    sites: tuple[SiteTraffic, ...]
    passes: Mapping[int, float]
    contention: Contention
    distinct_load_sectors: int | None
    window_blocks: int
    warm: bool
    borrowed: bool
    assumed: tuple[str, ...]
    chained: bool = False
    left: Chain | None = None

    @property
    def l2_sectors_read(self) -> int:
        """Reads that the L2 counts: from the SMs, and by one half from the other."""
        return self.l2_sectors_read_from_sm + self.l2_sectors_fabric_read

    def shares(self) -> dict[int, Shares]:
        """Where the sectors of each load come from."""
        return {
            site.instruction: Shares(
                site.dram / site.asked,
                site.l2_hits / site.asked,
                site.waiting / site.asked,
                site.late_share,
                site.late_lines_share,
            )
            for site in self.sites
            if site.asked
        }


def open_window_of(bound: BoundLaunch, execution: Execution, occupancy: Occupancy) -> Window:
    """The blocks of an executed launch that its caches are followed for."""
    execution = add_copy_sites(bound.kernel, execution)
    lines = sum(s.tag_requests + s.sectors_local // 4 for s in execution.sites if s.access.space in _CACHED_SPACES)
    blocks_per_wave = occupancy.blocks_per_sm * bound.device.sm_count
    return open_window(bound, int(execution.issued.sum()), lines, blocks_per_wave)


def estimate_traffic(
    bound: BoundLaunch,
    execution: Execution,
    occupancy: Occupancy,
    window: Window | None = None,
    *,
    warm: bool = False,
    chain: Chain | None = None,
) -> Traffic | None:
    """Follow some blocks of the launch through the caches; None where an address is not known.

    The blocks are run again by the reference engine, a wave of them or several where they are short; of long ones one
    is run and the others lie like it. L1 is followed on some SMs, the L2 on some of the lines. The L2 is empty, or
    `warm` from the same launch before, or has what the launches of a `chain` left; L1 is empty when a launch begins.
    """
    execution = add_copy_sites(bound.kernel, execution)
    sites = [site for site in execution.sites if site.access.space in _CACHED_SPACES]
    if any(site.unknown_because is not None for site in sites):
        return None
    device = bound.device
    behaviour, assumed = _find_behaviour(device)
    window = window or open_window_of(bound, execution, occupancy)
    groups = _group_sms(device, behaviour, _count_sms(bound, window, occupancy))
    at_once = _count_at_once(bound, occupancy)
    placement = place_blocks(window.measure_blocks(), at_once, groups)
    roles = list_roles(bound.kernel)
    depths = find_depths(bound.kernel.instructions)
    whole_bytes = require_capability(device).unified_l1_shared_bytes
    l1_setup = L1Setup(
        occupancy.l1_bytes, behaviour.l1_ways, roles, depths, bound.launch.blocks_total, whole_bytes=whole_bytes
    )
    l1 = simulate_l1(window, placement, l1_setup)
    setup = _set_up_l2(bound, behaviour, find_merging(bound, execution, occupancy, behaviour), l1, depths)
    rest, after = bound.launch.blocks_total / window.blocks - 1, None
    if chain is None:
        l2 = simulate_l2(window, placement, roles, setup, warmed_by=2 * rest if warm else None)
    else:
        placing = place_launch(chain, bound)
        find_rest = partial(_follow_rest, bound, execution, window, placing, (at_once, groups))
        l2 = simulate_l2(move_window(window, placing), placement, roles, setup, before=chain.held, find_rest=find_rest)
        if chain.held is not None and not placing.shared:
            assumed = (*assumed, "no buffer has the name of one of an earlier launch: none is found in the L2")
        assumed = (*assumed, *chain.doubts)
        after = Chain(placing.homes, placing.free, l2.held, chain.doubts)
    seen = frozenset(np.unique(window.lines.instruction).tolist())
    if window.shifts is not None:
        assumed = (*assumed, "one block was followed; the others lie like it, each of its arrays elsewhere")
    before = None if chain is None else chain.held
    buffer_bytes = size_written(bound, window, roles)
    parts = _Parts(bound, sites, window, l1, l2, behaviour, warm, before, after, seen, roles, buffer_bytes)
    return _sum_up(parts, assumed)


def _count_at_once(bound: BoundLaunch, occupancy: Occupancy) -> int:
    """Blocks that an SM gets at once: of a launch that leaves room, none gets more than its part.

    132 blocks of which an SM holds two or eight ran on 132 SMs: what an SM read again it found in L1 but for 88 of
    2,534,400 sectors (`passes_2`), and what each read once nowhere (`everyone_reads_2`).
    """
    return min(occupancy.blocks_per_sm, -(-bound.launch.blocks_total // bound.device.sm_count))


def _count_sms(bound: BoundLaunch, window: Window, occupancy: Occupancy) -> int:
    """SMs that the window's blocks fill: all, unless no more than a part of the first wave could be followed."""
    if window.blocks >= bound.launch.blocks_total:
        return bound.device.sm_count
    return min(bound.device.sm_count, -(-window.blocks // _count_at_once(bound, occupancy)))


def _group_sms(device: DeviceSpec, behaviour: CacheBehaviour, sm_count: int) -> tuple[int, ...]:
    """Sizes of the groups of SMs that requests share a way in; of another device's groups only their number holds.

    Of fewer SMs than the device has as many whole groups as there are, but two at least: one at each half of the L2.
    """
    groups = behaviour.sm_groups
    if sum(groups) != device.sm_count:
        groups = split_evenly(device.sm_count, len(groups))
    if sm_count == device.sm_count:
        return groups
    return split_evenly(sm_count, max(2, round(sm_count * len(groups) / device.sm_count)))


def _set_up_l2(
    bound: BoundLaunch, behaviour: CacheBehaviour, merging: Merging, l1: L1Result, depths: Mapping[int, int]
) -> L2Setup:
    device = bound.device
    return L2Setup(
        size_bytes=device.l2_bytes,
        halves=device.l2_partitions or 1,
        ways=behaviour.l2_ways,
        proven_ways=behaviour.l2_proven_ways,
        merge_share=merging.share,
        merge_most=behaviour.merge_most,
        fetch_bytes=device.dram_fetch_bytes or DEFAULT_FETCH_BYTES,
        hints={each.index: hint for each in bound.kernel.instructions if (hint := read_hint(each.modifiers))},
        l1_lifetimes_ticks=l1.lifetimes_ticks,
        alone=merging.alone,
        depths=depths,
        partial_lines=behaviour.l2_partial_lines,
        coming_share=merging.coming,
    )


def _follow_rest(
    bound: BoundLaunch,
    execution: Execution,
    window: Window,
    placing: Placing,
    where: tuple[int, Sequence[int]],
    second: Flow,
) -> Rest:
    """What the launch does after its window, of which the second half moved so much: its last blocks are followed."""
    rest = bound.launch.blocks_total / window.blocks - 1
    kept_a_block = (sum(second.kept_reads.values()) + second.kept_writes) * SECTOR_BYTES * 2 / window.blocks
    to_fill = bound.device.l2_bytes / kept_a_block if kept_a_block else 0.0
    last = observe_last(bound, int(execution.issued.sum()), window, to_fill)
    if last is None:
        return Rest(rest, None, None)
    placement = place_blocks(last.measure_blocks(), *where)
    return Rest(rest - last.blocks / window.blocks, move_window(last, placing), placement)


@dataclass(frozen=True, slots=True)
class _Parts:
    bound: BoundLaunch
    sites: list[Site]
    window: Window
    l1: L1Result
    l2: L2Result
    behaviour: CacheBehaviour
    warm: bool
    before: Held | None
    """What launches of a chain left in the L2."""
    after: Chain | None
    seen: frozenset[int]
    """Instructions that a block of the window came to."""
    roles: Mapping[int, Role]
    buffer_bytes: float
    """Bytes of the buffers that are written."""


def _find_behaviour(device: DeviceSpec) -> tuple[CacheBehaviour, tuple[str, ...]]:
    if device.caches is not None:
        return device.caches, ()
    lender = load_device(MEASURED_DEVICE)
    if lender.caches is None:
        raise UnsupportedDeviceError(f"{MEASURED_DEVICE} has no measured caches to borrow for {device.id}")
    return lender.caches, (f"how caches behave from {lender.id}",)


def _sum_up(parts: _Parts, assumed: tuple[str, ...]) -> Traffic:
    """Scale the window's flow up to the launch, by the sectors that each of its loads is known to ask for."""
    rest = parts.bound.launch.blocks_total / parts.window.blocks - 1
    flow = _fit_to_counts(extrapolate(parts.l2.first, parts.l2.second, 2 * rest), parts)
    loads = [site for site in parts.sites if site.access.operation in _LOADS]
    sites = tuple(_describe_site(site, parts, flow) for site in loads)
    atomics = frozenset(index for index, role in parts.roles.items() if role is Role.ATOMIC)
    hits = sum(each.l1_hits for each, site in zip(sites, loads, strict=True) if site.access.space is not Space.LOCAL)
    return Traffic(
        l1_hit_sectors=round(hits),
        l2_sectors_read_from_sm=round(sum(flow.read.values())),
        l2_sectors_fabric_read=round(sum(flow.crossed.values())),
        dram_bytes_read=round(sum(flow.dram_read.values()) * SECTOR_BYTES),
        dram_bytes_write=round(count_written(_describe_stored(parts, whole=rest == 0), flow)),
        lone_bytes_read=round(sum(flow.dram_lone.values()) * SECTOR_BYTES),
        wanted_bytes_read=round(_count_wanted(sites, sum(flow.dram_read.values()), parts.l2.wanted_share)),
        sites=sites,
        passes=parts.window.lines.passes,
        contention=grow_contention(
            parts.window.lines.contention, parts.window.repeat(parts.bound.launch.blocks_total, atomics)
        ),
        distinct_load_sectors=None if rest else parts.window.count_all_distinct(s.instruction for s in loads),
        window_blocks=parts.window.blocks,
        warm=parts.warm,
        borrowed=parts.bound.device.caches is None,
        assumed=assumed,
        chained=parts.before is not None,
        left=parts.after,
    )


def _describe_stored(parts: _Parts, *, whole: bool) -> Stored:
    return Stored(
        l2_bytes=parts.bound.device.l2_bytes,
        behaviour=parts.behaviour,
        result=parts.l2,
        before=parts.before,
        buffer_bytes=parts.buffer_bytes,
        whole=whole,
        warm=parts.warm,
    )


def _count_wanted(sites: Iterable[SiteTraffic], fetched: float, wanted_share: float) -> float:
    """Bytes of the fetched sectors that loads want: those that they miss, or find because a neighbour was missed."""
    return SECTOR_BYTES * max(sum(site.dram for site in sites), wanted_share * fetched)


def _fit_to_counts(flow: Flow, parts: _Parts) -> Flow:
    """The flow of each instruction in proportion to what it is known to ask for, and to miss in L1.

    Loads that no block of the window came to are taken to be like all others together; those of which no line is in
    the sample have few lines, which DRAM gives once. The L2 is followed for a sample of the lines: an array of few
    lines, asked for often, may be in it too often. What comes from DRAM does not depend on how well L1 was followed
    for these lines; what the L2 reads does.
    """
    asked = {site.instruction: _count_asked(site) for site in parts.sites}
    seen = {i: asked[i] / count for i, count in flow.asked.items() if count and i in asked}
    loads = {site.instruction for site in parts.sites if site.access.operation in _LOADS}
    known = sum(asked[i] for i in loads & parts.seen)
    growth = sum(asked[i] for i in loads) / known if known else 1.0
    by_asked = {i: factor * growth if i in loads else factor for i, factor in seen.items()}
    filled = {i: growth * asked[i] * (1 - parts.l1.hit_share(i)) for i in seen if i in loads}
    by_filled = {i: filled[i] / count for i, count in flow.filled.items() if count and i in filled}

    def scale(counts: Mapping[int, float], factors: Mapping[int, float]) -> dict[int, float]:
        return {instruction: count * factors.get(instruction, 1.0) for instruction, count in counts.items()}

    read = scale(flow.read, by_filled)
    dram_read = scale(flow.dram_read, by_asked)
    merged = sum(flow.read.values()) / sum(flow.filled.values()) if flow.filled else 1.0
    for instruction in (loads & parts.seen) - set(flow.asked):
        read[instruction] = asked[instruction] * (1 - parts.l1.hit_share(instruction)) * merged
        dram_read[instruction] = min(read[instruction], parts.window.count_distinct(instruction))
    reached = {i: factor * flow.filled.get(i, 0.0) for i, factor in by_filled.items()}
    stores = [site for site in parts.sites if site.access.operation is Operation.STORE]
    by_stored = sum(_count_asked(site) for site in stores) / flow.stored if stores and flow.stored else 1.0
    stored = min(by_stored * flow.kept_writes, parts.buffer_bytes / SECTOR_BYTES)
    read_once = cut_rereads(parts.bound, parts.window, parts.l2.switches, dram_read, reached, stored)
    dram_read = scale(dram_read, read_once)
    return replace(
        flow,
        kept_writes=flow.kept_writes * by_stored,
        dirtied=flow.dirtied * by_stored,
        dram_written=flow.dram_written * by_stored,
        filled_up=flow.filled_up * by_stored,
        read=read,
        missed=scale(flow.missed, read_once),
        crossed=scale(flow.crossed, by_asked),
        kept_reads=scale(scale(flow.kept_reads, by_asked), read_once),
        dram_read=dram_read,
        dram_lone=scale(scale(flow.dram_lone, by_asked), read_once),
    )


def _count_asked(site: Site) -> float:
    return float(site.sectors_local if site.access.space is Space.LOCAL else site.sectors)


def _describe_site(site: Site, parts: _Parts, flow: Flow) -> SiteTraffic:
    asked = _count_asked(site)
    hits = asked * parts.l1.hit_share(site.instruction)
    filled = flow.filled.get(site.instruction, 0.0)
    if site.instruction in parts.seen:
        missed = flow.missed.get(site.instruction, 0.0) / filled if filled else 0.0
        waited = flow.waited.get(site.instruction, 0.0) / filled if filled else 0.0
    else:
        together = sum(flow.filled.values())
        missed = sum(flow.missed.values()) / together if together else 0.0
        waited = sum(flow.waited.values()) / together if together else 0.0
    dram = (asked - hits) * missed
    late = parts.l1.late_shares(site.instruction)
    return SiteTraffic(site.instruction, asked, hits, asked - hits - dram, dram, (asked - hits) * waited, *late)
