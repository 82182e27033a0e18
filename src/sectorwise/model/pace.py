"""Turns an executed launch into how it fills the device: waves, bytes in flight, and its place on the roofline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.counting.request import Operation, Space
from sectorwise.model.accesses import (
    average_accesses,
    count_data_passes,
    count_unknown,
    count_written,
    find_idle,
    find_shares,
)
from sectorwise.model.concurrency import Bound, estimate_concurrency
from sectorwise.model.copy_sites import add_copy_sites
from sectorwise.model.operations import count_operations
from sectorwise.model.roofline import Level, draw_roofline, place_kernel
from sectorwise.model.schedule import schedule_loop
from sectorwise.model.waves import count_waves, weigh_blocks

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution
    from sectorwise.model.concurrency import Concurrency
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.roofline import KernelRoofline, Roofline
    from sectorwise.model.time import Time
    from sectorwise.model.totals import Totals
    from sectorwise.model.traffic import Traffic
    from sectorwise.model.waves import Balance, Waves

_SECTOR_BYTES: Final = 32
_PASS_BYTES: Final = 128
_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})
_DEVICE_SPACES: Final = frozenset({Space.GLOBAL, Space.GENERIC})
_BOUNDS_OF_LOADS: Final = frozenset({"latency", "dram", "issue"})
"""Bounds of a launch's time that are those of its loads, too."""


class Pace(Struct, frozen=True):
    """How a launch fills its device.

    `concurrency` is None where the launch loads nothing from global memory. `operations` are arithmetic operations by
    data type; those in `operations_without_peak` have no peak rate on this device, and are not on the roofline.
    `kernel_roofline.data_type` is the type whose operations take the longest. `assumed` says of `concurrency` and of
    the roofline what was taken for granted. `balance` is None where no block is longer than others, or it is not known.
    """

    waves: Waves
    resident_warps_per_sm: int
    concurrency: Concurrency | None
    roofline: Roofline
    kernel_roofline: KernelRoofline
    operations: tuple[tuple[str, int], ...]
    operations_without_peak: tuple[str, ...]
    assumed: tuple[str, ...]
    balance: Balance | None = None


def estimate_pace(
    bound: BoundLaunch,
    execution: Execution,
    totals: Totals,
    occupancy: Occupancy,
    traffic: Traffic | None,
    time: Time | None = None,
) -> Pace:
    """How the launch fills its device; without `traffic` all loads are taken to come from DRAM, past all caches.

    With `time` loads come no faster than the launch as a whole lets them.
    """
    copied = sum(each.sectors_l2 for each in execution.bulk)
    execution = add_copy_sites(bound.kernel, execution)
    device = bound.device
    waves = count_waves(bound.launch.blocks_total, occupancy.blocks_per_sm, device.sm_count)
    blocks = min(occupancy.blocks_per_sm, waves.most_blocks_an_sm)
    concurrency = _pace_loads(bound, execution, occupancy, traffic, time)
    roofline = draw_roofline(device)
    peaks = dict(roofline.peaks_gflops)
    operations = count_operations(bound.kernel, execution)
    with_peak = {name: count for name, count in operations.items() if name in peaks}
    data_type = max(with_peak, key=lambda name: with_peak[name] / peaks[name], default="fp32")
    return Pace(
        waves=waves,
        resident_warps_per_sm=blocks * occupancy.warps_per_block,
        concurrency=concurrency,
        roofline=roofline,
        kernel_roofline=place_kernel(
            roofline, _find_amounts(execution, totals, traffic, copied), with_peak.get(data_type, 0), data_type
        ),
        operations=tuple(sorted(operations.items())),
        operations_without_peak=tuple(sorted(set(operations) - set(with_peak))),
        assumed=tuple(_list_assumptions(execution, concurrency, traffic)),
        balance=None
        if execution.lengths is None
        else weigh_blocks(execution.lengths, occupancy.blocks_per_sm, device.sm_count),
    )


def _pace_loads(
    bound: BoundLaunch, execution: Execution, occupancy: Occupancy, traffic: Traffic | None, time: Time | None
) -> Concurrency | None:
    """The loads of the loop that loads the most; None where nothing is loaded from global memory."""
    device = bound.device
    waves = count_waves(bound.launch.blocks_total, occupancy.blocks_per_sm, device.sm_count)
    blocks, sms = min(occupancy.blocks_per_sm, waves.most_blocks_an_sm), min(device.sm_count, waves.blocks)
    shares = None if traffic is None else find_shares(execution, traffic)
    accesses = average_accesses(execution.sites, shares, find_idle(bound.kernel, execution))
    schedule = schedule_loop(bound.kernel, accesses, execution.issued.tolist())
    if not schedule.load_bytes:
        return None

    def run_loads(least_pass_ns: float = 0.0) -> Concurrency:
        return estimate_concurrency(
            schedule,
            blocks * occupancy.warps_per_block,
            device,
            warps_per_block=occupancy.warps_per_block,
            sm_count=sms,
            pipe_cycles=least_pass_ns * device.boost_mhz / 1000,
            share=min(waves.blocks, waves.blocks_per_wave) / (blocks * sms),
        )

    alone = run_loads()
    average_gbs = 0.0 if time is None else _count_loaded(execution) / (time.estimate_ns - time.parts_ns["launch"])
    if time is None or not 0 < average_gbs < alone.load_gbs:
        return alone
    slowed = run_loads(alone.pass_ns * alone.load_gbs / average_gbs)
    return replace(slowed, bound=alone.bound if time.bound in _BOUNDS_OF_LOADS else Bound.OTHER)


def _count_loaded(execution: Execution) -> int:
    """Bytes that loads ask global memory for, in whole sectors."""
    return _SECTOR_BYTES * sum(
        site.sectors
        for site in execution.sites
        if site.access.operation in _LOADS and site.access.space in _DEVICE_SPACES and site.unknown_because is None
    )


def _find_amounts(
    execution: Execution, totals: Totals, traffic: Traffic | None, copied_sectors: int
) -> dict[Level, float]:
    """Bytes and warp instructions at the levels where they are known; totals do not have what bulk copies move."""
    amounts: dict[Level, float] = {Level.ISSUE: totals.instructions}
    sectors, local = totals.l2_theoretical_sectors, totals.l2_theoretical_sectors_local
    if traffic is not None:
        amounts[Level.DRAM] = traffic.dram_bytes_read + traffic.dram_bytes_write
        amounts[Level.L2] = _SECTOR_BYTES * (traffic.l2_sectors_read_from_sm + count_written(execution.sites))
    elif sectors is not None and local is not None and not count_unknown(execution.sites):
        amounts[Level.L2] = _SECTOR_BYTES * (sectors + local + copied_sectors)
    passes = count_data_passes(execution.sites)
    if passes is not None:
        amounts[Level.L1] = _PASS_BYTES * passes
    return amounts


def _list_assumptions(execution: Execution, concurrency: Concurrency | None, traffic: Traffic | None) -> list[str]:
    assumed = list(concurrency.assumed) if concurrency is not None else []
    if traffic is not None:
        return assumed + [text for text in traffic.assumed if text not in assumed]
    if concurrency is not None:
        assumed.append("every load comes from DRAM: caches were not followed")
        if unknown := count_unknown(execution.sites):
            assumed.append(f"{unknown} memory instructions with unknown addresses load neighbouring lanes")
    assumed.append("nothing hits in L1: bytes at the L2 are an upper bound")
    return assumed
