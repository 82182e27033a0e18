"""Turns logged address patterns and issue counters of machine code into the counts of memory sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from sectorwise.counting.atomics import count_rounds
from sectorwise.counting.patterns import list_distinct
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.native.layout import (
    COPY_PATTERN_BYTES,
    LANES,
    LOG_COLUMNS,
    PATTERN,
    PATTERN_BITS,
    PATTERN_BYTES,
    SITE,
    SITE_BYTES,
    WIDE_COLUMNS,
)
from sectorwise.machine.site_rows import record_rows
from sectorwise.machine.sites import Parts, SiteCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.counting.request import Access
    from sectorwise.machine.native.arena import Region

    Rows = npt.NDArray[np.int64]

SITES_A_REQUEST = 3
_WORD_BYTES = 4


def record_log(counters: dict[int, SiteCounter], order: list[int], sized: set[int], rows: Rows) -> None:
    """Adds the rows of a log, plain or wide, to the sites that they name.

    `order` gives the instruction of each site number; `sized` are the copies whose source sizes matter.
    """
    alike: dict[object, list[int]] = {}
    for number in list_distinct(rows[:, 0]).tolist():
        site, space = divmod(number, SITES_A_REQUEST)
        counter = counters[order[site]]
        # Rows of sites that share what they remember are counted together.
        alike.setdefault((id(counter.memo), space, order[site] in sized), []).append(number)
    for numbers in alike.values():
        own = rows if len(alike) == 1 else rows[np.isin(rows[:, 0], numbers)]
        site, space = divmod(numbers[0], SITES_A_REQUEST)
        owners = {number: counters[order[number // SITES_A_REQUEST]] for number in numbers}
        _record(owners, own, space, is_sized=order[site] in sized)


def _record(owners: dict[int, SiteCounter], rows: Rows, space: int, *, is_sized: bool) -> None:
    times, mask, place = rows[:, 1], rows[:, 2:3], rows[:, 3:4]
    columns = [mask, rows[:, 4 : 4 + LANES], place]
    access = next(iter(owners.values())).access
    if access.operation is Operation.ASYNC_COPY:
        other_place, others = rows[:, LOG_COLUMNS : LOG_COLUMNS + 1], rows[:, LOG_COLUMNS + 1 : LOG_COLUMNS + 1 + LANES]
        columns += [others, other_place]
        if access.guard_negated:
            columns.append(rows[:, -1:])
        if is_sized:
            columns.append(rows[:, LOG_COLUMNS + 1 + LANES : -1])
    if access.space is Space.GENERIC:
        columns.append(np.full((len(rows), LANES), space, np.int64))
    parts = Parts(
        secondary=access.operation is Operation.ASYNC_COPY,
        issued=access.operation is Operation.ASYNC_COPY and bool(access.guard_negated),
        source_bytes=is_sized,
        spaces=access.space is Space.GENERIC,
    )
    lanes = np.bitwise_count(mask[:, 0].astype(np.uint32)).astype(np.int64) * times
    record_rows(owners, rows[:, 0], np.concatenate(columns, axis=1), parts, (times, lanes))


def may_forget(access: Access) -> bool:
    """Whether machine code has a rule for these accesses, or for those of their lanes that reach global memory."""
    if access.operation in (Operation.ASYNC_COPY, Operation.MATRIX_LOAD, Operation.MATRIX_STORE):
        return False
    if access.space is Space.SHARED:
        return access.operation in (Operation.LOAD, Operation.STORE) and access.width_bytes <= _WORD_BYTES
    if access.space is Space.GENERIC:
        # The pipe counts generic atomics wherever their lanes are.
        return access.operation not in (Operation.ATOMIC, Operation.REDUCTION)
    return access.space is Space.GLOBAL


def add_together(sites: Region, number: int, counter: SiteCounter, times: int) -> None:
    """Takes off what a generic atomic's site (by number) counted twice, `times` over: lanes of one pass, in two spaces.

    Those in shared memory are a request of their own, and the others too; the pipe has them in one.
    """
    place = number * SITE_BYTES + SITE["both"]
    passes = times * sites.get(place, "q") * count_rounds(counter.access.modifiers)
    counter.sums -= (0, 0, 0, 0, 0, passes, 0, 0, 0)
    sites.put(place, "q", 0)


def add_forgotten(sites: Region, number: int, counter: SiteCounter, times: int) -> None:
    """Adds what a site (by number) has counted where it stands, `times` over; from now on it has counted nothing."""
    start = number * SITE_BYTES
    names = ("sum_cost", "sum_ideal", "sum_lines", "sum_lanes", "sum_requests")
    cost, ideal, lines, lanes, requests = (times * sites.get(start + SITE[name], "q") for name in names)
    # In the order of `SiteCounter.sums`; the pipe counts these as the source view does.
    if counter.access.space is Space.SHARED:
        counter.sums += (0, 0, 0, cost, ideal, cost, 0, 0, requests)
    else:
        counter.sums += (cost, ideal, lines, 0, 0, 0, 0, cost, requests)
    counter.lanes += lanes
    for name in names:
        sites.put(start + SITE[name], "q", 0)
    sites.put(start + SITE["most_excess"], "q", -1)


def take_patterns(sites: Region, number: int, access: Access) -> Rows:
    """What a site (by number) remembers, as rows of its log; from now on it has seen nothing."""
    start = number * SITE_BYTES + SITE["patterns"]
    is_copy = access.operation is Operation.ASYNC_COPY
    size = COPY_PATTERN_BYTES if is_copy else PATTERN_BYTES
    table = sites.octets[start : start + (size << PATTERN_BITS)].reshape(-1, size)
    hits = _column(table, PATTERN["hits"], "<i8")
    octets = table[hits > 0]
    rows = np.zeros((len(octets), WIDE_COLUMNS if is_copy else LOG_COLUMNS), np.int64)
    rows[:, 0], rows[:, 1] = number, hits[hits > 0]
    rows[:, 2] = _column(octets, PATTERN["mask"], "<u4")
    rows[:, 3] = _column(octets, PATTERN["place"], "<u4")
    is_long = is_copy or access.space is Space.GLOBAL or (access.space is Space.GENERIC and number % 3 == 0)
    rows[:, 4 : 4 + LANES] = _lanes(octets, PATTERN["differences"], "<i8" if is_long else "<i4")
    if is_copy:
        rows[:, LOG_COLUMNS] = _column(octets, PATTERN["other_place"], "<u4")
        rows[:, LOG_COLUMNS + 1 : LOG_COLUMNS + 1 + LANES] = _lanes(octets, PATTERN["others"], "<i4")
        rows[:, LOG_COLUMNS + 1 + LANES : -1] = _lanes(octets, PATTERN["sizes"], "<i4")
        rows[:, -1] = _column(octets, PATTERN["issued"], "<u4")
    table[:, PATTERN["hits"] : PATTERN["hits"] + 8] = 0
    # The next request is a first one again: no pattern is recent, and the one with number 0 is no request's.
    table[0, PATTERN["mask"] : PATTERN["mask"] + 8] = 0
    sites.put(number * SITE_BYTES + SITE["touched"], "i", 0)
    sites.octets[number * SITE_BYTES + SITE["recent"] : start] = 0
    return rows


def join_rows(parts: Sequence[Rows]) -> list[Rows]:
    """The rows of many sites in one array for each kind of log: counting few rows takes as long as counting many."""
    by_columns: dict[int, list[Rows]] = {}
    for rows in parts:
        by_columns.setdefault(rows.shape[1], []).append(rows)
    return [np.concatenate(alike) for alike in by_columns.values()]


def _column(octets: npt.NDArray[np.uint8], offset: int, form: str) -> Rows:
    size = np.dtype(form).itemsize
    field = octets[:, offset : offset + size].view(form)
    return cast("Rows", field[:, 0].astype(np.int64))


def _lanes(octets: npt.NDArray[np.uint8], offset: int, form: str) -> Rows:
    size = np.dtype(form).itemsize * LANES
    return cast("Rows", octets[:, offset : offset + size].view(form).astype(np.int64))
