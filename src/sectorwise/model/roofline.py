"""Turns a device into its roofline at every level, and what a kernel moves and computes into its place there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sectorwise.device import load_device, require_capability
from sectorwise.errors import ArgumentError
from sectorwise.model.latency import MEASURED_DEVICE, describe_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.device import DeviceSpec


class Level(StrEnum):
    """A boundary at which a kernel can be held up, outermost first.

    `L1` is the data stage that L1 and shared memory have in common: bytes are wavefronts of all 32 banks.
    """

    DRAM = "dram"
    L2 = "l2"
    L1 = "l1"
    ISSUE = "issue"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that a level does a nanosecond: bytes, or warp instructions (`ISSUE`); `assumed`: why it is a guess."""

    level: Level
    per_ns: float
    assumed: str | None = None


@dataclass(frozen=True, slots=True)
class Roofline:
    """The ceilings of a device, and its arithmetic peaks in GFLOP/s (int8: GOP/s) by data type, without sparsity."""

    device: str
    ceilings: tuple[Ceiling, ...]
    peaks_gflops: tuple[tuple[str, float], ...]

    def ridge(self, data_type: str, level: Level) -> float:
        """Operations a byte (`ISSUE`: a warp instruction) from which on arithmetic is the limit, not this level."""
        return self.peak(data_type) / self.ceiling(level).per_ns

    def peak(self, data_type: str) -> float:
        """Peak rate of a data type, GFLOP/s; raises `ArgumentError` for one that the device lacks."""
        for name, peak in self.peaks_gflops:
            if name == data_type:
                return peak
        has = ", ".join(name for name, _ in self.peaks_gflops)
        raise ArgumentError(f"{self.device} has no peak rate for {data_type!r}; it has {has}")

    def ceiling(self, level: Level) -> Ceiling:
        """The ceiling of a level."""
        return next(ceiling for ceiling in self.ceilings if ceiling.level is level)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kernel stands at one level: what it moves there, how long that takes at least, and what it may compute.

    `intensity` is operations a byte (`ISSUE`: a warp instruction), None where nothing is moved; `attainable_gflops`
    the rate that this level and the peak allow together.
    """

    level: Level
    amount: float
    least_ns: float
    intensity: float | None
    attainable_gflops: float


@dataclass(frozen=True, slots=True)
class KernelRoofline:
    """A kernel on the roofline: its place at each level, the time that its arithmetic takes, and what binds.

    `least_ns` is the longest of all; `bound` names it: a level, or `compute`.
    """

    operations: float
    data_type: str
    compute_ns: float
    places: tuple[Place, ...]
    least_ns: float
    bound: str


def draw_roofline(device: DeviceSpec) -> Roofline:
    """The ceilings of an NVIDIA device at its boost clock.

    DRAM: the highest read bandwidth measured, or the part of the theoretical one that the H200 reaches. L2: measured
    where it was, else as many bytes a cycle and SM as on the H200. L1 and shared memory: all banks once a cycle and
    SM. Issue: one warp instruction a cycle and sub-partition.
    """
    capability = require_capability(device)
    memory = describe_memory(device)
    clock_ghz = device.boost_mhz / 1000
    cycles = clock_ghz * device.sm_count
    dram_assumed = next((text for text in memory.assumed if text.startswith("read ceiling")), None)
    l2_gbs, l2_assumed = _find_l2_ceiling(device)
    peaks = (
        ("fp32", device.peaks.fp32_tflops),
        ("tf32", device.peaks.tf32_tflops),
        ("fp16", device.peaks.fp16_tflops),
        ("bf16", device.peaks.bf16_tflops),
        ("fp8", device.peaks.fp8_tflops),
        ("fp4", device.peaks.fp4_tflops),
        ("int8", device.peaks.int8_tops),
    )
    return Roofline(
        device=device.id,
        ceilings=(
            Ceiling(Level.DRAM, memory.ceiling_gbs, dram_assumed),
            Ceiling(Level.L2, l2_gbs, l2_assumed),
            Ceiling(Level.L1, capability.shared_banks * capability.shared_bank_bytes * cycles),
            Ceiling(Level.ISSUE, capability.sub_partitions * cycles),
        ),
        peaks_gflops=tuple((name, 1000 * tera) for name, tera in peaks if tera is not None),
    )


def place_kernel(
    roofline: Roofline, amounts: Mapping[Level, float], operations: float, data_type: str = "fp32"
) -> KernelRoofline:
    """A kernel on the roofline, from what it counts: bytes at each boundary, warp instructions, operations.

    `amounts` has, for each level that is known, bytes (DRAM: read and written; L2: 32 for each sector between the SMs
    and the L2; L1: 128 for each wavefront) or warp instructions issued. `operations` are those of `data_type`, an FMA
    counting two.
    """
    peak = roofline.peak(data_type)
    places = []
    for ceiling in roofline.ceilings:
        if ceiling.level not in amounts:
            continue
        amount = amounts[ceiling.level]
        if amount < 0:
            raise ArgumentError(f"{ceiling.level} moves {amount}; an amount cannot be negative")
        intensity = operations / amount if amount else None
        attainable = peak if intensity is None else min(peak, intensity * ceiling.per_ns)
        places.append(Place(ceiling.level, amount, amount / ceiling.per_ns, intensity, attainable))
    compute_ns = operations / peak
    times = {str(place.level): place.least_ns for place in places} | {"compute": compute_ns}
    bound = max(times, key=lambda name: times[name])
    return KernelRoofline(operations, data_type, compute_ns, tuple(places), times[bound], bound)


def _find_l2_ceiling(device: DeviceSpec) -> tuple[float, str | None]:
    if device.l2_read_gbs is not None:
        return device.l2_read_gbs, None
    lender = load_device(MEASURED_DEVICE)
    if lender.l2_read_gbs is None:
        raise ArgumentError(f"{lender.id} has no measured L2 bandwidth to borrow for {device.id}")
    scale = device.sm_count * device.boost_mhz / (lender.sm_count * lender.boost_mhz)
    return lender.l2_read_gbs * scale, f"L2 bandwidth as many bytes a cycle and SM as on {lender.id}"
