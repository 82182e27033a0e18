"""Turns the shape of a matrix into the ways of transposing it, what both sides of each cost, and which is fastest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.dtypes import find_width
from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.ranking import Ranking, compare_costs, rank
from sectorwise.advise.steps import Step, barrier, load, shared, store, work
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.advise.plan import Cost

    Lanes = npt.NDArray[np.int64]

TILE: Final = 32
_ROWS: Final = 8
_MOST_EXTENT: Final = 1 << 24
_THREADS: Final = TILE * _ROWS
COPY: Final = "copy (for scale)"

_REGISTERS: Final = {"naive": 16, "copy": 20, "tile": 28}
_VECTOR_BYTES: Final = 16
_MOST_PADDING: Final = 8


@dataclass(frozen=True, slots=True)
class TransposeWay:
    """One way: what a request costs on the reading and the writing side, in shared memory on the way in and out."""

    name: str
    cost: Cost
    load_sectors: float
    store_sectors: float
    shared_store_wavefronts: float
    shared_load_wavefronts: float
    shared_bytes: int
    note: str


def advise_transpose(rows: int, columns: int, dtype: str = "f32", *, device: str = "h200") -> Ranking[TransposeWay]:
    """Ways of transposing a matrix of C order, the fastest first; a copy of the same size stands first, for scale.

    Both extents must be multiples of 32; raises `ArgumentError`.

    >>> print(advise_transpose(8192, 8192).winner.name)
    tile[32][33]
    """
    for name, extent in (("rows", rows), ("columns", columns)):
        if not TILE <= extent <= _MOST_EXTENT or extent % TILE:
            raise ArgumentError(
                f"{name} is {extent:,}; the tiles here take multiples of {TILE}, from {TILE} to {_MOST_EXTENT:,}"
            )
    width = find_width(dtype)
    ways = [
        _straight(COPY, rows, columns, width, device, transposed=False),
        _straight("naive", rows, columns, width, device, transposed=True),
        _tiled(f"tile[{TILE}][{TILE}]", rows, columns, width, device, padding=0),
        _tiled(f"tile[{TILE}][{TILE + 1}]", rows, columns, width, device, padding=1),
        _tiled(f"tile[{TILE}][{TILE}], column ^ row", rows, columns, width, device, padding=0, swizzled=True),
    ]
    size = _VECTOR_BYTES // width
    if size > 1 and size <= TILE and rows % (2 * TILE) == 0 and columns % (2 * TILE) == 0:
        ways.append(_vectorised(rows, columns, width, device))
    return rank(
        f"transpose of {rows:,} x {columns:,} {dtype} on {device}",
        ways,
        reference=ways[0].name,
        reason=_explain,
        detail=_describe,
    )


def _describe(way: TransposeWay) -> str:
    """Both sides of global memory, and of the tile."""
    sides = f"{way.load_sectors:.4g} sectors a load, {way.store_sectors:.4g} a store"
    if not way.shared_bytes:
        return sides
    return f"{sides}; tile {way.shared_store_wavefronts:.4g} wavefronts in, {way.shared_load_wavefronts:.4g} out"


def _explain(winner: TransposeWay, loser: TransposeWay) -> str:
    cost = loser.cost
    if cost.efficiency < 0.9:
        return f"a store touches {loser.store_sectors:.4g} sectors, {loser.load_sectors:.4g} would do"
    if loser.shared_load_wavefronts > 1.5 * winner.shared_load_wavefronts:
        return f"a column of the tile takes {loser.shared_load_wavefronts:.4g} wavefronts a load"
    return compare_costs(winner.cost, cost)


def _lanes() -> Lanes:
    return np.arange(TILE, dtype=np.int64)[None, :]


def _straight(name: str, rows: int, columns: int, width: int, device: str, *, transposed: bool) -> TransposeWay:
    """Each thread moves four elements of a column of the block."""
    lane, part = _lanes(), TILE // _ROWS
    source = load("in", lane * width, width, times=part)
    step = rows * width if transposed else width
    target = store("out", lane * step, width, times=part)
    plan = Plan(
        name,
        rows * columns // TILE**2,
        _THREADS,
        loop=(),
        once=(work("index", 20), source, work("wait", 1, waits=True), target),
        registers=_REGISTERS["naive" if transposed else "copy"],
        dram_read_bytes=rows * columns * width,
        dram_write_bytes=rows * columns * width,
    )
    note = "lanes write down a column" if transposed else "lanes copy an element each; wider accesses can beat it"
    return TransposeWay(name, estimate(plan, device), source.sectors, target.sectors, 0.0, 0.0, 0, note)


def _tiled(
    name: str, rows: int, columns: int, width: int, device: str, *, padding: int, swizzled: bool = False
) -> TransposeWay:
    """Rows into shared memory, columns out of it, so that both sides of global memory see rows."""
    lane, part = _lanes(), TILE // _ROWS
    pitch = TILE + padding
    row = np.arange(TILE, dtype=np.int64)[:, None]
    into = row * pitch + (lane ^ row if swizzled else lane)
    out = lane * pitch + (row ^ lane if swizzled else row)
    steps: tuple[Step, ...] = (
        load("in", lane * width, width, times=part),
        work("wait", 1, waits=True),
        shared("tile in", into * width, width, operation="store", times=part),
        barrier(),
        shared("tile out", out * width, width, times=part),
        work("wait", 1, waits=True),
        store("out", lane * width, width, times=part),
    )
    index = work("index", 44 if swizzled else 24)
    plan = Plan(
        name,
        rows * columns // TILE**2,
        _THREADS,
        loop=(),
        once=(index, *steps),
        registers=_REGISTERS["tile"],
        shared_bytes=TILE * pitch * width,
        dram_read_bytes=rows * columns * width,
        dram_write_bytes=rows * columns * width,
    )
    note = "swizzled: no memory more" if swizzled else f"{100 * padding / TILE:.3g} % more shared memory"
    return TransposeWay(
        name,
        estimate(plan, device),
        steps[0].sectors,
        steps[6].sectors,
        steps[2].wavefronts,
        steps[4].wavefronts,
        plan.shared_bytes,
        note if padding or swizzled else "columns of the tile lie in one bank",
    )


def _pass_through(across: Lanes, down: Lanes, pitch: int, width: int, parts: int) -> tuple[int, Step, Step]:
    """The pitch, and the accesses of single elements on the way in, transposed, and out."""
    size = _VECTOR_BYTES // width
    into = np.concatenate([(across + each) * pitch + down for each in range(size)])
    out = np.concatenate([down * pitch + across + each for each in range(size)])
    return (
        pitch,
        shared("tile in", into * width, width, operation="store", times=parts * size),
        shared("tile out", out * width, width, times=parts * size),
    )


def _vectorised(rows: int, columns: int, width: int, device: str) -> TransposeWay:
    """Loads and stores of 16 bytes a lane, single elements in shared memory at the pitch with the fewest wavefronts."""
    size = _VECTOR_BYTES // width
    side = 2 * TILE
    lanes_a_row = side // size
    lane = _lanes()
    across, down = lane % lanes_a_row * size, lane // lanes_a_row
    parts = side * side // (_THREADS * size)
    tries = [_pass_through(across, down, side + padding, width, parts) for padding in range(_MOST_PADDING + 1)]
    pitch, one, other = min(tries, key=lambda each: (each[1].wavefronts + each[2].wavefronts, each[0]))
    source = load("in", down * columns * width + across * width, _VECTOR_BYTES, times=parts)
    target = store("out", down * rows * width + across * width, _VECTOR_BYTES, times=parts)
    name = f"16-byte, tile[{side}][{pitch}]"
    plan = Plan(
        name,
        rows * columns // side**2,
        _THREADS,
        loop=(),
        once=(
            work("index", 40),
            source,
            work("wait", 1, waits=True),
            one,
            barrier(),
            other,
            work("wait", 1, waits=True),
            target,
        ),
        registers=64,
        shared_bytes=side * pitch * width,
        dram_read_bytes=rows * columns * width,
        dram_write_bytes=rows * columns * width,
    )
    return TransposeWay(
        name,
        estimate(plan, device),
        source.sectors,
        target.sectors,
        one.wavefronts,
        other.wavefronts,
        plan.shared_bytes,
        f"a pitch of {pitch} has the fewest wavefronts",
    )
