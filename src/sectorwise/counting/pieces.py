"""Turns copies of rows of bytes between global and shared memory (TMA) into the pieces that the hardware moves.

The profiler counts them as sectors that TMA reads or writes. All of 119 launches that an H200 counted are equal
(tests/measured/test_tiles.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Longs = npt.NDArray[np.int64]
    Marks = npt.NDArray[np.bool_]

UNIT_BYTES: Final = 16
SECTOR_BYTES: Final = 32
LINE_BYTES: Final = 128
_LEAST_SECTORS: Final = 2
_FILLED_SECTORS: Final = 3
_MEASURED_UNITS: Final = 2
"""Longer pieces that are filled in several blocks at once were not measured."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Sectors of each row, `[rows]`: those `moved` to or from global memory, and those `filled`.

    `at_l2` are those that are asked of the L2, or go there. `exact` is False where a rule is a guess.
    """

    moved: Longs
    filled: Longs
    at_l2: Longs
    exact: bool = True


def count_pieces(global_addresses: Longs, shared_addresses: Longs, inside: Marks, *, loads: bool) -> Pieces:
    """Pieces of each row of units of 16 bytes; all arrays are `[rows, units]`.

    A row is cut where a sector of global memory ends, and where a line of 128 bytes of shared memory does. What lies
    outside of a tensor is filled by loads, in pieces of 32 bytes of shared memory; stores leave it out.
    """
    ends = (global_addresses % SECTOR_BYTES == 0) | (shared_addresses % LINE_BYTES == 0)
    starts = _cut(inside, ends, shared_addresses % SECTOR_BYTES == 0)
    outside: Longs = (starts & ~inside).sum(axis=1)
    moved: Longs = (starts & inside).sum(axis=1)
    return Pieces(moved, outside if loads else np.zeros_like(outside), moved)


def count_spread_pieces(global_addresses: Longs, shared_addresses: Longs, inside: Marks) -> Pieces:
    """The same of loads to several blocks of a cluster at once (multicast), for one of them.

    A row is cut where a line of 128 bytes of global or of shared memory ends. Each piece takes its sectors, but two at
    least; one that is filled takes three, of 48 bytes and less, and these, too, are asked of the L2.
    """
    lines = shared_addresses % LINE_BYTES == 0
    starts = _cut(inside, lines | (global_addresses % LINE_BYTES == 0), lines)
    piece = np.cumsum(starts.reshape(-1)) - 1
    begins = np.flatnonzero(starts.reshape(-1))
    sectors = np.bincount(piece, (starts | (global_addresses % SECTOR_BYTES == 0)).reshape(-1)).astype(np.int64)
    filled = ~inside.reshape(-1)[begins]
    takes = np.where(filled, _FILLED_SECTORS, np.maximum(sectors, _LEAST_SECTORS))
    row = begins // inside.shape[1]
    moved, outside = np.zeros((2, inside.shape[0]), np.int64)
    np.add.at(moved, row[~filled], takes[~filled])
    np.add.at(outside, row[filled], takes[filled])
    longest = int(np.bincount(piece)[filled].max(initial=0))
    return Pieces(moved, outside, moved + outside, exact=longest <= _MEASURED_UNITS)


def _cut(inside: Marks, ends: Marks, fills: Marks) -> Marks:
    """Where pieces begin: behind `ends` in a tensor, at `fills` outside of it, and where one passes into the other."""
    starts = np.ones(inside.shape, np.bool_)
    here, before = inside[:, 1:], inside[:, :-1]
    starts[:, 1:] = np.where(here & before, ends[:, 1:], np.where(here | before, True, fills[:, 1:]))  # noqa: FBT003 - a value
    return starts
