"""Turns a product of matrices into a launch for the tensor cores of compute capability 9.0, fed by tensor maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.gemv_plans import C_TYPES, VECTOR_BYTES
from sectorwise.kernels.plan import KernelPlan, Number, Operand, Pointer, TensorMap, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.arrays import DeviceArray

CAPABILITY: Final = (9, 0)
"""wgmma is of this one alone (PTX ISA, sm_90a)."""

BAND: Final = 8
"""Tiles that clusters go down before they go across."""

_SOURCE: Final = "matmul_tma.cu"
_ITEM_BYTES: Final = 2
_LINE: Final = 64
"""Elements of a line of a box: 128 bytes, as wide as the swizzle."""

_DEPTH: Final = 64
_BARRIER_BYTES: Final = 16
"""Two barriers a stage."""

_SLACK_BYTES: Final = 1024
"""A swizzled tile begins at a multiple of so much."""

_MOST_STEP_BYTES: Final = 1 << 40
"""Of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""

_PRODUCTS_A_CYCLE: Final = 1500
_BYTES_A_CYCLE: Final = 36
_AROUND: Final = 3000
"""What an SM multiplies, what it gets of the L2, and cycles of a round of tiles around its products.

Fitted to what tiles took for 24 shapes on an H200 (the log of kernels), whose SM multiplies 2,048 by the datasheet.
"""


@dataclass(frozen=True, slots=True)
class Lines:
    """How a matrix lies in lines that a tensor map takes: by rows, or by columns; elements from line to line."""

    by_rows: bool
    step: int


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block has of the result at a time, stages that are fetched ahead, and blocks of a cluster.

    Blocks of a cluster lie one below the other; where the tile is `split` they share the depth instead.
    """

    down: int
    across: int
    stages: int
    cluster: int
    split: bool = False

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        stages = self.stages * ((self.down + self.across) * _DEPTH * _ITEM_BYTES + _BARRIER_BYTES)
        results = 0 if self.split else 2 * self.down * _LINE * _ITEM_BYTES
        return stages + results + _SLACK_BYTES


TILES: Final = (
    Tile(128, 256, 4, 2),
    Tile(128, 192, 4, 2),
    Tile(128, 128, 6, 2),
    Tile(64, 192, 5, 2),
    Tile(64, 128, 8, 2),
    Tile(64, 64, 12, 2, split=True),
    Tile(64, 128, 8, 1, split=True),
    Tile(64, 64, 6, 4, split=True),
)
"""Of these one is taken, the first of those that are equally good."""


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
        whole = extent * _ITEM_BYTES % VECTOR_BYTES == 0 and step * _ITEM_BYTES % VECTOR_BYTES == 0
        if array.strides[near] == 1 and step >= extent and whole:
            return Lines(near == 1, step) if step * _ITEM_BYTES < _MOST_STEP_BYTES else None
    return None


def find_tile(number: int, tiles_down: int, tiles_across: int) -> tuple[int, int]:
    """Which tile, down and across, is a cluster's with that number: `find_tile` of the source, in Python."""
    band, rest = divmod(number, BAND * tiles_across)
    height = min(BAND, tiles_down - BAND * band)
    return BAND * band + rest % height, rest // height


@lru_cache(maxsize=4096)
def choose_tile(m: int, n: int, k: int, multiprocessors: int) -> Tile:
    """The tile with which a product m x n x k takes the fewest cycles."""
    return min(TILES, key=lambda tile: estimate_cycles(tile, m, n, k, multiprocessors))


