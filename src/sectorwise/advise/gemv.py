"""Turns a weight's shape, type and storage into the mappings of y = W x, what each costs, and which is fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.advise.dtypes import find_dtype
from sectorwise.advise.gemv_plans import (
    UNROLL_NARROW,
    UNROLL_WIDE,
    VECTOR_BYTES,
    Way,
    Weight,
    list_column_ways,
    list_matrix_ways,
    list_row_ways,
)
from sectorwise.advise.plan import estimate
from sectorwise.advise.prepack import Prepacking, describe_prepacking
from sectorwise.advise.ranking import Ranking, rank
from sectorwise.device import DeviceSpec, load_device
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.advise.plan import Cost

LAYOUTS: Final = ("NK", "KN")
_DTYPES: Final = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
_MOST_EXTENT: Final = 1 << 24
_MOST_BATCH: Final = 4096


@dataclass(frozen=True, slots=True)
class Mapping:
    """One mapping of threads to the weight.

    `lane_stride_bytes` is how far apart neighbouring lanes load; `loads_bytes` the width of a lane's load;
    `reduction_instructions` those of one warp at its end; `threads_needed` those that keep the memory busy with loads
    of this width, `threads` of the cost those that there are.
    """

    name: str
    cost: Cost
    lane_stride_bytes: int
    load_bytes: int
    weight_sectors: float
    weight_efficiency: float
    reduction_instructions: int
    threads_needed: int
    condition: str


def advise_gemv(
    n: int, k: int, dtype: str = "bf16", layout: str = "NK", *, batch: int = 1, device: str = "h200"
) -> Ranking[Mapping]:
    """Mappings of a matrix-vector product, the fastest first; x and y are fp32, sums too.

    `layout` is NK (`[N, K]`, rows of K contiguous, as PyTorch stores a linear layer) or KN. Raises `ArgumentError`.

    >>> advise_gemv(4096, 4096).find("a thread a row").lane_stride_bytes
    8192
    """
    weight = make_weight(n, k, dtype, layout, batch)
    spec = load_device(device)
    make = list_row_ways if weight.layout == "NK" else list_column_ways
    listed = make(weight, spec)
    saturates = find_saturation(weight, spec)
    if saturates is not None and batch >= saturates:
        listed += list_matrix_ways(weight, spec)
    ways, refused = [], []
    for each in listed:
        try:
            ways.append(_judge(each, spec))
        except ArgumentError:
            refused.append(f"{each.plan.name} fits no SM: too many registers or too much shared memory")
    if not ways:
        raise ArgumentError(f"no mapping fits an SM of {spec.name}: {'; '.join(refused)}")
    packing = describe_prepacking()
    return rank(
        f"y = W x, W [{', '.join(f'{extent:,}' for extent in ((n, k) if layout == 'NK' else (k, n)))}] "
        f"({layout}) {weight.dtype.name}, batch {batch}, on {spec.id}",
        ways,
        reason=_explain,
        detail=_describe,
        notes=(*_conclude(weight, ways, spec, packing), *refused),
    )


def _describe(way: Mapping) -> str:
    """Lane stride, the weight's sectors, instructions, and threads against those that the memory needs."""
    lanes = f"lanes {way.lane_stride_bytes:,} B apart, {way.weight_sectors:.4g} sectors a load of W"
    threads = f"{way.cost.threads:,} threads of {way.threads_needed:,} needed"
    return (
        f"{lanes}; {way.cost.instructions / 1e6:.3g} M instructions, {way.reduction_instructions} to reduce; {threads}"
    )


