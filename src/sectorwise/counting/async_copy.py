"""Turns rows of 32 asynchronous copies (global source, shared destination) into sectors and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.banks import count_conflict_degree
from sectorwise.counting.patterns import LANES, count_distinct

if TYPE_CHECKING:
    import numpy.typing as npt


def count_copy_wavefronts(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of copies through L1 (`.ca`): source and destination bytes [n, 32] to int64 [n].

    Data arrive by 128-byte source line; the lanes of one line are written together, as often as their destinations
    conflict.
    """
    rows = len(sources)
    words_per_lane = max(1, width_bytes // 4)
    words = (destinations >> 2)[:, :, None] + np.arange(words_per_lane, dtype=np.int64)
    lines = np.where(mask, sources >> 7, -1)
    total = np.zeros(rows, dtype=np.int64)
    for lane in range(LANES):
        mine = mask & (lines == lines[:, lane : lane + 1])
        leads = mask[:, lane] & ~mine[:, :lane].any(axis=1)
        if leads.any():
            valid = np.broadcast_to(mine[leads][:, :, None], (int(leads.sum()), LANES, words_per_lane))
            total[leads] += count_conflict_degree(words[leads].reshape(len(valid), -1), valid.reshape(len(valid), -1))
    return total


def count_copy_sectors_bypass(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count the sectors of copies around L1 (`.cg`): distinct pairs of 32-byte source and destination blocks."""
    return count_distinct(((sources >> 5) << 20) | ((destinations >> 5) & ((1 << 20) - 1)), mask)
