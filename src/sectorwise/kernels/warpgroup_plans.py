"""Turns products of matrices into a launch for the tensor cores of compute capability 9.0, fed by tensor maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.batches import turn_matrix
from sectorwise.kernels.gemv_plans import C_TYPES, VECTOR_BYTES
from sectorwise.kernels.plan import (
    SCRATCH_ZEROS_BYTES,
    KernelPlan,
    Number,
    Numbers,
    Pointer,
    Scratch,
    TensorMap,
)
from sectorwise.kernels.warpgroup_tiles import BAND, DEPTH, ITEM_BYTES, LINE, Sizes, Tile, choose_tile, share_work

if TYPE_CHECKING:
    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.batches import Batch
    from sectorwise.kernels.plan import Argument

CAPABILITY: Final = (9, 0)
"""wgmma is of this one alone (PTX ISA, sm_90a)."""

_SOURCE: Final = "matmul_tma.cu"
_MOST_STEP_BYTES: Final = 1 << 40
"""Of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""


@dataclass(frozen=True, slots=True)
class Lines:
    """How a matrix lies in lines that a tensor map takes: by rows, or by columns; elements from line to line."""

    by_rows: bool
    step: int


@dataclass(frozen=True, slots=True)
class Matrices:
    """An operand of a batch: its first matrix, how its lines lie, elements to the next, 0 where all have the same."""

    first: DeviceArray
    lines: Lines
    apart: int


def find_lines(array: DeviceArray) -> Lines | None:
    """The lines of a matrix, None where no tensor map takes them.

    They begin at multiples of 16 bytes, lie apart, and are whole pieces of 16 bytes: what a map stores ends with such a
    piece, though its line ends before (seen on an H200).
    """
    if array.operand.address % VECTOR_BYTES:
        return None
    for near in (1, 0):
        extent, lines = array.shape[near], array.shape[1 - near]
        step = array.strides[1 - near] if lines > 1 else extent
        whole = extent * ITEM_BYTES % VECTOR_BYTES == 0 and step * ITEM_BYTES % VECTOR_BYTES == 0
        if array.strides[near] == 1 and step >= extent and whole:
            return Lines(near == 1, step) if step * ITEM_BYTES < _MOST_STEP_BYTES else None
    return None


def find_tile(number: int, tiles_down: int, tiles_across: int) -> tuple[int, int, int]:
    """Which tile, down and across, of which matrix has that number: `find_tile` of the source, in Python."""
    matrix, number = divmod(number, tiles_down * tiles_across)
    band, rest = divmod(number, BAND * tiles_across)
    height = min(BAND, tiles_down - BAND * band)
    return BAND * band + rest % height, rest // height, matrix


def plan_warpgroups(batch: Batch, multiprocessors: int) -> KernelPlan | None:
    """The launch of a batch of products on a GPU of so many SMs, None where no tensor map takes an operand.

    No axis is empty, and there are two SMs at least. What lies by columns, C, is computed turned: C^T = B^T A^T.
    Operands are called a, b and c.
    """
    arrays = (replace(array, name=name) for array, name in zip((batch.a, batch.b, batch.c), "abc", strict=True))
    found = [_find_matrices(array, apart) for array, apart in zip(arrays, batch.apart, strict=True)]
    a, b, c = found
    if a is None or b is None or c is None:
        return None
    if not c.lines.by_rows:
        a, b, c = _turn(b), _turn(a), _turn(c)
    (m, n), k = c.first.shape, a.first.shape[1]
    sizes = Sizes(m, n, k, batch.count, (a.lines.by_rows, b.lines.by_rows))
    return plan_tile(a, b, c, sizes, choose_tile(sizes, multiprocessors), multiprocessors)


def plan_tile(a: Matrices, b: Matrices, c: Matrices, sizes: Sizes, tile: Tile, multiprocessors: int) -> KernelPlan:
    """The launch of products in a tile; C lies by rows."""
    if tile.turned:
        a, b, c = _turn(b), _turn(a), _turn(c)
    work = share_work(tile, sizes, multiprocessors)
    stages = tile.stages(sizes, one=work.one)
    left, right = tile.shares
    maps = (
        _map_operand(a, sizes.count, _box_lines(tile.down // left, left, along_depth=a.lines.by_rows)),
        _map_operand(b, sizes.count, _box_lines(tile.across // right, right, along_depth=not b.lines.by_rows)),
    )
    together = (int(a.apart > 0), int(b.apart > 0))
    orders = ", ".join(str(flag).lower() for flag in (a.lines.by_rows, b.lines.by_rows, tile.turned))
    spelled = f"{tile.across}, {stages}, {tile.cluster}"
    down, across = work.tiles_down, work.tiles_across
    if tile.split:
        kernel = f"matmul_split<{C_TYPES[a.first.dtype]}, {spelled}, {orders}>"
        blocks, threads = work.whole * tile.cluster, 160
        rest: tuple[Argument, ...] = (
            *(Pointer("c"), Number(sizes.m, 4), Number(sizes.n, 4), Number(c.lines.step), Number(c.apart)),
            *(Number(number, 4) for number in (sizes.steps, down, across, *together)),
        )
    else:
        beside = str(tile.beside).lower()
        kernel = (
            f"matmul_tma<{C_TYPES[a.first.dtype]}, {tile.down}, {spelled}, {beside}, {orders}, {str(work.one).lower()}>"
        )
        blocks, threads = work.clusters * tile.cluster, 2 * tile.down + 128
        numbers = (sizes.steps, down, across, BAND, work.whole, work.share, work.more, *together)
        rest = (
            _map_operand(c, sizes.count, tile.result_lines),
            *((Scratch(SCRATCH_ZEROS_BYTES), Scratch(0)) if tile.shared else (Number(0), Number(0))),
            Numbers(numbers, 4),
        )
    return KernelPlan(
        _SOURCE,
        kernel,
        (blocks, 1, 1),
        (threads, 1, 1),
        (*maps, *rest),
        tile.shared_bytes(sizes, one=work.one),
        specific=True,
        overlaps=True,
    )


def _find_matrices(array: DeviceArray, apart: int) -> Matrices | None:
    lines, apart_bytes = find_lines(array), apart * ITEM_BYTES
    if lines is None or apart_bytes % VECTOR_BYTES or not 0 <= apart_bytes < _MOST_STEP_BYTES:
        return None
    return Matrices(array, lines, apart)


def _box_lines(share: int, cluster: int, *, along_depth: bool) -> int:
    """Lines of a box of an operand, of which a block fetches a share; `fetch` of the source."""
    if along_depth:
        return share
    return DEPTH if share % LINE == 0 else DEPTH // cluster


def _map_operand(given: Matrices, count: int, lines: int) -> TensorMap:
    array, order = given.first, given.lines
    along, down = array.shape[::-1] if order.by_rows else array.shape
    matrices = count if given.apart else 1
    steps = order.step * ITEM_BYTES, (given.apart or order.step) * ITEM_BYTES
    return TensorMap(array.name, array.dtype, (along, down, matrices), steps, (LINE, lines))


def _turn(given: Matrices) -> Matrices:
    return Matrices(turn_matrix(given.first), Lines(not given.lines.by_rows, given.lines.step), given.apart)
