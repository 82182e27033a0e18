"""Turns the estimate of a launch into what keeps it from the speed of the memory: how much time each cause takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.model.bounds import Obstacle
from sectorwise.model.time import estimate_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution, Site
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.time import Time
    from sectorwise.model.traffic import SiteTraffic, Traffic

SECTORS_IN_LINE: Final = 4
WORTH_NAMING: Final = 0.02
"""Causes of a smaller part of the estimate are within what the model cannot tell."""


@dataclass(frozen=True, slots=True)
class Cause:
    """An obstacle, and by how many ns less the launch would take without it, all else as it is."""

    obstacle: Obstacle
    ns: float


def find_causes(
    bound: BoundLaunch, execution: Execution, occupancy: Occupancy, traffic: Traffic, time: Time
) -> tuple[Cause, ...]:
    """What the launch loses to each obstacle, the largest first; obstacles that cost next to nothing are left out.

    Each is imagined away by itself and the time estimated again. Where two hold a launch up alike neither costs
    anything alone: then the pair has no name here, and the list is empty.
    """
    causes = []
    for obstacle in Obstacle:
        other = estimate_time(bound, execution, occupancy, traffic, frozenset({obstacle}))
        gained = time.estimate_ns - other.estimate_ns
        if gained > WORTH_NAMING * time.estimate_ns:
            causes.append(Cause(obstacle, gained))
    return tuple(sorted(causes, key=lambda cause: -cause.ns))


def price_requests(
    bound: BoundLaunch,
    execution: Execution,
    occupancy: Occupancy,
    traffic: Traffic,
    time: Time,
    instructions: Iterable[int],
) -> float:
    """By how many ns less the launch would take if requests of these instructions took as little as they can.

    That is, the ideal sectors, and lines and passes to match; what they ask of DRAM falls where they asked it for more
    than that.
    """
    chosen = frozenset(instructions)
    sites = tuple(_idealise(site) if site.instruction in chosen else site for site in execution.sites)
    ideal = {site.instruction: float(site.sectors_ideal) for site in sites if site.instruction in chosen}
    other = estimate_time(bound, replace(execution, sites=sites), occupancy, _idealise_traffic(traffic, ideal))
    return max(0.0, time.estimate_ns - other.estimate_ns)


def _idealise(site: Site) -> Site:
    if site.unknown_because is not None:
        return site
    lines = min(site.tag_requests, -(-site.sectors_ideal // SECTORS_IN_LINE))
    if site.access.operation in {Operation.ATOMIC, Operation.REDUCTION}:
        lines = site.tag_requests
    passes = min(site.wavefronts_hardware, site.wavefronts_ideal)
    return replace(site, sectors=site.sectors_ideal, tag_requests=lines, wavefronts=passes, wavefronts_hardware=passes)


def _idealise_traffic(traffic: Traffic, ideal: dict[int, float]) -> Traffic:
    """The traffic if these instructions asked for their ideal sectors, those that come from furthest away first."""
    sites = tuple(_cut(site, ideal[site.instruction]) if site.instruction in ideal else site for site in traffic.sites)
    before = sum(site.dram for site in traffic.sites)
    part = sum(site.dram for site in sites) / before if before else 1.0
    reached = sum(site.asked - site.l1_hits for site in traffic.sites)
    part_l2 = sum(site.asked - site.l1_hits for site in sites) / reached if reached else 1.0
    return replace(
        traffic,
        sites=sites,
        dram_bytes_read=round(traffic.dram_bytes_read * part),
        lone_bytes_read=round(traffic.lone_bytes_read * part),
        l2_sectors_read_from_sm=round(traffic.l2_sectors_read_from_sm * part_l2),
        passes={
            instruction: passes if instruction not in ideal else 1.0 for instruction, passes in traffic.passes.items()
        },
    )


def _cut(site: SiteTraffic, asked: float) -> SiteTraffic:
    dram = min(site.dram, asked)
    l2_hits = min(site.l2_hits, asked - dram)
    return replace(
        site,
        asked=asked,
        dram=dram,
        l2_hits=l2_hits,
        l1_hits=asked - dram - l2_hits,
        waiting=min(site.waiting, l2_hits),
    )
