"""Turns a kernel's counts and its estimated time into the parts of that time, each with its cause."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.model.roofline import Level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.analysis.instructions import BulkCopyUse

_SECTOR_BYTES: Final = 32
_LINE_BYTES: Final = 128
_SECTORS_A_LINE: Final = 4


class Cause(StrEnum):
    """What a part of the time goes to, in the order in which the parts are taken apart."""

    LAUNCH = "launch"
    WORK = "work"
    SECTORS = "sectors"
    CONFLICTS = "conflicts"
    SPILLS = "spills"
    TAIL = "tail"
    PACE = "pace"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time; `amount` is what it comes from, in `unit`. None: not known.

    `held_up_by` is what the estimate names for the `PACE`: `latency`, a level or a pipe; None for all other causes.
    """

    cause: Cause
    held_up_by: str | None
    ns: float | None
    amount: float | None
    unit: str


@dataclass(frozen=True, slots=True)
class Extra:
    """Bytes beyond the ideal: at the L2, and at L1's data stage, where a pass is 128 bytes."""

    l2_bytes: int
    l1_bytes: int


def split_time(kernel: KernelAnalysis) -> tuple[Part, ...]:
    """The parts of the estimated time; their sum is the estimate where there is one.

    The least time of the roofline is worked out again and again, each time with more of what the kernel does beyond
    the ideal: first with ideal sectors and passes and without local memory (`WORK`), then with its sectors and lines,
    its bank conflicts, its local memory, then with its waves at their real fill (`TAIL`). What is left of the estimate
    is `PACE`: waiting for data with too little in flight, issuing, or whatever `time.bound` names. So each part is what
    its cause adds to all before it: a fault that hides behind a slower resource costs nothing.
    """
    faults = _count_extras(kernel.sites, kernel.copies)
    floors = None if faults is None else _raise_floor(kernel, faults)
    launch_ns = None if kernel.time is None else kernel.time.parts_ns["launch"]
    if floors is None:
        steps: list[float | None] = [None] * 4
    else:
        steps = [floors[0], *(after - before for before, after in pairwise(floors))]
    tail_ns, pace_ns = _split_rest(kernel, None if floors is None else floors[-1])
    amounts = _measure(kernel)
    times = (launch_ns, *steps, tail_ns, pace_ns)
    bound = None if kernel.time is None else kernel.time.bound
    return tuple(
        Part(cause, bound if cause is Cause.PACE else None, ns, amount, unit)
        for cause, ns, (amount, unit) in zip(Cause, times, amounts, strict=True)
    )


def _raise_floor(kernel: KernelAnalysis, extras: tuple[Extra, ...]) -> list[float]:
    """The least time without the three kinds of extra bytes, then with the first, the first two, all three."""
    levels = {level.level: level for level in kernel.roofline.levels}
    fixed = [levels[name].least_ns or 0.0 for name in (Level.DRAM, Level.ISSUE) if name in levels]
    fixed.append(kernel.roofline.compute_ns)
    floors = []
    for taken in range(len(extras) + 1):
        missing = extras[taken:]
        times = list(fixed)
        for name, bytes_missing in (
            (Level.L2, sum(each.l2_bytes for each in missing)),
            (Level.L1, sum(each.l1_bytes for each in missing)),
        ):
            level = levels.get(name)
            if level is not None and level.amount is not None:
                times.append(max(0.0, level.amount - bytes_missing) / level.ceiling_per_ns)
        floors.append(max(times))
    return floors


def _count_extras(sites: Iterable[MemorySite], bulk: Iterable[BulkCopyUse]) -> tuple[Extra, ...] | None:
    """Bytes beyond the ideal, by cause; None where a site is not known: a partial sum would pass for the whole."""
    sectors = lines = passes = local = 0
    for copies in bulk:
        extra = count_extra_sectors(copies)
        if extra is None:
            return None
        sectors += extra
    for site in sites:
        if (
            site.sectors is None
            or site.sectors_ideal is None
            or site.tag_requests is None
            or site.wavefronts_ideal is None
            or site.wavefronts_hardware is None
            or site.sectors_local is None
        ):
            return None
        sectors += site.sectors - site.sectors_ideal
        if site.space is not Space.SHARED and site.operation is not Operation.ASYNC_COPY:
            lines += max(0, site.tag_requests - max(site.executed, -(-site.sectors_ideal // _SECTORS_A_LINE)))
        passes += max(0, site.wavefronts_hardware - site.wavefronts_ideal)
        local += site.sectors_local
    return (
        Extra(_SECTOR_BYTES * sectors, _LINE_BYTES * lines),
        Extra(0, _LINE_BYTES * passes),
        Extra(_SECTOR_BYTES * local, _SECTOR_BYTES * local),
    )


def count_extra_sectors(copies: BulkCopyUse) -> int | None:
    """Sectors at the L2 beyond those that the bytes inside of the tensor take; None where they are not known."""
    if copies.sectors_l2 is None or copies.asked_bytes is None or copies.outside_bytes is None:
        return None
    return max(0, copies.sectors_l2 - -(-(copies.asked_bytes - copies.outside_bytes) // _SECTOR_BYTES))


def _split_rest(kernel: KernelAnalysis, floor_ns: float | None) -> tuple[float | None, float | None]:
    """What the unevenly filled waves cost, and what is left."""
    if kernel.time is None or floor_ns is None:
        return None, None
    rest_ns = kernel.time.estimate_ns - kernel.time.parts_ns["launch"] - floor_ns
    # Of blocks that share their SM's throughput: what waits does not get longer when a wave is half empty.
    tail_ns = min(max(0.0, rest_ns), floor_ns * (kernel.waves.slowdown_if_throughput_bound - 1))
    return tail_ns, rest_ns - tail_ns


def _measure(kernel: KernelAnalysis) -> tuple[tuple[float | None, str], ...]:
    """What each cause comes from, in the order of `Cause`."""
    totals = kernel.totals
    conflicts = None
    if None not in (hardware := [site.wavefronts_hardware for site in kernel.sites]):
        ideal = totals.shared_wavefronts_ideal
        conflicts = None if ideal is None else sum(count for count in hardware if count is not None) - ideal
    excess = None
    if totals.l2_theoretical_sectors is not None and totals.l2_theoretical_sectors_ideal is not None:
        excess = totals.l2_theoretical_sectors - totals.l2_theoretical_sectors_ideal
        extras = [count_extra_sectors(copies) for copies in kernel.copies]
        excess = None if None in extras else excess + sum(extra for extra in extras if extra is not None)
    in_flight = None if kernel.concurrency is None else kernel.concurrency.in_flight_bytes_per_sm
    return (
        (None, ""),
        (totals.instructions, "warp instructions"),
        (excess, "sectors beyond the ideal"),
        (conflicts, "wavefronts beyond the ideal"),
        (totals.l2_theoretical_sectors_local, "sectors of local memory"),
        (kernel.waves.waves, "waves"),
        (in_flight, "bytes in flight an SM"),
    )
