"""Turns the sizes of a product into the tile in which tensor cores of compute capability 9.0 compute it soonest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sectorwise.kernels.plan import divide_up

DEPTH: Final = 64
LINE: Final = 64
"""Of the depth a stage; elements of a line of a box, 128 bytes, as wide as the swizzle."""

ITEM_BYTES: Final = 2
BAND: Final = 8
"""Tiles that clusters go down before they go across."""

_MOST_SHARED_BYTES: Final = 227 << 10
"""Of a block (CUDA programming guide, compute capabilities)."""

_MOST_STAGES: Final = 12
_BARRIER_BYTES: Final = 16
"""Two barriers a stage."""

_SLACK_BYTES: Final = 1024
"""A swizzled tile begins at a multiple of so much."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Products C [m, n] = A [m, k] B [k, n], so many, and how A and B lie."""

    m: int
    n: int
    k: int
    count: int
    a_by_rows: bool
    b_by_rows: bool

    @property
    def steps(self) -> int:
        """Stages that the depth is."""
        return divide_up(self.k, DEPTH)


@dataclass(frozen=True, slots=True)
class Tile:
    """What a block has of the result at a time, and blocks of a cluster, which lie one below the other.

    `turned` is a tile of the turned result: its rows are C's columns. Where `shared`, the steps of tiles that fill no
    round are shared by all clusters. Where `split`, blocks of a cluster have the same tile and share its depth.
    """

    down: int
    across: int
    cluster: int
    turned: bool = False
    shared: bool = False
    split: bool = False

    @property
    def result_lines(self) -> int:
        """Lines of a box of the result: of 64 rows, or of columns where it is turned, as the source has it."""
        return LINE if not self.turned else next(lines for lines in (64, 32, 16) if self.across % lines == 0)

    def right_by_rows(self, sizes: Sizes) -> bool:
        """Whether what is multiplied from the right, B or A turned, lies by rows."""
        return not sizes.a_by_rows if self.turned else sizes.b_by_rows

    def stage_bytes(self, sizes: Sizes) -> int:
        """Of shared memory: so many lines of each operand."""
        across = divide_up(self.across, LINE) * LINE if self.right_by_rows(sizes) else self.across
        return (self.down + across) * DEPTH * ITEM_BYTES

    def stages(self, sizes: Sizes) -> int:
        """Stages that are fetched ahead: as many as there is room for."""
        room = _MOST_SHARED_BYTES - _SLACK_BYTES - self._result_bytes()
        return min(_MOST_STAGES, room // (self.stage_bytes(sizes) + _BARRIER_BYTES))

    def shared_bytes(self, sizes: Sizes) -> int:
        """Dynamic shared memory of a block."""
        stages = self.stages(sizes) * (self.stage_bytes(sizes) + _BARRIER_BYTES)
        return stages + self._result_bytes() + _SLACK_BYTES

    def _result_bytes(self) -> int:
        return 0 if self.split else 2 * self.down * LINE * ITEM_BYTES


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


def share_work(tile: Tile, sizes: Sizes, multiprocessors: int) -> Work:
    """How the tiles of a product are shared by clusters of blocks, of which an SM has one at a time."""
    rows, columns = (sizes.n, sizes.m) if tile.turned else (sizes.m, sizes.n)
    down, across = divide_up(rows, tile.down * tile.cluster), divide_up(columns, tile.across)
    tiles, most = down * across * sizes.count, multiprocessors // tile.cluster
    if not tile.shared:
        return Work(down, across, tiles, min(tiles, most), 0, 0)
    whole = tiles // most * most
    left = (tiles - whole) * sizes.steps
    clusters = most if whole else min(most, left)
    share, more = divmod(left, clusters)
    return Work(down, across, whole, clusters, share, more)


def list_tiles(sizes: Sizes) -> Iterator[Tile]:
    """The tiles that a product can be computed in, and that are no wider than it."""
    for across in (64, 128):
        yield Tile(64, across, 128 // across, split=True)
    for turned in (False, True):
        columns = sizes.m if turned else sizes.n
        by_rows = Tile(64, 64, 1, turned).right_by_rows(sizes)
        step = LINE if by_rows or not turned else 16
        for across in range(step, min(256, divide_up(columns, step) * step) + 1, step):
            for down in (64, 128):
                for cluster in (1, 2):
                    for shared in (False, True):
                        yield Tile(down, across, cluster, turned, shared)


@lru_cache(maxsize=4096)
def choose_tile(sizes: Sizes, multiprocessors: int) -> Tile:
    """The tile with which products take the least time."""
    return min(list_tiles(sizes), key=lambda tile: estimate_ns(tile, sizes, multiprocessors))


def estimate_ns(tile: Tile, sizes: Sizes, multiprocessors: int) -> float:
    """To be fitted."""
    work = share_work(tile, sizes, multiprocessors)
    rounds = divide_up(work.whole, work.clusters)
    return rounds * sizes.steps * max(tile.across / 2, (64 + tile.across) / 4) * 4 * tile.down / 64 + work.share
