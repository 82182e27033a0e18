"""Turns a weight's shape, type and storage into plans of y = W x: which threads load what, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.plan import WARP_LANES, Plan, Step, barrier, load, shared, store, work
from sectorwise.device import DeviceSpec, require_capability
from sectorwise.model.occupancy import occupancy

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.advise.dtypes import Dtype

    Lanes = npt.NDArray[np.int64]

VECTOR_BYTES: Final = 16
_X_BYTES: Final = 4
_Y_BYTES: Final = 4
_ACCUMULATORS: Final = 3
"""Registers that each output of the batch takes: its sum, an x, and an address."""

UNROLL_NARROW, UNROLL_WIDE = 16, 4
"""How often NVRTC 13.0 unrolls these loops: as seen in the measured kernels `t_gemv_tpc_14336`, `t_gemv_wpr_28672`."""

_MMA_COLUMNS: Final = 8
"""Columns of the least matrix instruction, m16n8: a smaller batch wastes the others."""


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight of N outputs and K inputs, how it is stored, and how many vectors it is multiplied with."""

    n: int
    k: int
    dtype: Dtype
    layout: str
    batch: int

    @property
    def size_bytes(self) -> float:
        """Bytes of the whole weight."""
        return self.n * self.k * self.dtype.bits / 8


@dataclass(frozen=True, slots=True)
class Way:
    """A plan and its load of the weight: how far apart lanes are, bytes a load, instructions that reduce, and when."""

    plan: Plan
    source: Step
    lane_stride_bytes: int
    load_bytes: int
    reduction_instructions: int
    condition: str


