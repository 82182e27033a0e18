"""Turns stores of different values by lanes of one warp to one place into doubt about what stays there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.storage import empty_shadow, everywhere, read_words
from sectorwise.machine.taint import ORDERED

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.storage import Lanes, Piece, Words


def stain_collisions(
    pieces: tuple[Piece, ...], width_bytes: int, words: list[Words], active: Lanes | None, warps: int
) -> bool:
    """Marks places, just stored to, for which lanes of one warp had different values; says whether there are any.

    Which lane's value stays is undefined (CUDA C++ Programming Guide, "SIMT Architecture"). Lanes of different warps
    are not compared: barriers between them are not followed here.
    """
    found = False
    kept = read_words(pieces, width_bytes, warps)[0]
    whole = np.uint32((1 << 8 * min(width_bytes, 4)) - 1)
    given = [np.broadcast_to(word & whole, (warps, 32)) for word in words]
    lost = np.zeros((warps, 32), np.bool_)
    for mine, stays in zip(given, kept, strict=True):
        lost |= mine != stays
    if active is not None:
        lost &= active
    # Where every lane reads what it stored, none was overwritten: mostly this is all.
    rows = np.flatnonzero(lost.any(axis=1))
    for piece in pieces if rows.size else ():
        where = everywhere(active, piece.where, warps)
        cells = _find_rivals(np.broadcast_to(piece.index, (warps, 32))[rows], where[rows], [w[rows] for w in given])
        if cells.size:
            found = True
            shadow = empty_shadow(piece.storage)
            for k in range(len(words)):
                shadow[(cells >> 2) + k * (piece.stride_bytes >> 2)] |= np.uint8(ORDERED)
    return found


def _find_rivals(index: npt.NDArray[np.int64], where: Lanes, words: list[Words]) -> npt.NDArray[np.int64]:
    """Byte indices for which lanes of a row have different words; `index`, `where` and words are [rows, 32]."""
    places = np.where(where, index, -1 - np.arange(32))
    order = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, order, axis=1)
    differ = np.zeros((len(places), 31), np.bool_)
    for word in words:
        own = np.take_along_axis(word, order, axis=1)
        differ |= own[:, 1:] != own[:, :-1]
    rivals: npt.NDArray[np.int64] = ordered[:, 1:][differ & (ordered[:, 1:] == ordered[:, :-1])]
    return rivals
