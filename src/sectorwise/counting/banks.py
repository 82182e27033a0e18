"""Turns rows of 32 shared-memory addresses into passes (wavefronts) over the 32 banks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.patterns import LANES, count_valid, divide_up, sort_distinct, sum_rows

if TYPE_CHECKING:
    import numpy.typing as npt

BANKS = 32
BANK_BYTES = 4
PASS_BYTES = BANKS * BANK_BYTES
MATRIX_ROWS = 8
MATRIX_ROW_BYTES = 16


def count_conflict_degree(words: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count for each row the most distinct words that fall into one bank.

    `words` are addresses in units of 4 bytes [n, k], `valid` [n, k]; returns int64 [n], zero where nothing is valid.
    """
    rows = len(words)
    ordered, first = sort_distinct(words, valid)
    slots = np.arange(rows, dtype=np.int64)[:, None] * BANKS + (ordered & (BANKS - 1))
    return _count_fullest_bank(slots[first], rows)


def count_group_passes(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int, lanes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of each group of `lanes` neighbouring lanes taken together: [n, 32] to int64 [n, 32 / lanes]."""
    rows, groups = len(addresses), LANES // lanes
    words_per_lane = max(1, width_bytes // BANK_BYTES)
    words = (addresses >> 2)[:, :, None] + np.arange(words_per_lane, dtype=np.int64)
    valid = np.broadcast_to(mask[:, :, None], words.shape)
    degrees = count_conflict_degree(words.reshape(rows * groups, -1), valid.reshape(rows * groups, -1))
    return degrees.reshape(rows, groups)


def count_store_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of shared stores, which never merge: 32, 16 or 8 lanes at a time for 4, 8 or 16 bytes."""
    return sum_rows(count_group_passes(addresses, mask, width_bytes, _lanes_per_pass(width_bytes)))


def count_load_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of shared loads as the profiler's source view does: `addresses` bytes [n, 32] to int64 [n].

    Two passes become one where their lanes pair up on equal addresses, i with i^1 or i with i^2, and where the one
    pass that remains is free of conflicts: both halves of the warp at 8 bytes, the two quarters of either half at 16.
    An inactive partner counts as equal at 8 bytes and in the upper half. In the lower half it counts as different,
    unless lane 31 is inactive: then the lower half need not pair up at all.
    """
    single = count_group_passes(addresses, mask, width_bytes, _lanes_per_pass(width_bytes))
    match width_bytes:
        case 8:
            merged = count_group_passes(addresses, mask, 8, LANES)
            merges = _pairs_up(addresses, mask, LANES) & (merged <= 1)
            return np.where(merges, merged, sum_rows(single)[:, None])[:, 0]
        case 16:
            merged = count_group_passes(addresses, mask, 16, 16)
            upper = _pairs_up(addresses, mask, 16)[:, 1]
            lower = _pairs_up(addresses, mask, 16, inactive_differs=True)[:, 0] | ~mask[:, LANES - 1]
            merges = np.stack([lower, upper], axis=1) & (merged <= 1)
            return sum_rows(np.where(merges, merged, single.reshape(-1, 2, 2).sum(axis=2)))
        case _:
            return sum_rows(single)


def count_load_wavefronts_hardware(
    addresses: npt.NDArray[np.int64],
    mask: npt.NDArray[np.bool_],
    width_bytes: int,
    active: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.int64]:
    """Count the passes of shared loads as the L1 pipe does: the whole warp merges, or no part of it.

    `active` are all lanes that access, where a generic load takes some of them to other memories: lanes pair up across
    memories too, that is, they differ.
    """
    single = count_store_wavefronts(addresses, mask, width_bytes)
    merges = _pairs_up(addresses, mask if active is None else active, LANES)[:, 0]
    match width_bytes:
        case 8:
            return np.where(merges, count_group_passes(addresses, mask, 8, LANES)[:, 0], single)
        case 16:
            return np.where(merges, sum_rows(count_group_passes(addresses, mask, 16, 16)), single)
        case _:
            return single


def count_matrix_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], matrices: int
) -> npt.NDArray[np.int64]:
    """Count the passes of matrix loads and stores: one group of eight 16-byte rows for each 8x8 matrix."""
    return sum_rows(count_group_passes(addresses, mask, MATRIX_ROW_BYTES, MATRIX_ROWS)[:, :matrices])


def count_ideal_wavefronts(
    wavefronts: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Return the passes that the active lanes would need without conflicts, never more than `wavefronts` [n]."""
    return np.minimum(wavefronts, divide_up(count_valid(mask) * width_bytes, PASS_BYTES))


def _count_fullest_bank(slots: npt.NDArray[np.int64], rows: int) -> npt.NDArray[np.int64]:
    """Count the entries of the fullest bank of each row, where a slot is row * 32 + bank."""
    loads: npt.NDArray[np.int64] = np.bincount(slots, minlength=rows * BANKS).reshape(rows, BANKS).astype(np.int64)
    fullest: npt.NDArray[np.int64] = loads.max(axis=1)
    return fullest


def _lanes_per_pass(width_bytes: int) -> int:
    return min(LANES, PASS_BYTES // max(width_bytes, BANK_BYTES))


def _pairs_up(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], lanes: int, *, inactive_differs: bool = False
) -> npt.NDArray[np.bool_]:
    """Whether all lanes of each group of `lanes` equal lane i^1, or all lane i^2: [n, 32] to bool [n, 32 / lanes].

    Two inactive lanes are equal; an active and an inactive one are too, unless `inactive_differs`.
    """
    groups = (len(addresses), LANES // lanes, lanes)
    result = np.zeros(groups[:2], dtype=np.bool_)
    order = np.arange(LANES)
    for distance in (1, 2):
        partner = order ^ distance
        both, neither = mask & mask[:, partner], ~mask & ~mask[:, partner]
        equal = (both & (addresses == addresses[:, partner])) | neither
        if not inactive_differs:
            equal |= mask ^ mask[:, partner]
        result |= equal.reshape(groups).all(axis=2)
    return result
