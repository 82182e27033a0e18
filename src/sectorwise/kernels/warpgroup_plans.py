"""Turns a product of matrices into a launch for the tensor cores of compute capability 9.0, fed by tensor maps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.gemv_plans import C_TYPES, VECTOR_BYTES
from sectorwise.kernels.plan import KernelPlan, Number, Pointer, TensorMap, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.plan import Argument

CAPABILITY: Final = (9, 0)
"""wgmma is of this one alone (PTX ISA, sm_90a)."""

BAND: Final = 8
"""Clusters' tiles that are gone down before going across."""

_ITEM_BYTES: Final = 2
_LINE: Final = 64
"""Elements of a line of a box: 128 bytes, as wide as the swizzle."""

_DEPTH: Final = 64
_BOX_BYTES: Final = _LINE * _DEPTH * _ITEM_BYTES
_BARRIER_BYTES: Final = 16
"""Two barriers a stage."""

_SLACK_BYTES: Final = 1024
"""A swizzled tile begins at a multiple of so much."""

_MOST_STEP_BYTES: Final = 1 << 40
"""Of a tensor map (CUDA driver API, cuTensorMapEncodeTiled)."""


@dataclass(frozen=True, slots=True)
class Lines:
    """How a matrix lies in lines that a tensor map takes: by rows, or by columns; elements from line to line."""

    by_rows: bool
    step: int


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block has of the result at a time, stages that are fetched ahead, and blocks of a cluster.

    Blocks of a cluster lie one below the other, or share the depth where the tile is `split`.
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
        return stages + (0 if self.split else self.down // _LINE * 2 * _BOX_BYTES) + _SLACK_BYTES


def find_lines(array: DeviceArray) -> Lines | None:
    """The lines of a matrix, None where no tensor map takes them: they begin at multiples of 16 bytes and lie apart."""
    if array.operand.address % VECTOR_BYTES:
        return None
    for near in (1, 0):
        extent, lines = array.shape[near], array.shape[1 - near]
        step = array.strides[1 - near] if lines > 1 else divide_up(extent, 8) * 8
        step_bytes = step * _ITEM_BYTES
        if (array.strides[near] == 1 or extent == 1) and step >= extent and step_bytes % VECTOR_BYTES == 0:
            return Lines(near == 1, step) if step_bytes < _MOST_STEP_BYTES else None
    return None


def find_tile(number: int, tiles_down: int, tiles_across: int) -> tuple[int, int]:
    """Which tile, down and across, a cluster has as its `number`: `find_tile` of the source."""
    band, rest = divmod(number, BAND * tiles_across)
    height = min(BAND, tiles_down - BAND * band)
    return BAND * band + rest % height, rest // height


def choose_tile(m: int, n: int, k: int, multiprocessors: int) -> Tile:
    """The tile with which a product takes the fewest cycles, of SMs that multiply and fetch at their pace."""
    return min(TILES, key=lambda tile: estimate_cycles(tile, (m, n, k), multiprocessors))


def estimate_cycles(tile: Tile, sizes: tuple[int, int, int], multiprocessors: int) -> float:
    """Cycles of a product m x n x k: rounds of blocks, each with its steps, and what a round costs around them."""
    m, n, k = sizes
    steps = divide_up(k, _DEPTH)
    multiplied = tile.down * tile.across * _DEPTH / _PRODUCTS_A_CYCLE
    if tile.split:
        blocks = divide_up(m, tile.down) * divide_up(n, tile.across) * tile.cluster
        fetched = (tile.down + tile.across) * _DEPTH * _ITEM_BYTES / _BYTES_A_CYCLE
        return divide_up(blocks, multiprocessors) * (divide_up(steps, tile.cluster) * max(multiplied, fetched) + _AROUND)
    fetched = (tile.down + tile.across / tile.cluster) * _DEPTH * _ITEM_BYTES / _BYTES_A_CYCLE
    clusters = divide_up(m, tile.down * tile.cluster) * divide_up(n, tile.across)
    return divide_up(clusters, multiprocessors // tile.cluster) * (steps * max(multiplied, fetched) + _AROUND)


def plan_warpgroups(a: DeviceArray, b: DeviceArray, c: DeviceArray, multiprocessors: int) -> KernelPlan | None:
    """The launch of C [m, n] = A [m, k] B [k, n] on a GPU of so many SMs, None where no tensor map takes an operand.

    No axis is empty. Operands are called a, b and c; where C is computed turned, their parts are exchanged.
    """
    (m, n), to = c.shape, find_lines(c)
    if (to is not None and not to.by_rows) or (n < m and n <= _LINE):
        a, b, c = _turn(b), _turn(a), _turn(c)
        to = find_lines(c)
    left, right = find_lines(a), find_lines(b)
    if left is None or right is None or multiprocessors < _MOST_CLUSTER:
        return None
    tile = choose_tile(*c.shape, a.shape[1], multiprocessors)
    if not tile.split and (to is None or not to.by_rows):
        return None
    order = ", ".join(str(lines.by_rows).lower() for lines in (left, right))
    template = f"{C_TYPES[a.dtype]}, {{}}{tile.across}, {tile.stages}, {tile.cluster}, {order}"
    down, across = divide_up(c.shape[0], tile.down), divide_up(c.shape[1], tile.across)
    steps = divide_up(a.shape[1], _DEPTH)
    share = tile.across if tile.split else tile.across // tile.cluster
    operands = (_map(a, left, tile.down), _map(b, replace(right, by_rows=not right.by_rows), share, turned=True))
    if tile.split:
        return KernelPlan(
            "matmul_tma.cu",
            f"matmul_split<{template.format('')}>",
            (down * across * tile.cluster, 1, 1),
            (160, 1, 1),
            (
                *operands,
                Pointer(c.name),
                *(Number(extent, 4) for extent in c.shape),
                *(Number(stride) for stride in c.strides),
                *(Number(number, 4) for number in (steps, across)),
            ),
            tile.shared_bytes,
            specific=True,
        )
    down = divide_up(down, tile.cluster)
    blocks = min(down * across, multiprocessors // tile.cluster) * tile.cluster
    return KernelPlan(
        "matmul_tma.cu",
        f"matmul_tma<{template.format(f'{tile.down}, ')}>",
        (blocks, 1, 1),
        (2 * tile.down + 128, 1, 1),
        (
            *operands,
            TensorMap(c.name, c.dtype, c.shape[::-1], to.step * _ITEM_BYTES, (_LINE, _LINE)),
            *(Number(number, 4) for number in (steps, down, across, BAND)),
        ),
        tile.shared_bytes,
        specific=True,
    )