def make_weight(n: int, k: int, dtype: str, layout: str, batch: int) -> Weight:
    """A weight that is checked; raises `ArgumentError` for an extent, type or layout that mappings do not take."""
    found = find_dtype(dtype)
    if found.name not in _DTYPES:
        raise ArgumentError(f"a weight is one of {', '.join(_DTYPES)}, not {found.name}")
    if layout not in LAYOUTS:
        raise ArgumentError(f"layout must be NK (rows of K contiguous) or KN, got {layout!r}")
    for name, value, most in (("N", n, _MOST_EXTENT), ("K", k, _MOST_EXTENT), ("batch", batch, _MOST_BATCH)):
        if not 1 <= value <= most:
            raise ArgumentError(f"{name} is {value:,}; it must be 1 to {most:,}")
    contiguous = k if layout == "NK" else n
    if contiguous * found.bits % (8 * VECTOR_BYTES):
        least = 8 * VECTOR_BYTES // found.bits
        raise ArgumentError(
            f"{'K' if layout == 'NK' else 'N'} is {contiguous:,}: rows of {found.name} must be whole vectors of 16 "
            f"bytes, so a multiple of {least}"
        )
    return Weight(n, k, found, layout, batch)


def _judge(way: Way, device: DeviceSpec) -> Mapping:
    cost = estimate(way.plan, device)
    together = UNROLL_WIDE if way.load_bytes == VECTOR_BYTES else UNROLL_NARROW
    return Mapping(
        name=way.plan.name,
        cost=cost,
        lane_stride_bytes=way.lane_stride_bytes,
        load_bytes=way.load_bytes,
        weight_sectors=way.source.sectors,
        weight_efficiency=way.source.sectors_ideal / way.source.sectors,
        reduction_instructions=way.reduction_instructions,
        threads_needed=math.ceil(cost.bytes_needed * device.sm_count / (way.load_bytes * together)),
        condition=way.condition,
    )


def _explain(winner: Mapping, loser: Mapping) -> str:
    cost = loser.cost
    if cost.threads < loser.threads_needed and loser.weight_efficiency > 0.9:
        return f"{cost.threads:,} threads with {loser.load_bytes}-byte loads; the memory needs {loser.threads_needed:,}"
    if loser.weight_efficiency <= 0.9:
        return (
            f"lanes {loser.lane_stride_bytes:,} B apart: {loser.weight_sectors:.4g} sectors a request, "
            f"{100 * loser.weight_efficiency:.3g} % efficient"
        )
    if cost.instructions > 1.5 * winner.cost.instructions:
        return f"{cost.instructions / winner.cost.instructions:.2g} times the instructions, held up by {cost.bound}"
    return f"it is held up by {cost.bound}"


def _conclude(weight: Weight, ways: Sequence[Mapping], device: DeviceSpec, packing: Prepacking) -> tuple[str, ...]:
    best = min(ways, key=lambda way: way.cost.time_ns)
    dram_ns = best.cost.parts_ns["dram"]
    flying, needed = best.cost.bytes_in_flight / 1000, best.cost.bytes_needed / 1000
    notes = [
        f"at full speed reading takes {dram_ns / 1000:.3g} us",
        f"the winner keeps {flying:.3g} KB an SM in flight; 95 % of full speed needs {needed:.3g} KB",
    ]
    if weight.layout == "NK":
        row_bytes = weight.k * weight.dtype.bits // 8
        notes.append(
            f"the reduction is {best.reduction_instructions} instructions a warp, beside {row_bytes:,} B a row"
        )
    saturates = find_saturation(weight, device)
    notes.append(f"FMA saturates from batch {saturates} on: from there mma" if saturates else "")
    notes.append(f"{best.name} holds as long as {best.condition}")
    notes.append(f"prepacking for mma: {packing.expression}")
    return tuple(note for note in notes if note)


def find_saturation(weight: Weight, device: DeviceSpec) -> int | None:
    """The least batch (a power of two) whose fp32 multiplications take longer than reading the weight."""
    reads_gbs = max(
        (row.gbs for row in device.bandwidths if row.operation == "read"), default=device.memory_bandwidth_gbs
    )
    read_ns = weight.size_bytes / reads_gbs
    decode = weight.dtype.decode_instructions
    for batch in (1, 2, 4, 8, 16, 32, 64):
        # An FMA is two operations of the peak; decoding takes the integer lanes, half as many.
        work_ns = weight.n * weight.k * (2 * batch + 2 * 2 * decode) / (1000 * device.peaks.fp32_tflops)
        if work_ns > read_ns:
            return batch
    return None
