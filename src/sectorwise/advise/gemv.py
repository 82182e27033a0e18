"""Turns a weight's shape, type and storage into the mappings of y = W x, what each costs, and which is fastest."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from sectorwise.advise.crossovers import Axis, Crossover, find_crossovers
from sectorwise.advise.dtypes import find_dtype
from sectorwise.advise.gemv_batch import list_matrix_ways, list_shared_column_ways, list_shared_row_ways
from sectorwise.advise.gemv_plans import VECTOR_BYTES, Way, Weight, list_column_ways, list_row_ways
from sectorwise.advise.gemv_split import list_split_ways
from sectorwise.advise.plan import estimate
from sectorwise.advise.prepack import list_prepackings
from sectorwise.advise.ranking import EQUAL, Ranking, compare_costs, rank
from sectorwise.device import DeviceSpec, load_device
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.advise.plan import Cost

LAYOUTS: Final = ("NK", "KN")
_DTYPES: Final = ("fp32", "bf16", "fp16", "fp8", "int8", "int4", "fp4")
_MOST_EXTENT: Final = 1 << 24
_MOST_BATCH: Final = 4096
_ROWS_UNIT: Final = 32
_EFFICIENT: Final = 0.9


@dataclass(frozen=True, slots=True)
class Mapping:
    """One mapping of threads to the weight.

    `lane_stride_bytes` is how far apart neighbouring lanes load; `loads_bytes` the width of a lane's load;
    `reduction_instructions` those of one warp at its end; `threads_needed` those that keep the memory busy with loads
    of this width, `threads` of the cost those that there are. So many vectors `at_once` make `rounds` that each read
    the weight. Ways of one `kind` differ in how much.
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
    kind: str
    at_once: int
    rounds: int


def advise_gemv(
    n: int,
    k: int,
    dtype: str = "bf16",
    layout: str = "NK",
    *,
    batch: int = 1,
    device: str = "h200",
    crossovers: bool = True,
) -> Ranking[Mapping]:
    """Mappings of a matrix-vector product, the fastest first; x and y are fp32, sums too.

    `layout` is NK (`[N, K]`, rows of K contiguous, as PyTorch stores a linear layer) or KN. With `crossovers` other
    sizes are looked at too, for where the order reverses: that takes seconds. Raises `ArgumentError`.

    >>> advise_gemv(4096, 4096, crossovers=False).find("a thread a row").lane_stride_bytes
    8192
    """
    weight = make_weight(n, k, dtype, layout, batch)
    spec = load_device(device)
    ways, refused = _judge_all(weight, spec)
    if not ways:
        raise ArgumentError(f"no mapping fits an SM of {spec.name}: {'; '.join(refused)}")
    shape = ", ".join(f"{extent:,}" for extent in ((n, k) if layout == "NK" else (k, n)))
    return rank(
        f"y = W x, W [{shape}] ({layout}) {weight.dtype.name}, x fp32, batch {batch}, on {spec.id}",
        ways,
        reason=_explain,
        detail=_describe,
        crossovers=_find_crossovers(weight, ways, spec) if crossovers else (),
        notes=(*_conclude(weight, ways, spec), *refused),
    )


def _judge_all(weight: Weight, device: DeviceSpec) -> tuple[list[Mapping], list[str]]:
    """Every mapping, and what is said of those that fit no SM."""
    ways, refused = [], []
    for each in _list_ways(weight, device):
        try:
            ways.append(_judge(each, device))
        except ArgumentError:
            refused.append(f"{each.plan.name} fits no SM: too many registers or too much shared memory")
    return ways, refused


def _list_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    if weight.layout == "NK":
        listed = list_row_ways(weight, device) + list_split_ways(weight, device) + list_shared_row_ways(weight, device)
    else:
        listed = list_column_ways(weight, device) + list_shared_column_ways(weight, device)
    saturates = find_saturation(weight, device)
    if saturates is not None and weight.batch >= saturates:
        listed += list_matrix_ways(weight, device)
    return listed


def _find_crossovers(weight: Weight, ways: Sequence[Mapping], device: DeviceSpec) -> tuple[Crossover, ...]:
    """The batch, K and N at which another mapping is faster than the one that is fastest here."""
    best = min(ways, key=lambda way: way.cost.time_ns)
    unit = weight.vector_elements
    rows = max(unit, _ROWS_UNIT)
    axes = (
        Axis("batch", weight.batch, 1, 1, _MOST_BATCH),
        Axis("K", weight.k, unit, unit, _MOST_EXTENT),
        Axis("N", weight.n, rows, rows, _MOST_EXTENT),
    )

    def judge(name: str, value: int) -> dict[str, tuple[str, float]]:
        n, k = value if name == "N" else weight.n, value if name == "K" else weight.k
        other = replace(weight, n=n, k=k, batch=value if name == "batch" else weight.batch)
        times: dict[str, tuple[str, float]] = {}
        for way in _judge_all(other, device)[0]:
            if way.kind not in times or way.cost.time_ns < times[way.kind][1]:
                times[way.kind] = way.name, way.cost.time_ns
        return times

    return tuple(found for axis in axes for found in find_crossovers(axis, best.kind, partial(judge, axis.name), EQUAL))


def _describe(way: Mapping) -> str:
    """Lane stride, the weight's sectors, instructions, and threads against those that the memory needs."""
    sectors = f"{way.weight_sectors:.4g} {'sector' if way.weight_sectors == 1 else 'sectors'}"
    lanes = f"lanes {way.lane_stride_bytes:,} B apart, {sectors} a load of W"
    threads = f"{way.cost.threads:,} threads run, {_weigh_threads(way)}"
    if way.rounds > 1:
        threads += f"; {way.at_once} vectors at once, so that W is read {way.rounds} times"
    return (
        f"{lanes}; {way.cost.instructions / 1e6:.3g} M instructions, {way.reduction_instructions} to reduce; {threads}"
    )


def _weigh_threads(way: Mapping) -> str:
    """Whether so many keep the memory busy."""
    return f"{way.threads_needed:,} {'are enough' if way.cost.threads >= way.threads_needed else 'would be enough'}"


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
    return Mapping(
        name=way.plan.name,
        cost=cost,
        lane_stride_bytes=way.lane_stride_bytes,
        load_bytes=way.load_bytes,
        weight_sectors=way.source.sectors,
        weight_efficiency=way.source.sectors_ideal / way.source.sectors,
        reduction_instructions=way.reduction_instructions,
        threads_needed=math.ceil(cost.bytes_needed * device.sm_count / (way.load_bytes * way.together)),
        condition=way.condition,
        kind=way.kind,
        at_once=way.share.at_once,
        rounds=way.share.rounds,
    )


def _explain(winner: Mapping, loser: Mapping) -> str:
    cost = loser.cost
    if loser.weight_efficiency <= _EFFICIENT < winner.weight_efficiency:
        return (
            f"lanes {loser.lane_stride_bytes:,} B apart: {loser.weight_sectors:.4g} sectors a request, "
            f"{100 * loser.weight_efficiency:.3g} % efficient"
        )
    asked, most = (min(1.0, way.cost.threads / way.threads_needed) for way in (loser, winner))
    if asked < _EFFICIENT * most:
        return f"{cost.threads:,} threads with {loser.load_bytes}-byte loads; the memory needs {loser.threads_needed:,}"
    return compare_costs(winner.cost, cost)


def _conclude(weight: Weight, ways: Sequence[Mapping], device: DeviceSpec) -> tuple[str, ...]:
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
    notes += [f"prepacking for {each.instruction}: {each.expression}" for each in list_prepackings(weight.dtype.name)]
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
