"""Turns rows of 32 global addresses into the wavefronts of the L1's tag and data stages, which bound loads that hit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.banks import count_group_passes
from sectorwise.counting.patterns import LANES, count_equal, mark_first, sum_rows

if TYPE_CHECKING:
    import numpy.typing as npt

_TAG_SET_MASKS = (0x2B5, 0x1DA)
"""Each bit of a tag set's number is the parity of these bits of the line's number: found by fitting 200 launches on an
H200, of lines less than 1024 apart, and right for 71 others; what higher bits do is not known."""


def count_tag_wavefronts(addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the tag wavefronts of global loads, `addresses` bytes [n, 32] to int64 [n].

    The tag stage looks up a line in each of its four sets at once: as many wavefronts as the fullest set has lines of
    128 bytes. They are absolute addresses; a shift by a multiple of 128 KiB changes nothing.
    """
    lines = addresses >> 7
    first = mark_first(lines, mask)
    fullest: npt.NDArray[np.int64] = np.where(first, count_equal(_tag_sets(lines), first), 0).max(axis=1)
    return fullest


def count_data_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the data wavefronts of global loads that hit, `addresses` bytes [n, 32] to int64 [n].

    The lanes of each tag wavefront pass over the banks as in shared memory, without merging; the sets take their lines
    in the order of the lanes. Exact up to 4 bytes; at 8 and 16 it was right for 112 of 120 recorded patterns.
    """
    wave = number_tag_wavefronts(addresses, mask)
    lanes = min(LANES, 128 // max(width_bytes, 4))
    total = np.zeros(len(addresses), dtype=np.int64)
    for number in range(int(wave.max(initial=0)) + 1):
        total += sum_rows(count_group_passes(addresses, mask & (wave == number), width_bytes, lanes))
    return total


def number_tag_wavefronts(addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Number for each lane the tag wavefront that finds its line, from 0: bytes [n, 32] to int64 [n, 32]."""
    lines = addresses >> 7
    sets = _tag_sets(lines)
    first = mark_first(lines, mask)
    opener = np.argmax((lines[:, :, None] == lines[:, None, :]) & first[:, None, :], axis=2)
    earlier = (sets[:, :, None] == sets[:, None, :]) & first[:, None, :] & (np.arange(LANES) < opener[:, :, None])
    number: npt.NDArray[np.int64] = earlier.sum(axis=2, dtype=np.int64)
    return number


def _tag_sets(lines: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number of the tag set of each line, 0 to 3."""
    low, high = (np.bitwise_count(lines & bits).astype(np.int64) & 1 for bits in _TAG_SET_MASKS)
    number: npt.NDArray[np.int64] = low | high << 1
    return number