def estimate_cycles(tile: Tile, m: int, n: int, k: int, multiprocessors: int) -> float:
    """Cycles of a product: rounds of blocks, the steps of each as fast as an SM multiplies and fetches."""
    steps, across = divide_up(k, _DEPTH), divide_up(n, tile.across)
    if tile.split:
        rounds = divide_up(divide_up(m, tile.down) * across * tile.cluster, multiprocessors)
        steps, fetched, around = divide_up(steps, tile.cluster), tile.down + tile.across, 1.5 * _AROUND
    else:
        rounds = divide_up(divide_up(m, tile.down * tile.cluster) * across, multiprocessors // tile.cluster)
        fetched, around = tile.down + tile.across // tile.cluster, _AROUND
    multiply = tile.down * tile.across * _DEPTH / _PRODUCTS_A_CYCLE
    return rounds * (steps * max(multiply, fetched * _DEPTH * _ITEM_BYTES / _BYTES_A_CYCLE) + around)


def plan_warpgroups(a: DeviceArray, b: DeviceArray, c: DeviceArray, multiprocessors: int) -> KernelPlan | None:
    """The launch of C [m, n] = A [m, k] B [k, n] on a GPU of so many SMs, None where no tensor map takes an operand.

    No axis is empty, and there are two SMs at least. What lies by columns, C, is computed turned: C^T = B^T A^T.
    Operands are called a, b and c.
    """
    a, b, c = (replace(array, name=name) for array, name in zip((a, b, c), "abc", strict=True))
    to = find_lines(c)
    if to is None or not to.by_rows:
        a, b, c = _turn(b), _turn(a), _turn(c)
        to = find_lines(c)
    left, right = find_lines(a), find_lines(b)
    if left is None or right is None or to is None or not to.by_rows:
        return None
    tile = choose_tile(c.shape[0], c.shape[1], a.shape[1], multiprocessors)
    plan = _plan_split if tile.split else _plan_tiles
    return plan((a, left), (b, right), (c, to), tile, multiprocessors)


Laid = tuple["DeviceArray", Lines]


def _plan_tiles(a: Laid, b: Laid, c: Laid, tile: Tile, multiprocessors: int) -> KernelPlan:
    (m, n), k = c[0].shape, a[0].shape[1]
    down, across = divide_up(m, tile.down * tile.cluster), divide_up(n, tile.across)
    blocks = min(down * across, multiprocessors // tile.cluster) * tile.cluster
    return KernelPlan(
        _SOURCE,
        f"matmul_tma<{C_TYPES[a[0].dtype]}, {tile.down}, {_spell(tile, a, b)}>",
        (blocks, 1, 1),
        (2 * tile.down + 128, 1, 1),
        (
            _map_operand(a, tile.down if a[1].by_rows else _DEPTH),
            _map_operand(b, _share_lines(tile) if b[1].by_rows else tile.across // tile.cluster),
            _map_operand(c, _LINE),
            *(Number(number, 4) for number in (divide_up(k, _DEPTH), down, across, BAND)),
        ),
        tile.shared_bytes,
        specific=True,
        overlaps=True,
    )


def _plan_split(a: Laid, b: Laid, c: Laid, tile: Tile, _multiprocessors: int) -> KernelPlan:
    (m, n), k = c[0].shape, a[0].shape[1]
    across = divide_up(n, tile.across)
    return KernelPlan(
        _SOURCE,
        f"matmul_split<{C_TYPES[a[0].dtype]}, {_spell(tile, a, b)}>",
        (divide_up(m, tile.down) * across * tile.cluster, 1, 1),
        (160, 1, 1),
        (
            _map_operand(a, tile.down if a[1].by_rows else _DEPTH),
            _map_operand(b, _DEPTH if b[1].by_rows else tile.across),
            Pointer(c[0].name),
            *(Number(m, 4), Number(n, 4), Number(c[1].step)),
            *(Number(divide_up(k, _DEPTH), 4), Number(across, 4)),
        ),
        tile.shared_bytes,
        specific=True,
        overlaps=True,
    )


def _spell(tile: Tile, a: Laid, b: Laid) -> str:
    orders = (str(lines.by_rows).lower() for _, lines in (a, b))
    return ", ".join((str(tile.across), str(tile.stages), str(tile.cluster), *orders))


def _share_lines(tile: Tile) -> int:
    """Lines of a box of B by rows: the depth, or a block's part of it where its columns are no whole boxes."""
    return _DEPTH if tile.across // tile.cluster % _LINE == 0 else _DEPTH // tile.cluster


def _map_operand(laid: Laid, lines: int) -> TensorMap:
    array, order = laid
    extents = array.shape[::-1] if order.by_rows else array.shape
    return TensorMap(array.name, array.dtype, (extents[0], extents[1]), order.step * _ITEM_BYTES, (_LINE, lines))


def _turn(array: DeviceArray) -> DeviceArray:
    held = array.operand
    turned = Operand(held.address, held.shape[::-1], held.strides_bytes[::-1], held.item_bytes)
    return replace(array, operand=turned)
