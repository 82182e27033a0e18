"""Turns the bytes of constant banks into words at any byte offset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]


def pack_bank(content: bytes) -> Words:
    """Words of a bank, with two of zeros behind, so that a word may be read at its last byte."""
    return np.frombuffer(content + bytes(-len(content) % 4 + 8), "<u4")


def read_bank(words: Words, offset: npt.NDArray[np.int64]) -> tuple[Words, npt.NDArray[np.bool_] | None]:
    """Words at byte offsets, and the places that lie outside of the bank, where zero is read; None for none."""
    first = offset >> 2
    wrong = np.asarray((first < 0) | (first >= words.size - 2))
    outside = wrong if wrong.any() else None
    if outside is not None:
        first = np.where(outside, words.size - 2, first)
    low: Words = words[first]
    shift = ((offset & 3) * 8).astype(np.uint64)
    if shift.any():
        # Two-byte parameters may sit inside a word.
        high = words[first + 1].astype(np.uint64) << np.uint64(32)
        low = ((low | high) >> shift).astype(np.uint32)
    return low, outside
