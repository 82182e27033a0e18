"""Turns the sizes of a product into the tile in which tensor cores of compute capability 9.0 compute it soonest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import divide_up

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH: Final = 64
LINE: Final = 64
"""Of the depth a stage; elements of a line of a box, 128 bytes, as wide as the swizzle."""

ITEM_BYTES: Final = 2
BAND: Final = 8
"""Tiles that clusters go down before they go across."""

_MOST_SHARED_BYTES: Final = 227 << 10
_HALF_SHARED_BYTES: Final = 113 << 10
"""Of a block alone on its SM, and of each of two: an SM has 228 KiB, a block takes one more than it asks for (CUDA
programming guide, compute capabilities)."""

_MOST_STAGES: Final = 16
_BARRIER_BYTES: Final = 16
"""Two barriers a stage."""

_SLACK_BYTES: Final = 1024
"""A swizzled tile begins at a multiple of so much."""


_CYCLES_A_NS: Final = 1.415
_READ_BYTES_A_NS: Final = 92.0
_TAKEN_BYTES_A_NS: Final = 116.0
_STEP_NS: Final = 169.0
_LAUNCH_NS: Final = 1260.0
_TILE_NS: Final = 574.0
_RESULT_NS: Final = 0.0425
_SPLIT_NS: Final = 828.0
_HAND_NS: Final = 0.167
_HOP_NS: Final = 446.0
_DRAM_BYTES_A_NS: Final = 3840.0
_SHARPNESS: Final = 4.7


@dataclass(frozen=True, slots=True)
class Sizes:
    """Products C [m, n] = A [m, k] B [k, n], so many, and whether A and B lie by rows."""

    m: int
    n: int
    k: int
    count: int
    by_rows: tuple[bool, bool]

    @property
    def steps(self) -> int:
        """Stages that the depth is."""
        return divide_up(self.k, DEPTH)


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block has of the result at a time, and blocks of a cluster, one below the other or `beside` each other.

    `turned` is a tile of the turned result: its rows are C's columns. Where `shared`, the steps of tiles that fill no
    round are shared by all clusters. Where `split`, blocks of a cluster have the same tile and share its depth.
    """

    down: int
    across: int
    cluster: int
    beside: bool = False
    turned: bool = False
    shared: bool = False
    split: bool = False

    @property
    def shares(self) -> tuple[int, int]:
        """Blocks that fetch a stage of the left operand together, and of the right one."""
        if self.split:
            return 1, 1
        return (self.cluster, 1) if self.beside else (1, self.cluster)

    @property
    def result_lines(self) -> int:
        """Lines of a box of the result: of 64 rows, or of columns where it is turned, as the source has it."""
        return LINE if not self.turned else next(lines for lines in (64, 32, 16) if self.across % lines == 0)

    def right_by_rows(self, sizes: Sizes) -> bool:
        """Whether what is multiplied from the right, B or A turned, lies by rows."""
        return not sizes.by_rows[0] if self.turned else sizes.by_rows[1]

    def stage_bytes(self, sizes: Sizes) -> int:
        """Of shared memory: so many lines of each operand."""
        across = divide_up(self.across, LINE) * LINE if self.right_by_rows(sizes) else self.across
        return (self.down + across) * DEPTH * ITEM_BYTES

    def stages(self, sizes: Sizes, *, one: bool) -> int:
        """Stages that are fetched ahead: as many as there is room for, where no block has more than `one` tile or not.

        Of blocks that share the depth an SM has room for two.
        """
        most = _HALF_SHARED_BYTES if self.split else _MOST_SHARED_BYTES
        room = most - _SLACK_BYTES - self._result_bytes(one)
        return min(_MOST_STAGES, room // (self.stage_bytes(sizes) + _BARRIER_BYTES))

    def shared_bytes(self, sizes: Sizes, *, one: bool) -> int:
        """Dynamic shared memory of a block."""
        stages = self.stages(sizes, one=one) * (self.stage_bytes(sizes) + _BARRIER_BYTES)
        return stages + self._result_bytes(one) + _SLACK_BYTES

    def _result_bytes(self, one: bool) -> int:  # noqa: FBT001 - as its callers have it
        return 0 if self.split or one else 2 * self.down * LINE * ITEM_BYTES


@dataclass(frozen=True, slots=True)
class Work:
    """Who computes which tiles: `whole` of them go whole to one of `clusters` after the other.

    The steps of the others are one row, of which each cluster has `share`, the first `more` one more.
    """

    tiles_down: int
    tiles_across: int
    whole: int
    clusters: int
    share: int
    more: int

    @property
    def one(self) -> bool:
        """Whether no block has more than one tile."""
        return self.share + self.more == 0 and self.whole <= self.clusters


def share_work(tile: Tile, sizes: Sizes, multiprocessors: int) -> Work:
    """How the tiles of a product are shared by clusters of blocks, of which an SM has one at a time."""
    rows, columns = (sizes.n, sizes.m) if tile.turned else (sizes.m, sizes.n)
    left, right = tile.shares
    down, across = divide_up(rows, tile.down * right), divide_up(columns, tile.across * left)
    tiles, most = down * across * sizes.count, multiprocessors // tile.cluster
    if not tile.shared:
        return Work(down, across, tiles, min(tiles, most), 0, 0)
    whole = tiles // most * most
    if whole and tiles - whole < most / 2:
        whole -= most
    left = (tiles - whole) * sizes.steps
    clusters = most if whole else min(most, left)
    share, more = divmod(left, clusters)
    return Work(down, across, whole, clusters, share, more)


def list_tiles(sizes: Sizes) -> Iterator[Tile]:
    """The tiles that a product can be computed in, and that are no wider than it."""
    for turned in (False, True):
        rows, columns = (sizes.n, sizes.m) if turned else (sizes.m, sizes.n)
        by_rows = Tile(64, 64, 1, turned=turned).right_by_rows(sizes)
        step = LINE if by_rows else 16
        widest = divide_up(columns, step) * step
        for across in range(step, min(128, widest) + 1, step):
            for cluster in (1, 2, 4, 8):
                yield Tile(64, across, cluster, turned=turned, split=True)
        step = LINE if by_rows or not turned else 16
        for across in range(step, min(256, divide_up(columns, step) * step) + 1, step):
            for down in (64, 128):
                if rows <= down - 64:
                    continue
                for cluster, beside in ((1, False), (2, False), (2, True)):
                    for shared in (False, True):
                        yield Tile(down, across, cluster, beside, turned, shared)


@lru_cache(maxsize=4096)
def choose_tile(sizes: Sizes, multiprocessors: int) -> Tile:
    """The tile with which products take the least time."""
    tiles = (tile for tile in list_tiles(sizes) if tile.cluster <= multiprocessors)
    return min(tiles, key=lambda tile: estimate_ns(tile, sizes, multiprocessors))


def estimate_ns(tile: Tile, sizes: Sizes, multiprocessors: int) -> float:
    """Nanoseconds of products: rounds of tiles, whose steps are as fast as an SM multiplies and fetches."""
    work = share_work(tile, sizes, multiprocessors)
    blocks = work.whole * tile.cluster
    beside = min(2, divide_up(blocks, multiprocessors)) if tile.split else 1
    step = _estimate_step_ns(tile, beside)
    around = _TILE_NS + tile.down * tile.across * _RESULT_NS
    if tile.split:
        rounds, steps = divide_up(blocks, beside * multiprocessors), divide_up(sizes.steps, tile.cluster)
        busy = rounds * (steps * step + around + (_SPLIT_NS if tile.cluster > 1 else 0))
    else:
        busy = divide_up(work.whole, work.clusters) * (sizes.steps * step + around)
        if work.share + work.more:
            hops = max(1, divide_up(sizes.steps, max(work.share, 1)) - 1)
            handed = tile.down * tile.across * _HAND_NS * (1 + hops) / 2 + _HOP_NS * hops
            busy += (work.share + (work.more > 0)) * step + around + handed
    moved = sizes.count * ITEM_BYTES * (sizes.m * sizes.k + sizes.k * sizes.n + sizes.m * sizes.n)
    return _LAUNCH_NS + _overlap(busy, moved / _DRAM_BYTES_A_NS)


def _estimate_step_ns(tile: Tile, beside: int) -> float:
    """Nanoseconds of a step of tiles of so many blocks beside each other on an SM."""
    left, right = tile.shares
    # Of 64 rows: 16 of the depth take half a cycle a column, and to read 32 bytes of each line at 128 a cycle.
    cycles = tile.down / 64 * (DEPTH / 16) * max(tile.across / 2, (64 + tile.across) / 4)
    read = (tile.down / left + tile.across / right) * DEPTH * ITEM_BYTES
    taken = (tile.down + tile.across) * DEPTH * ITEM_BYTES
    share = beside / _CYCLES_A_NS, beside / _READ_BYTES_A_NS, beside / _TAKEN_BYTES_A_NS
    return _overlap(cycles * share[0], read * share[1], taken * share[2], _STEP_NS)


def _overlap(*times: float) -> float:
    """What things take that run at once: as long as the longest, and more where others take nearly as long."""
    longest = max(times)
    return float(longest * sum((time / longest) ** _SHARPNESS for time in times) ** (1 / _SHARPNESS))
