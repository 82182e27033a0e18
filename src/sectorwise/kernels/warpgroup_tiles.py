"""Turns the sizes of a product into the tile in which tensor cores of compute capability 9.0 compute it soonest."""

from __future__ import annotations

from dataclasses import dataclass, replace
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
"""Of a block (CUDA programming guide, compute capabilities)."""

_MOST_STAGES: Final = 16
_MOST_ACROSS: Final = 256
"""Columns of a product of a warpgroup (PTX ISA, wgmma)."""

_MOST_SPLIT, _MOST_SPLIT_TURNED = 64, 128
"""Columns of a tile whose depth is shared by a cluster, as far as it pays; and of one of the turned product that is as
wide as that, so that the larger operand is read once."""

_BARRIER_BYTES: Final = 16
"""Two barriers a stage."""

_SLACK_BYTES: Final = 1024
"""A swizzled tile begins at a multiple of so much."""


_CYCLES_A_NS: Final = 1.472
_LINES_A_NS: Final = 2.56
_TAKEN_BYTES_A_NS: Final = 115.5
_READ_BYTES_A_NS: Final = 274.0
_STEP_NS: Final = 108.0
_LAUNCH_NS: Final = 1857.0
_TILE_NS: Final = 275.0
_RESULT_NS: Final = 0.0416
_SPLIT_NS: Final = 949.0
_HAND_RESULT_NS: Final = 0.186
_HAND_NS: Final = 200.0
_DRAM_BYTES_A_NS: Final = 3941.0
_IN_STEP_BYTES_A_NS: Final = 4300.0
_SHARPNESS: Final = 3.87
"""What an SM multiplies, moves to and from its shared memory, takes in and has read for it; the least of a step, and
what a launch, a tile, a result of it, adding in a cluster, and handing on take besides; the DRAM, and the DRAM where
four blocks go through the depth in step. How far what runs at once adds up is `_SHARPNESS`.

Fitted to 297 times of 45 products on an H200 (the log of kernels), whose SM multiplies 2,048 a cycle by the datasheet.
"""


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
        """Stages that are fetched ahead: as many as find room. Results need none where no block has two tiles."""
        room = _MOST_SHARED_BYTES - _SLACK_BYTES - self._result_bytes(one)
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


def count_places(cluster: int, multiprocessors: int) -> int:
    """Clusters that a GPU has at a time, whose blocks have an SM each: one lies in a group of 16 or 18 SMs.

    An H200 of 132 SMs has 66 of two and 30 of four.
    """
    return multiprocessors // cluster if cluster <= 2 else multiprocessors * 10 // 11 // cluster


def list_tiles(sizes: Sizes, multiprocessors: int) -> Iterator[Tile]:
    """The tiles that a product can be computed in, and that are no wider than it.

    Those whose depth is shared by a cluster, and those of clusters of four, run at a time, all of them. No tile is
    shared by more than three clusters: one waits for the other.
    """
    for turned in (False, True):
        rows, columns = (sizes.n, sizes.m) if turned else (sizes.m, sizes.n)
        by_rows = Tile(64, 64, 1, turned=turned).right_by_rows(sizes)
        step = LINE if by_rows else 16
        width = divide_up(columns, step) * step
        wide = (width,) if turned and _MOST_SPLIT < width <= _MOST_SPLIT_TURNED else ()
        for across in (*range(step, min(_MOST_SPLIT, width) + 1, step), *wide):
            for cluster in (2, 4, 8):
                tile = Tile(64, across, cluster, turned=turned, split=True)
                if share_work(tile, sizes, multiprocessors).whole <= count_places(cluster, multiprocessors):
                    yield tile
        yield from _list_in_step(sizes, multiprocessors, turned=turned)
        step = LINE if by_rows or not turned else 16
        for across in range(step, min(_MOST_ACROSS, divide_up(columns, step) * step) + 1, step):
            for down in (64, 128) if rows > LINE else (64,):
                for cluster, beside in ((1, False), (2, False), (2, True)):
                    if cluster <= multiprocessors:
                        yield from _list_shared(Tile(down, across, cluster, beside, turned), sizes, multiprocessors)


def _list_in_step(sizes: Sizes, multiprocessors: int, *, turned: bool) -> Iterator[Tile]:
    """Tiles as wide as a narrow product, whose blocks all want the same: clusters of four, all at a time, fetch it."""
    columns = sizes.m if turned else sizes.n
    whole_boxes = Tile(64, 64, 1, turned=turned).right_by_rows(sizes) or not turned
    step = LINE if whole_boxes else LINE // 2
    across = divide_up(columns, step) * step
    for down in (64, 128) if across <= _MOST_ACROSS else ():
        tile = Tile(down, across, 4, turned=turned)
        if share_work(tile, sizes, multiprocessors).whole <= count_places(4, multiprocessors):
            yield tile


def _list_shared(tile: Tile, sizes: Sizes, multiprocessors: int) -> Iterator[Tile]:
    yield tile
    shared = replace(tile, shared=True)
    if 2 * share_work(shared, sizes, multiprocessors).share >= sizes.steps:
        yield shared


@lru_cache(maxsize=4096)
def choose_tile(sizes: Sizes, multiprocessors: int) -> Tile:
    """The tile with which products take the least time."""
    return min(list_tiles(sizes, multiprocessors), key=lambda tile: estimate_ns(tile, sizes, multiprocessors))


def estimate_ns(tile: Tile, sizes: Sizes, multiprocessors: int) -> float:
    """Nanoseconds of products: rounds of tiles, whose steps are as fast as an SM multiplies and fetches."""
    work, step = share_work(tile, sizes, multiprocessors), _estimate_step_ns(tile)
    results = tile.down * tile.across
    around = _TILE_NS + results * _RESULT_NS
    if tile.split:
        busy = divide_up(sizes.steps, tile.cluster) * step + around + _SPLIT_NS
    else:
        busy = divide_up(work.whole, work.clusters) * (sizes.steps * step + around)
        if work.share + work.more:
            busy += (work.share + (work.more > 0)) * step + around + results * _HAND_RESULT_NS + _HAND_NS
    moved = sizes.count * ITEM_BYTES * (sizes.m * sizes.k + sizes.k * sizes.n + sizes.m * sizes.n)
    rate = _IN_STEP_BYTES_A_NS if tile.cluster == 4 and not tile.split else _DRAM_BYTES_A_NS
    return _LAUNCH_NS + _overlap(busy, moved / rate)


def _estimate_step_ns(tile: Tile) -> float:
    """Nanoseconds of a step of a tile."""
    left, right = tile.shares
    # Products of 64 rows take half a cycle a column for 16 of the depth, and read their rows and all columns anew.
    cycles = tile.down * tile.across / 32
    lines = tile.down / 64 * (64 + tile.across) + tile.down + tile.across
    taken = (tile.down + tile.across) * DEPTH * ITEM_BYTES
    read = (tile.down / left + tile.across / right) * DEPTH * ITEM_BYTES
    multiply, move = cycles / _CYCLES_A_NS, lines / _LINES_A_NS
    return _overlap(multiply, move, taken / _TAKEN_BYTES_A_NS, read / _READ_BYTES_A_NS, _STEP_NS)


def _overlap(*times: float) -> float:
    """What things take that run at once: as long as the longest, and more where others take nearly as long."""
    longest = max(times)
    return float(longest * sum((time / longest) ** _SHARPNESS for time in times) ** (1 / _SHARPNESS))
