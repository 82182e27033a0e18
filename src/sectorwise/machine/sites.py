"""Turns the requests of a memory instruction into counts, counting each distinct address pattern once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Operation, Requests, Space
from sectorwise.machine.execution import Certainty, Site
from sectorwise.machine.lanes import ALL_LANES, unpack

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.counting.request import Access

    Addresses = npt.NDArray[np.int64]
    Lanes = npt.NDArray[np.bool_]
    Keys = npt.NDArray[np.int64]

_PERIOD_BYTES = 128
"""No count depends on more of an address than its place in a line and in the banks, beside the differences."""

_MEMO_LIMIT = 1 << 14
_MEMO_ROWS = 64
"""Above this many distinct patterns in one issue, counting them together is faster than looking each up."""

_COUNTS = 8
_MULTIPLIERS = np.random.default_rng(0x5EC7).integers(1, 1 << 62, 256, np.uint64) * np.uint64(2) + np.uint64(1)


@dataclass(slots=True)
class SiteCounter:
    """Running counts of one memory instruction; `sums` in the order of the fields of `Counts`."""

    instruction: int
    access: Access
    executed: int = 0
    lanes: int = 0
    sums: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_COUNTS, np.int64))
    modelled: bool = False
    assumed: bool = False
    unknown: bool = False
    memo: dict[bytes, npt.NDArray[np.int64]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Patterns:
    """What the counts of one issue can depend on; arrays broadcast to `[warps, 32]`.

    `issuing` of the warps issue it; the others have no active lane. `primary` are the addresses that count,
    `secondary` the shared destination of async copies, `source_bytes` their source size, `generic_spaces` the space of
    each lane of a generic access, `issued` the lanes that issue, where the addresses of those that the guard stops
    matter too.
    """

    warps: int
    issuing: int
    primary: Addresses
    active: Lanes | None = None
    secondary: Addresses | None = None
    source_bytes: Addresses | None = None
    generic_spaces: npt.NDArray[np.int8] | None = None
    issued: Lanes | None = None


def record(counter: SiteCounter, patterns: Patterns) -> None:
    """Adds the requests of one issue to a site."""
    counter.executed += patterns.issuing
    counter.lanes += patterns.warps * 32 if patterns.active is None else int(np.count_nonzero(patterns.active))
    keys, multiplicity = _find_distinct(_make_columns(patterns), patterns.warps)
    counter.sums += multiplicity @ _count(counter, keys, patterns)


def record_rows(counter: SiteCounter, keys: Keys, times: npt.NDArray[np.int64]) -> None:
    """Adds requests that are keys already (see `_make_keys`), each as often as `times` [rows] says."""
    hashes = keys.view(np.uint64) @ _MULTIPLIERS[: keys.shape[1]]
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    distinct, sums = keys[first], np.zeros(len(first), np.int64)
    if not (distinct[inverse] == keys).all():
        distinct, sums, inverse = keys, np.zeros(len(keys), np.int64), np.arange(len(keys))
    np.add.at(sums, inverse, times)
    forms = Patterns(
        len(keys),
        len(keys),
        keys,
        None,
        secondary=keys if counter.access.operation is Operation.ASYNC_COPY else None,
        source_bytes=keys if counter.access.operation is Operation.ASYNC_COPY else None,
        generic_spaces=np.zeros((1, 1), np.int8) if counter.access.space is Space.GENERIC else None,
    )
    counter.sums += sums @ _count(counter, distinct, forms)


def record_silent(counter: SiteCounter, warps: int) -> None:
    """Adds warps that issued without a lane that accessed, or whose access is not known."""
    counter.executed += warps


def close_site(counter: SiteCounter, unknown_because: str | None) -> Site:
    """The site as the execution reports it."""
    certainty = Certainty.EXACT
    if counter.assumed:
        certainty = Certainty.ASSUMED
    elif counter.modelled:
        certainty = Certainty.MODELLED
    *counts, sectors_hardware = (int(total) for total in counter.sums)
    sectors, sectors_ideal, tags, wavefronts, wavefronts_ideal, hardware, local = counts
    return Site(
        counter.instruction,
        counter.access,
        counter.executed,
        counter.lanes,
        sectors,
        sectors_ideal,
        tags,
        wavefronts,
        wavefronts_ideal,
        hardware,
        local,
        certainty,
        unknown_because if counter.unknown else None,
        sectors_hardware,
    )


def _make_columns(patterns: Patterns) -> list[Keys]:
    """What tells requests apart, `[warps or 1, columns]` each.

    The mask; for each kind of address 32 differences to the first active lane and that lane's place in its period;
    the lanes that issue; 32 source sizes; 32 spaces.
    """
    active, warps, issued = patterns.active, patterns.warps, patterns.issued
    columns: list[Keys] = []
    if active is None:
        columns.append(np.full((1, 1), ALL_LANES, np.int64))
    else:
        columns.append(_pack(active))
    for addresses in (patterns.primary, patterns.secondary):
        if addresses is not None:
            columns.extend(_relate(addresses, active if issued is None else issued, warps))
    if issued is not None:
        columns.append(_pack(issued))
    for amounts in (patterns.source_bytes, patterns.generic_spaces):
        if amounts is not None:
            numbers = np.broadcast_to(amounts, (amounts.shape[0], 32)).astype(np.int64)
            columns.append(numbers if active is None else np.where(active, numbers, 0))
    return columns


def _pack(lanes: Lanes) -> Keys:
    """Lanes as one number a row, `[rows, 1]`."""
    return np.packbits(lanes, axis=1, bitorder="little").view("<u4").astype(np.int64)


def _relate(addresses: Addresses, active: Lanes | None, warps: int) -> tuple[Addresses, Addresses]:
    if active is None:
        first = addresses[:, :1]
        if addresses.shape[1] == 1:
            return np.zeros((1, 32), np.int64), first & (_PERIOD_BYTES - 1)
        return addresses - first, first & (_PERIOD_BYTES - 1)
    full = np.broadcast_to(addresses, (warps, 32))
    first = np.take_along_axis(full, active.argmax(axis=1)[:, None], axis=1)
    accesses = np.asarray(active.any(axis=1, keepdims=True))
    place = np.where(accesses, first & (_PERIOD_BYTES - 1), 0)
    return np.where(active, full - first, 0), place


def _find_distinct(columns: list[Keys], warps: int) -> tuple[Keys, npt.NDArray[np.int64]]:
    """Distinct rows of all columns side by side, and how often each occurs."""
    columns = [_shrink(column) for column in columns]
    varying = [column for column in columns if len(column) > 1]
    if not varying:
        return np.concatenate(columns, axis=1), np.array([warps], np.int64)
    first, multiplicity = _find_distinct_rows(varying[0] if len(varying) == 1 else np.concatenate(varying, axis=1))
    parts = [c[first] if len(c) > 1 else np.broadcast_to(c, (len(first), c.shape[1])) for c in columns]
    return np.concatenate(parts, axis=1), multiplicity


def _shrink(column: Keys) -> Keys:
    """One row where all rows are alike: mostly they are."""
    if len(column) > 1 and np.array_equal(column[0], column[-1]) and bool((column == column[:1]).all()):
        return column[:1]
    return column


def _find_distinct_rows(rows: Keys) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.int64]]:
    """First occurrence of each distinct row, and how often it occurs: by a hash, checked, so no collision can pass."""
    if rows.shape[1] == 1:
        _, first, multiplicity = np.unique(rows[:, 0], return_index=True, return_counts=True)
        return first, multiplicity
    hashes = rows.view(np.uint64) @ _MULTIPLIERS[: rows.shape[1]]
    _, first, inverse, multiplicity = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    if np.array_equal(rows[first][inverse], rows):
        return first, multiplicity
    _, first, multiplicity = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, multiplicity


def _count(counter: SiteCounter, keys: Keys, patterns: Patterns) -> npt.NDArray[np.int64]:
    """Counts `[rows, 8]` of distinct keys, from the memo where they are few."""
    if len(keys) > _MEMO_ROWS:
        return _count_keys(counter, keys, patterns)
    names = [key.tobytes() for key in keys]
    missing = [row for row, name in enumerate(names) if name not in counter.memo]
    if missing:
        if len(counter.memo) > _MEMO_LIMIT:
            counter.memo.clear()
            missing = list(range(len(names)))
        for row, counts in zip(missing, _count_keys(counter, keys[missing], patterns), strict=True):
            counter.memo[names[row]] = counts
    return np.stack([counter.memo[name] for name in names])


def _count_keys(counter: SiteCounter, keys: Keys, patterns: Patterns) -> npt.NDArray[np.int64]:
    mask = unpack(keys[:, 0].astype(np.uint32))
    at = 1
    addresses = _restore(keys, at)
    at += 33
    secondary = source_bytes = spaces = issued = None
    if patterns.secondary is not None:
        secondary = _restore(keys, at)
        at += 33
    if patterns.issued is not None:
        issued = unpack(keys[:, at].astype(np.uint32))
        at += 1
    if patterns.source_bytes is not None:
        source_bytes = keys[:, at : at + 32]
        at += 32
    if patterns.generic_spaces is not None:
        spaces = keys[:, at : at + 32].astype(np.int8)
    counts = count_requests(Requests(counter.access, addresses, mask, secondary, source_bytes, spaces, issued))
    counter.modelled |= not counts.exact
    fields = (
        counts.sectors,
        counts.sectors_ideal,
        counts.tag_requests,
        counts.wavefronts,
        counts.wavefronts_ideal,
        counts.wavefronts_hardware,
        counts.sectors_local,
        counts.sectors_hardware,
    )
    return np.stack(fields, axis=1)


def _restore(keys: Keys, at: int) -> Addresses:
    """Addresses with these differences and place, none negative."""
    differences = keys[:, at : at + 32]
    lowest = differences.min(axis=1, keepdims=True)
    shift = (-lowest + _PERIOD_BYTES - 1) // _PERIOD_BYTES * _PERIOD_BYTES
    addresses: Addresses = differences + shift + keys[:, at + 32 : at + 33]
    return addresses
