"""Turns a weight and a batch into plans that reuse through shared memory, or compute with matrix instructions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.gemv_plans import (
    BLOCK_WARPS,
    BURST_WIDE,
    VECTOR_BYTES,
    X_BYTES,
    Y_BYTES,
    Share,
    Way,
    Weight,
    count_registers,
    finish_plan,
    gather_parts,
    load_x,
    share_batch,
)
from sectorwise.advise.steps import WARP_LANES, Step, barrier, load, shared, store, work

if TYPE_CHECKING:
    from sectorwise.device import DeviceSpec

_THREADS: Final = WARP_LANES * BLOCK_WARPS
_SLICE_BYTES: Final = 32 << 10
"""Of x in shared memory at once, so that several blocks fit an SM."""

_MOST_PASSES: Final = 8
_ROWS: Final = 4
_TILE_ROWS: Final = 16
_WEIGHT_FROM: Final = BLOCK_WARPS
"""The batch from which each warp of a block has a vector of its own."""

_MMA_COLUMNS: Final = 8
"""Columns of the least matrix instruction, m16n8: a smaller batch wastes the others."""

_MMA_OPERATIONS: Final = 2 * 16 * 8 * 16
_MOST_COLUMNS: Final = 64
_MMA_TOGETHER: Final = 4


def list_shared_row_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [N, K] that share x, or the weight, among the warps of a block."""
    if weight.row_bytes < WARP_LANES * VECTOR_BYTES:
        return []
    ways = []
    if weight.n % _ROWS == 0:
        ways.append(_share_x_along_k(weight, device))
    if weight.batch >= _WEIGHT_FROM and weight.n % _TILE_ROWS == 0:
        ways.append(_share_weight(weight, device))
    return ways


def list_shared_column_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """The mapping of a weight [K, N] in which the warps of a block share x."""
    return [_share_x_along_n(weight, device)] if weight.k >= 4 * BLOCK_WARPS else []


