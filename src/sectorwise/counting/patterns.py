"""Turns rows of values with a validity mask into counts of distinct values, the arithmetic that all counting shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

LANES = 32
"""Lanes of a warp."""

_LAST = np.iinfo(np.int64).max


def sort_distinct(
    values: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Sort each row of `values` [n, k] and mark the first occurrence of each valid value.

    Returns the sorted rows [n, k] and a mask [n, k] that is true once for each distinct valid value of the row.
    """
    ordered = np.sort(np.where(valid, values, _LAST), axis=1)
    first = ordered != _LAST
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered, first


def list_distinct(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """List the distinct values in order, [n]: as np.unique does, which loads all of np.ma first."""
    ordered = np.sort(values, axis=None)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if ordered.size else ordered


def count_distinct(values: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the distinct valid values of each row: `values` [n, k], `valid` [n, k] to int64 [n]."""
    return count_valid(sort_distinct(values, valid)[1])


def count_valid(mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count the set entries of each row: `mask` [n, k] to int64 [n]."""
    count: npt.NDArray[np.int64] = mask.sum(axis=1, dtype=np.int64)
    return count


def divide_up(numerator: npt.NDArray[np.int64], denominator: int) -> npt.NDArray[np.int64]:
    """Divide non-negative integers and round up."""
    return (numerator + (denominator - 1)) // denominator


def sum_rows(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up each row: `counts` [n, k] to int64 [n]."""
    total: npt.NDArray[np.int64] = counts.sum(axis=1, dtype=np.int64)
    return total


def mark_first(values: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Mark in each row the lowest lane of each distinct valid value: [n, k] to bool [n, k]."""
    earlier = np.tri(values.shape[1], k=-1, dtype=np.bool_)
    repeats = (values[:, :, None] == values[:, None, :]) & valid[:, None, :] & earlier
    first: npt.NDArray[np.bool_] = valid & ~repeats.any(axis=2)
    return first


def count_equal(values: npt.NDArray[np.int64], valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Count for each lane the valid lanes of its row that hold its value: [n, k] to int64 [n, k]."""
    equal = (values[:, :, None] == values[:, None, :]) & valid[:, None, :]
    count: npt.NDArray[np.int64] = equal.sum(axis=2, dtype=np.int64)
    return count
