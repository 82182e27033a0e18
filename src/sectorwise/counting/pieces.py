"""Turns copies of rows of bytes between global and shared memory (TMA) into the pieces that the hardware moves.

The profiler counts them as sectors that TMA reads or writes. Of 72 launches that an H200 counted 71 are equal; the
other one copies short rows to several blocks at once (tests/measured/test_tiles.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Longs = npt.NDArray[np.int64]
    Marks = npt.NDArray[np.bool_]

UNIT_BYTES: Final = 16
_SECTOR_BYTES: Final = 32
_LINE_BYTES: Final = 128


def count_pieces(global_addresses: Longs, shared_addresses: Longs, inside: Marks, *, loads: bool) -> Longs:
    """Pieces of each row of units of 16 bytes; all arrays are `[rows, units]`, the result is `[rows]`.

    A row is cut where a sector of global memory ends, and where a line of 128 bytes of shared memory does. What lies
    outside of a tensor is filled by loads, in pieces of 32 bytes of shared memory; stores leave it out.
    """
    starts = np.ones(inside.shape, np.bool_)
    here, before = inside[:, 1:], inside[:, :-1]
    moved = (global_addresses[:, 1:] % _SECTOR_BYTES == 0) | (shared_addresses[:, 1:] % _LINE_BYTES == 0)
    filled = shared_addresses[:, 1:] % _SECTOR_BYTES == 0
    starts[:, 1:] = np.where(here & before, moved, np.where(here | before, True, filled))  # noqa: FBT003 - a value
    counted = starts if loads else starts & inside
    pieces: Longs = counted.sum(axis=1)
    return pieces