def list_row_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [N, K]: lanes along K, with a reduction, or a thread a row."""
    row_bytes = weight.k * weight.dtype.bits // 8
    plans = []
    whole = WARP_LANES * VECTOR_BYTES
    if row_bytes >= whole:
        plans.append(_plan_lanes_along_k(weight, "a warp a row, 16-byte loads", VECTOR_BYTES, 1, 1))
    else:
        rows = 1 << int(math.log2(whole / row_bytes))
        plans.append(_plan_lanes_along_k(weight, f"{rows} rows a warp", VECTOR_BYTES, rows, 1))
        plans.append(_plan_lanes_along_k(weight, "a warp a row, 16-byte loads", VECTOR_BYTES, 1, 1))
    narrow = max(1, weight.dtype.bits // 8)
    if narrow < VECTOR_BYTES:
        plans.append(_plan_lanes_along_k(weight, f"a warp a row, {narrow}-byte loads", narrow, 1, 1))
    # Splitting K pays where there are fewer warps than the device holds.
    room = device.sm_count * require_capability(device).max_warps_per_sm
    plans += [
        _plan_lanes_along_k(weight, f"a warp {rows} rows, x in registers", VECTOR_BYTES, 1, 1, rows)
        for rows in (4, 8)
        if row_bytes >= whole and weight.n % rows == 0 and weight.n >= rows * room / 4
    ]
    plans += [
        _plan_lanes_along_k(weight, f"{parts} warps a row (split K)", VECTOR_BYTES, 1, parts)
        for parts in (2, 4, 8)
        if weight.n * parts <= 2 * room and row_bytes >= whole * parts
    ]
    plans.append(_plan_thread_a_row(weight, device))
    return plans


def list_column_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [K, N]: lanes along N, each thread walking down K, perhaps with K split over warps."""
    narrow = max(1, weight.dtype.bits // 8)
    plans = [_plan_lanes_along_n(weight, device, "a thread a column", narrow, 1)]
    a_lane = 8 * VECTOR_BYTES // weight.dtype.bits
    plans.append(_plan_lanes_along_n(weight, device, f"a thread {a_lane} columns", VECTOR_BYTES, 1))
    for parts in (8, 32):
        if weight.k >= 4 * parts:
            name = f"a thread {a_lane} columns, K/{parts}"
            plans.append(_plan_lanes_along_n(weight, device, name, VECTOR_BYTES, parts))
    return plans


def _plan_lanes_along_k(weight: Weight, name: str, width: int, rows: int, parts: int, together: int = 1) -> Way:
    """Lanes side by side in a row of K, and a shuffle reduction.

    `rows` rows share a warp's load, or `parts` warps a row, or a warp takes `together` rows at once and each x once.
    """
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    row_bytes = weight.k * weight.dtype.bits // 8
    lanes_a_row = WARP_LANES // rows
    active_lanes = min(lanes_a_row, max(1, row_bytes // width))
    inside = np.minimum(lane % lanes_a_row, active_lanes - 1)
    warp = np.arange(8, dtype=np.int64)[:, None]
    offsets = (warp * rows + lane // lanes_a_row) * row_bytes + inside * width
    source = load("w", offsets, width)
    elements = 8 * width / weight.dtype.bits
    passes = max(1.0, row_bytes / (lanes_a_row * width * parts))
    unroll = min(passes, float(UNROLL_WIDE if width == VECTOR_BYTES else UNROLL_NARROW))
    unroll = max(1.0, unroll / together)
    loop = _loop(weight, source, elements, inside * elements * _X_BYTES, unroll, together=together)
    shuffles = max(1, round(math.log2(active_lanes))) if active_lanes > 1 else 0
    reduction = 2 * shuffles * weight.batch * together
    once = [work("index", 20), work("reduce", reduction, pipe="memory", waits=True)]
    if parts > 1:
        once += [
            shared("partial", lane * 0 + np.arange(1)[:, None] * 4, 4, operation="store"),
            barrier(),
            shared("partials", lane % parts * 4, 4),
        ]
    once.append(store("y", np.zeros((1, WARP_LANES), dtype=np.int64), _Y_BYTES, times=weight.batch * together))
    warps = -(-weight.n * parts // (rows * together))
    plan = _finish(weight, name, (-(-warps // 8), 256), (loop, once), passes / unroll, together)
    stride = width if lanes_a_row > 1 else row_bytes
    least = WARP_LANES * width * 8 // weight.dtype.bits // rows * parts
    need = f"K is at least {least:,} elements; shorter ones leave lanes idle"
    if parts > 1 or rows > 1:
        need = (
            f"N is small: {weight.n:,} rows alone fill no device" if parts > 1 else f"K is at most {least:,} elements"
        )
    return Way(plan, source, stride, width, reduction, need)


def _plan_thread_a_row(weight: Weight, device: DeviceSpec) -> Way:
    """Each lane walks along a row of its own: every lane in a sector of its own, used by the passes that follow."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    row_bytes = weight.k * weight.dtype.bits // 8
    width = max(1, weight.dtype.bits // 8)
    plain = load("w", lane * row_bytes, width)
    blocks = -(-weight.n // 128)
    # A lane's sector lives on while its other elements are read, if L1 holds those of all resident lanes.
    threads_per_sm = min(2048, 128 * -(-blocks // device.sm_count))
    l1_bytes = occupancy(128, 32, device=device).l1_bytes
    fits = threads_per_sm * 32 <= l1_bytes
    share = width / 32 if fits else 1.0
    source = load("w", lane * row_bytes, width, dram_share=share)
    passes = weight.k * weight.dtype.bits / 8 / width
    unroll = min(passes, float(UNROLL_NARROW))
    loop = _loop(weight, source, 8 * width / weight.dtype.bits, lane * 0, unroll)
    once = (work("index", 16), store("y", lane * _Y_BYTES, _Y_BYTES, times=weight.batch))
    plan = _finish(weight, "a thread a row", (blocks, 128), (loop, once), passes / unroll)
    if not fits:
        plan = replace(plan, dram_read_bytes=plan.dram_read_bytes * 32 / width)
    live = threads_per_sm * 32
    condition = f"{live:,} B of live sectors an SM {'fit' if fits else 'do not fit'} L1's {l1_bytes:,} B"
    return Way(plan, plain, row_bytes, width, 0, condition)


def _plan_lanes_along_n(weight: Weight, device: DeviceSpec, name: str, width: int, parts: int) -> Way:
    """Lanes side by side in a row of N, each thread walking down K: coalesced, and no reduction in the warp."""
    del device
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * width, width)
    columns = max(1, 8 * width // weight.dtype.bits)
    passes = weight.k / parts
    unroll = min(passes, float(UNROLL_WIDE if width == VECTOR_BYTES else UNROLL_NARROW))
    loop = _loop(weight, source, columns, lane * 0, unroll, along_n=True)
    warps_a_block = parts if parts > 1 else 4
    groups = -(-weight.n // (columns * WARP_LANES))
    blocks = groups if parts > 1 else -(-groups // warps_a_block)
    once: list[Step] = [work("index", 16)]
    reduction = 0
    if parts > 1:
        once += [
            shared("partial", lane * 4, 4, operation="store", times=columns * weight.batch),
            barrier(),
            shared("partials", lane * 4, 4, times=max(1, columns * weight.batch // parts) * parts),
        ]
        reduction = 2 * columns * weight.batch
    once.append(store("y", lane * _Y_BYTES * columns, _Y_BYTES, times=columns * weight.batch))
    shared_bytes = parts * columns * WARP_LANES * 4 if parts > 1 else 0
    plan = _finish(weight, name, (blocks, 32 * warps_a_block), (loop, once), passes / unroll, columns)
    plan = replace(plan, shared_bytes=shared_bytes)
    return Way(plan, source, width, width, reduction, "N fills the device, or K is split over enough warps")


def list_matrix_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Tensor cores: the weight prepacked so that a lane's fragment is one 16-byte load."""
    peak = getattr(device.peaks, f"{weight.dtype.peak}_{'tops' if weight.dtype.peak == 'int8' else 'tflops'}", None)
    if peak is None or weight.dtype.name == "fp32":
        return []
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * VECTOR_BYTES, VECTOR_BYTES)
    elements = 8 * VECTOR_BYTES // weight.dtype.bits
    tiles = -(-weight.batch // _MMA_COLUMNS)
    # One m16n8k16 takes 8 elements of each lane's weight.
    products = elements / 8 * tiles
    passes = weight.n * weight.k / (elements * WARP_LANES)
    room = device.sm_count * 64
    warps = max(1, min(room, round(passes / 8)))
    each = passes / warps
    unroll = min(each, float(UNROLL_WIDE))
    decode = 0.0 if weight.dtype.bits == 16 else elements * weight.dtype.decode_instructions / 2
    loop = (
        replace(source, times=unroll),
        load("x", lane * 8, 8, times=unroll * products, dram_share=0.0, l2_share=0.05),
        work("decode", unroll * decode, waits=True),
        work("mma", unroll * products, pipe="mma"),
        work("loop", unroll * 2),
    )
    once = (work("index", 40), work("reduce", 4.0 * tiles, waits=True), store("y", lane * 4, 4, times=2 * tiles))
    name = "mma, prepacked weight"
    plan = _finish(weight, name, (-(-warps // 8), 256), (loop, once), each / unroll)
    return [Way(plan, source, VECTOR_BYTES, VECTOR_BYTES, 4 * tiles, "the batch is one for which FMA saturates")]


def _loop(
    weight: Weight,
    source: Step,
    elements: float,
    x_offsets: Lanes | npt.NDArray[np.float64],
    unroll: float,
    *,
    along_n: bool = False,
    together: int = 1,
) -> list[Step]:
    """One pass: the weight's loads, those of x, then decoding and multiplying."""
    dtype = weight.dtype
    # Along K each element has an x of its own; along N all elements of a lane share one.
    x_elements = 1.0 if along_n else elements
    x_width = 16 if x_elements >= 4 else 4
    offsets = (np.asarray(x_offsets).astype(np.int64) // x_width) * x_width
    x_loads = max(1.0, x_elements * _X_BYTES / x_width) * weight.batch
    return [
        replace(source, times=unroll * together),
        load("x", offsets.reshape(-1, WARP_LANES)[:1], x_width, times=unroll * x_loads, dram_share=0.0, l2_share=0.02),
        work("decode", unroll * together * elements * dtype.decode_instructions, waits=True),
        work("multiply", unroll * together * elements * weight.batch, pipe="fp32"),
        work("loop", 4 + unroll),
    ]


def _finish(
    weight: Weight,
    name: str,
    grid: tuple[int, int],
    steps: tuple[Sequence[Step], Sequence[Step]],
    passes: float,
    outputs: int = 1,
) -> Plan:
    """The plan of a grid (blocks, threads a block) that goes through steps (of the loop, once)."""
    return Plan(
        name,
        max(1, grid[0]),
        grid[1],
        loop=tuple(steps[0]),
        once=tuple(steps[1]),
        passes=passes,
        registers=min(255, 32 + _ACCUMULATORS * weight.batch * outputs // (1 if outputs == 1 else 2)),
        dram_read_bytes=weight.size_bytes + weight.batch * weight.k * _X_BYTES,
        dram_write_bytes=float(weight.batch * weight.n * _Y_BYTES),
    )