def _share_x_along_k(weight: Weight, device: DeviceSpec) -> Way:
    """A block copies a slice of x, in the order in which lanes read it, and each warp goes over it with its rows."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * VECTOR_BYTES, VECTOR_BYTES)
    elements = weight.vector_elements
    fixed = 4 * BURST_WIDE + 8
    share = share_batch(weight, _ROWS, fixed, most=_SLICE_BYTES // (WARP_LANES * elements * X_BYTES))
    whole = weight.k / (WARP_LANES * elements)
    of_pass = share.at_once * WARP_LANES * elements * X_BYTES
    passes = max(1, min(_MOST_PASSES, int(whole), _SLICE_BYTES // of_pass))
    one = [
        *_ask_one_by_one(weight, source, _ROWS),
        shared("x", lane * VECTOR_BYTES, VECTOR_BYTES, times=share.at_once * elements * X_BYTES / VECTOR_BYTES),
        work("multiply", _ROWS * elements * share.at_once, pipe="fp32", waits=True),
        work("loop", 5),
    ]
    loop = [*_stage(passes * of_pass), *one * passes]
    reduction = 10 * _ROWS * share.at_once
    once = (
        work("index", 20),
        work("reduce", reduction, pipe="memory", waits=True),
        store("y", np.zeros((1, WARP_LANES), dtype=np.int64), Y_BYTES, times=share.at_once * _ROWS),
    )
    grid = -(-weight.n // (_ROWS * BLOCK_WARPS)), _THREADS
    name = f"a warp {_ROWS} rows, x shared"
    plan = finish_plan(weight, share, name, grid, (loop, once), whole / passes, device)
    plan = replace(plan, shared_bytes=passes * of_pass)
    return Way(
        plan,
        source,
        VECTOR_BYTES,
        VECTOR_BYTES,
        reduction,
        "x is read more than once",
        BURST_WIDE,
        "x in shared memory",
        share,
    )


def _share_weight(weight: Weight, device: DeviceSpec) -> Way:
    """A block copies 16 rows' slice of the weight, and each warp multiplies all of it with vectors of its own."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * VECTOR_BYTES, VECTOR_BYTES)
    elements = weight.vector_elements
    share = share_batch(weight, _TILE_ROWS // BLOCK_WARPS, 12, most=8 * BLOCK_WARPS)
    vectors = -(-share.at_once // BLOCK_WARPS)
    rows = _TILE_ROWS // BLOCK_WARPS
    x_loads = vectors * elements * X_BYTES / VECTOR_BYTES
    loop = [
        replace(source, times=rows),
        barrier(),
        shared("tile", lane * VECTOR_BYTES, VECTOR_BYTES, operation="store", times=rows),
        barrier(),
        load_x(weight, Share(1, 1, 0), lane * elements * X_BYTES, VECTOR_BYTES, x_loads, device),
        shared("rows", lane * VECTOR_BYTES, VECTOR_BYTES, times=_TILE_ROWS),
        work("decode", _TILE_ROWS * elements * weight.dtype.decode_instructions, waits=True),
        work("multiply", _TILE_ROWS * elements * vectors, pipe="fp32"),
        work("loop", 5),
    ]
    reduction = 10 * _TILE_ROWS * vectors
    once = (
        work("index", 24),
        work("reduce", reduction, pipe="memory", waits=True),
        store("y", np.zeros((1, WARP_LANES), dtype=np.int64), Y_BYTES, times=vectors * _TILE_ROWS),
    )
    grid = -(-weight.n // _TILE_ROWS), _THREADS
    name = f"{_TILE_ROWS} rows a block, W shared"
    passes = weight.k / (WARP_LANES * elements)
    plan = finish_plan(weight, share, name, grid, (loop, once), passes, device)
    plan = replace(plan, shared_bytes=_TILE_ROWS * WARP_LANES * VECTOR_BYTES)
    condition, kind = f"the batch is at least {_WEIGHT_FROM}", "weight in shared memory"
    return Way(plan, source, VECTOR_BYTES, VECTOR_BYTES, reduction, condition, rows, kind, share)


def _share_x_along_n(weight: Weight, device: DeviceSpec) -> Way:
    """A block copies a slice of x; its warps share K, and read four x at a time, the same for all lanes."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * VECTOR_BYTES, VECTOR_BYTES)
    columns = weight.vector_elements
    fixed = 4 * BURST_WIDE + 4
    share = share_batch(weight, columns, fixed)
    whole = weight.k / (4 * BLOCK_WARPS)
    of_pass = share.at_once * 4 * BLOCK_WARPS * X_BYTES
    passes = max(1, min(_MOST_PASSES, int(whole), _SLICE_BYTES // of_pass))
    one = [
        *_ask_one_by_one(weight, source, 4),
        shared("x", lane * 0, VECTOR_BYTES, times=share.at_once),
        work("multiply", 4 * columns * share.at_once, pipe="fp32", waits=True),
        work("loop", 6),
    ]
    loop = [*_stage(passes * of_pass), *one * passes]
    once, reduction = gather_parts(columns * share.at_once, BLOCK_WARPS)
    once.append(store("y", lane * Y_BYTES * columns, Y_BYTES, times=columns * share.at_once))
    grid = -(-weight.n // (columns * WARP_LANES)), _THREADS
    name = f"{columns} columns, K/{BLOCK_WARPS}, x shared"
    plan = finish_plan(weight, share, name, grid, (loop, once), whole / passes, device)
    plan = replace(plan, shared_bytes=max(passes * of_pass, BLOCK_WARPS * columns * WARP_LANES * 4))
    condition = "K is split over the warps of a block"
    return Way(plan, source, VECTOR_BYTES, VECTOR_BYTES, reduction, condition, BURST_WIDE, "x in shared memory", share)


def _ask_one_by_one(weight: Weight, source: Step, count: int) -> list[Step]:
    """Vectors of the weight, each waited for and decoded before the next, as NVRTC orders them (see BURST_WIDE)."""
    decode = weight.vector_elements * weight.dtype.decode_instructions
    return [step for _ in range(count) for step in (source, work("decode", max(1.0, decode), waits=True))]


def _stage(slice_bytes: int) -> list[Step]:
    """A block's threads copy a slice of x from the L2 to shared memory."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    copies = max(1.0, slice_bytes / (_THREADS * VECTOR_BYTES))
    return [
        barrier(),
        load("slice", lane * VECTOR_BYTES, VECTOR_BYTES, times=copies, dram_share=0.0, l2_share=1.0),
        work("arrived", 1, waits=True),
        shared("slice", lane * VECTOR_BYTES, VECTOR_BYTES, operation="store", times=copies),
        barrier(),
    ]


def list_matrix_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Tensor cores: the weight prepacked so that a lane's fragments are one 16-byte load, decoded to halves."""
    peak = device.peaks.fp16_tflops
    if peak is None or weight.dtype.name == "fp32":
        return []
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * VECTOR_BYTES, VECTOR_BYTES)
    elements = weight.vector_elements
    at_once = min(weight.batch, _MOST_COLUMNS)
    share = Share(at_once, -(-weight.batch // at_once), count_registers(24 + at_once))
    tiles = -(-at_once // _MMA_COLUMNS)
    # One m16n8k16 takes 8 elements of each lane's weight.
    products = elements / 8 * tiles
    cycles = _MMA_OPERATIONS * device.sm_count * device.boost_mhz / (1e6 * peak)
    passes = weight.n * weight.k / (elements * WARP_LANES)
    warps = max(1, min(device.sm_count * 64, round(passes / 8)))
    each = passes / warps
    unroll = min(each, float(_MMA_TOGETHER))
    decode = 0.0 if weight.dtype.bits == 16 else elements * weight.dtype.decode_instructions / 2
    loop = (
        replace(source, times=unroll),
        load_x(weight, share, lane * 8, 8, unroll * products, device),
        work("decode", unroll * decode, waits=True),
        work("mma", unroll * products, pipe="mma", pipe_cycles=cycles),
        work("loop", unroll * 2),
    )
    once = (work("index", 40), work("reduce", 4.0 * tiles, waits=True), store("y", lane * 4, 4, times=2 * tiles))
    grid = -(-warps // BLOCK_WARPS), _THREADS
    plan = finish_plan(weight, share, "mma, prepacked weight", grid, (loop, once), each / unroll, device)
    condition = "the batch is one for which FMA saturates"
    return [Way(plan, source, VECTOR_BYTES, VECTOR_BYTES, 4 * tiles, condition, _MMA_TOGETHER, "mma", share)]
