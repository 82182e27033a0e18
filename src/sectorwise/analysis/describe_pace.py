"""Turns how a launch fills its device into the parts of the analysis that say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.analysis.data import (
    CauseUse,
    CliffsUse,
    CliffUse,
    ConcurrencyUse,
    LevelUse,
    LineTime,
    OccupancyUse,
    RooflineUse,
    SiteTrafficUse,
    TimeError,
    TimeUse,
    TrafficUse,
    WavesUse,
)
from sectorwise.machine.execution import Certainty
from sectorwise.model.cliffs import find_cliffs
from sectorwise.model.occupancy import Limiter

TIME_ERROR: Final = TimeError(median=0.05, source="111 launches above 20 us on an NVIDIA H200; docs/model-errors.md")
"""What tools/model_errors.py finds; a test holds it."""

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sectorwise.binary.ir import Location
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.pace import Pace
    from sectorwise.model.traffic import Traffic
    from sectorwise.model.waves import Waves


def describe_occupancy(occupancy: Occupancy) -> OccupancyUse:
    """The limits, with the cliffs beside them."""
    return OccupancyUse(
        limit_warps=occupancy.limit_warps,
        limit_registers=occupancy.limit_registers,
        limit_shared=occupancy.limit_shared,
        limit_shared_max_carveout=occupancy.limit_shared_max_carveout,
        limit_blocks=occupancy.limit_blocks,
        limit_barriers=occupancy.limit_barriers,
        shared_config_bytes=occupancy.shared_config_bytes,
        blocks_per_sm=occupancy.blocks_per_sm,
        theoretical_pct=occupancy.theoretical_pct,
        limiter=occupancy.limiter,
        warps_per_sm=occupancy.warps_per_sm,
        max_warps_per_sm=occupancy.max_warps_per_sm,
        l1_bytes=occupancy.l1_bytes,
        cliffs=CliffsUse(
            registers=_describe_cliff(occupancy, Limiter.REGISTERS), shared=_describe_cliff(occupancy, Limiter.SHARED)
        ),
        assumed=occupancy.assumed,
    )


def _describe_cliff(occupancy: Occupancy, resource: Limiter) -> CliffUse:
    found = find_cliffs(occupancy, resource)
    return CliffUse(gain=found.gain, loss=found.loss)


def describe_waves(waves: Waves) -> WavesUse:
    """The waves, with their ratios worked out."""
    return WavesUse(
        waves=waves.waves,
        rounds=waves.rounds,
        blocks_per_wave=waves.blocks_per_wave,
        blocks_last_wave=waves.blocks_last_wave,
        last_wave_pct=waves.last_wave_pct,
        idle_sms_last_wave=waves.idle_sms_last_wave,
        most_blocks_an_sm=waves.most_blocks_an_sm,
        fewest_blocks_an_sm=waves.fewest_blocks_an_sm,
        slowdown_if_latency_bound=waves.slowdown_if_latency_bound,
        slowdown_if_throughput_bound=waves.slowdown_if_throughput_bound,
    )


def describe_concurrency(pace: Pace) -> ConcurrencyUse | None:
    """Bytes in flight; None where nothing is loaded from global memory."""
    found = pace.concurrency
    if found is None:
        return None
    return ConcurrencyUse(
        warps_per_sm=found.warps_per_sm,
        sm_count=found.sm_count,
        requested_bytes_per_sm=found.requested_bytes_per_sm,
        in_flight_bytes_per_sm=found.in_flight_bytes_per_sm,
        needed_bytes_per_sm=found.needed_bytes_per_sm,
        latency_ns=found.latency_ns,
        queued_ns=found.queued_ns,
        load_gbs=found.load_gbs,
        memory_busy=found.memory_busy,
        bound=found.bound,
        assumed=found.assumed,
    )


def describe_roofline(pace: Pace) -> RooflineUse:
    """Every level of the device's roofline, with the kernel's place where its amount is known."""
    placed = {place.level: place for place in pace.kernel_roofline.places}
    data_type = pace.kernel_roofline.data_type
    levels = []
    for ceiling in pace.roofline.ceilings:
        place = placed.get(ceiling.level)
        levels.append(
            LevelUse(
                level=ceiling.level,
                amount=None if place is None else place.amount,
                ceiling_per_ns=ceiling.per_ns,
                least_ns=None if place is None else place.least_ns,
                intensity=None if place is None else place.intensity,
                ridge=pace.roofline.ridge(data_type, ceiling.level),
                attainable_gflops=None if place is None else place.attainable_gflops,
                assumed=ceiling.assumed,
            )
        )
    return RooflineUse(
        data_type=data_type,
        operations=int(pace.kernel_roofline.operations),
        peak_gflops=pace.roofline.peak(data_type),
        compute_ns=pace.kernel_roofline.compute_ns,
        least_ns=pace.kernel_roofline.least_ns,
        bound=pace.kernel_roofline.bound,
        levels=tuple(levels),
        assumed=pace.assumed,
    )


def describe_traffic(
    traffic: Traffic | None, places: Mapping[int, int], copies: Mapping[int, int]
) -> TrafficUse | None:
    """Where the bytes come from; `places` gives an instruction's place among the sites, or among the bulk `copies`."""
    if traffic is None:
        return None
    return TrafficUse(
        l1_hit_sectors=traffic.l1_hit_sectors,
        l2_sectors_read_from_sm=traffic.l2_sectors_read_from_sm,
        l2_sectors_read=traffic.l2_sectors_read,
        dram_bytes_read=traffic.dram_bytes_read,
        dram_bytes_write=traffic.dram_bytes_write,
        certainty=Certainty.ASSUMED if traffic.borrowed else Certainty.MODELLED,
        sites=_place_traffic(traffic, places),
        cache="chain" if traffic.chained else "warm" if traffic.warm else "cold",
        blocks_followed=traffic.window_blocks,
        assumed=traffic.assumed,
        copies=_place_traffic(traffic, copies),
    )


def _place_traffic(traffic: Traffic, places: Mapping[int, int]) -> tuple[SiteTrafficUse, ...]:
    return tuple(
        SiteTrafficUse(
            site=places[each.instruction],
            l1_hit_sectors=round(each.l1_hits),
            l2_hit_sectors=round(each.l2_hits),
            dram_sectors=round(each.dram),
        )
        for each in traffic.sites
        if each.instruction in places
    )


def describe_time(model: KernelModel, find_location: Callable[[int], Location | None]) -> TimeUse | None:
    """The estimate, with the instructions' parts of it summed by source line."""
    time = model.time
    if time is None:
        return None
    by_line: dict[Location | None, float] = {}
    for instruction, ns in time.instructions_ns.items():
        location = find_location(instruction)
        by_line[location] = by_line.get(location, 0.0) + ns
    costliest = sorted(by_line.items(), key=lambda item: -item[1])
    return TimeUse(
        estimate_ns=time.estimate_ns,
        bound=time.bound,
        parts_ns=time.parts_ns,
        ceiling_ns=time.parts_ns["dram"],
        causes=tuple(CauseUse(cause.obstacle.value, cause.ns) for cause in model.causes),
        error=TIME_ERROR,
        lines=tuple(LineTime(location, ns) for location, ns in costliest),
        assumed=time.assumed,
    )
