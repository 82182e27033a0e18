"""Turns rows of 32 byte addresses into the sectors and tag requests of global and local memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.patterns import count_distinct, count_valid, divide_up

if TYPE_CHECKING:
    import numpy.typing as npt

SECTOR_BYTES = 32
LINE_BYTES = 128
_WORD_BYTES = 4
_LOCAL_ROW_BYTES = 128


def count_sectors(addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the distinct 32-byte sectors of each request: `addresses` bytes [n, 32], `mask` [n, 32] to int64 [n].

    The width does not enter: an access is aligned to its width, at most 32 bytes, and so lies within one sector.
    """
    return count_distinct(addresses >> 5, mask)


def count_tag_requests(addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the distinct 128-byte lines of each request: `addresses` bytes [n, 32], `mask` [n, 32] to int64 [n]."""
    return count_distinct(addresses >> 7, mask)


def count_ideal_sectors(
    sectors: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Return the sectors that the active lanes would need if packed, never more than `sectors` [n]."""
    return np.minimum(sectors, divide_up(count_valid(mask) * width_bytes, SECTOR_BYTES))


def count_local_sectors(
    offsets: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the sectors of local accesses: `offsets` bytes into each thread's local memory [n, 32] to int64 [n].

    Local memory interleaves the lanes by words of 4 bytes: word w of lane l lies in row w of 128 bytes, at 4 l.
    """
    words_per_lane = max(1, width_bytes // _WORD_BYTES)
    words = (offsets[:, :, None] // _WORD_BYTES) + np.arange(words_per_lane, dtype=np.int64)
    lanes = np.arange(offsets.shape[1], dtype=np.int64)
    physical = words * _LOCAL_ROW_BYTES + (lanes * _WORD_BYTES)[None, :, None]
    valid = np.broadcast_to(mask[:, :, None], physical.shape)
    rows = len(offsets)
    return count_distinct((physical >> 5).reshape(rows, -1), valid.reshape(rows, -1))
