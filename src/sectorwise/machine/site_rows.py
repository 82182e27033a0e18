"""Turns rows of requests that several memory instructions have made into what their counters have counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.sites import HASH_FACTORS, Parts, SiteCounter, count_keys, keep_patterns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Rows = npt.NDArray[np.int64]


def record_rows(
    counters: Mapping[int, SiteCounter], owners: Rows, keys: Rows, parts: Parts, amounts: tuple[Rows, Rows]
) -> None:
    """Adds requests `keys` [rows, columns] (see `sites`) to the counters, of equal accesses, that `owners` [rows] name.

    `amounts` [rows] are how often each came, and in how many lanes altogether.
    """
    times, lanes = amounts
    order = _sort_rows(owners, keys)
    owners, keys, times, lanes = owners[order], keys[order], times[order], lanes[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    distinct, times, owners = keys[starts], np.add.reduceat(times, starts), owners[starts]
    lanes = np.add.reduceat(lanes, starts)
    one = next(iter(counters.values()))
    counts = count_keys(one, distinct, parts)
    ends = np.append(np.flatnonzero(owners[1:] != owners[:-1]) + 1, len(owners))
    start = 0
    for end in ends.tolist():
        counter = counters[int(owners[start])]
        own = slice(start, end)
        counter.modelled |= one.modelled
        counter.lanes += int(lanes[own].sum())
        counter.sums += times[own] @ counts[own]
        keep_patterns(counter, distinct[own], parts, counts[own], times[own])
        start = end


def _sort_rows(owners: Rows, keys: Rows) -> Rows:
    """An order in which rows of one owner stand together, and in these equal ones: those with equal hashes.

    Where unlike rows have one hash, equal ones may be apart: then they count as two, which adds up to the same.
    """
    hashes = keys.view(np.uint64) @ HASH_FACTORS[: keys.shape[1]]
    order: Rows = np.lexsort((hashes, owners))
    return order
