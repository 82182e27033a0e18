"""Turns rows of 32 asynchronous copies (global source, shared destination) into sectors and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.patterns import LANES, count_distinct, sum_rows

if TYPE_CHECKING:
    import numpy.typing as npt

_LINE_BYTES = 128
_CHUNK_BYTES = 16
_OCTET = 8


def count_copy_wavefronts(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of copies through L1 (`.ca`) as the source view does: bytes [n, 32] to int64 [n].

    The lanes go 32, 16 or 8 at a time for 4, 8 or 16 bytes. Two lanes of such a group disturb each other where their
    sources share a bank of the L1 data array or their destinations share a bank of shared memory, equal addresses
    included; the group costs as many passes as its most disturbed lane has such neighbours, itself counted.
    """
    group = _LINE_BYTES // width_bytes
    shape = (len(sources) * (LANES // group), group)
    source = ((sources // width_bytes) % group).reshape(shape)
    destination = ((destinations // width_bytes) % group).reshape(shape)
    active = mask.reshape(shape)
    most = np.zeros(len(source), dtype=np.int64)
    for lane in range(group):
        meets = (source == source[:, lane : lane + 1]) | (destination == destination[:, lane : lane + 1])
        disturbed = (meets & active).sum(axis=1, dtype=np.int64)
        most = np.maximum(most, np.where(active[:, lane], disturbed, 0))
    return sum_rows(most.reshape(len(sources), -1))


def count_copy_wavefronts_bypass(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count the passes of copies around L1 (`.cg`) as the source view does: bytes [n, 32] to int64 [n].

    Eight lanes at a time; lanes go together where they write one 128-byte line of shared memory and their 16-byte
    chunks are displaced within the line by the same exclusive or.
    """
    lines = destinations >> 7
    displacement = ((sources ^ destinations) >> 4) & 7
    shape = (len(sources) * (LANES // _OCTET), _OCTET)
    keys = (lines << 3 | displacement).reshape(shape)
    return sum_rows(count_distinct(keys, mask.reshape(shape)).reshape(len(sources), -1))


def count_copy_sectors_bypass(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count the sectors of copies around L1 (`.cg`): distinct pairs of 32-byte source and destination blocks."""
    blocks = (destinations >> 5) & ((1 << 20) - 1)
    return count_distinct(((sources >> 5) << 20) | blocks, mask)
