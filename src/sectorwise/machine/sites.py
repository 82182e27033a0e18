"""Turns the requests of a memory instruction into counts, counting each distinct address pattern once."""

from __future__ import annotations

from itertools import groupby, repeat
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Requests, Space
from sectorwise.machine.execution import Certainty, FirstRequest, Pattern, Site
from sectorwise.machine.lanes import ALL_LANES, unpack
from sectorwise.machine.taint import KNOWN, ORDERED

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sectorwise.counting.request import Access

    Addresses = npt.NDArray[np.int64]
    Lanes = npt.NDArray[np.bool_]
    Keys = npt.NDArray[np.int64]
    Row = tuple[int, ...]

PERIOD_BYTES = 128
"""No count depends on more of an address than its place in a line and in the banks, beside the differences."""

COPY_PERIOD_BYTES = 1 << 17
"""But the passes of copies through L1 depend on the tag sets of their source lines, which repeat after so much."""

_MEMO_LIMIT = 1 << 14
_MEMO_ROWS = 64
"""Above this many distinct patterns in one issue, counting them together is faster than looking each up."""

_KEPT_PATTERNS = 16
"""Distinct patterns of a site that are kept for people to see."""

_COUNTS = 9
HASH_FACTORS = np.random.default_rng(0x5EC7).integers(1, 1 << 62, 256, np.uint64) * np.uint64(2) + np.uint64(1)


class Parts(Struct, frozen=True):
    """What a key has after mask and addresses."""

    secondary: bool = False
    issued: bool = False
    source_bytes: bool = False
    spaces: bool = False


class _Kept(Struct):
    """A pattern that is kept: its key, its counts [9], how often it came, sectors and passes beyond the ideal."""

    key: Keys
    parts: Parts
    counts: Keys
    times: int
    excess: int


class SiteCounter(Struct):
    """Running counts of one memory instruction.

    `sums` are in the order of the fields of `Counts`, then requests that have a lane that accesses memory.
    `doubts` is all that was uncertain about its addresses, its guard and the way to it; `unknown` says that some
    requests are not in the counts, `sampled` that some blocks stand for others without a proof; `met` is what it met
    that CUDA leaves undefined (`encounters`).
    """

    instruction: int
    access: Access
    executed: int = 0
    lanes: int = 0
    sums: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(_COUNTS, np.int64))
    modelled: bool = False
    doubts: int = KNOWN
    unknown: bool = False
    sampled: bool = False
    met: int = 0
    memo: dict[bytes, npt.NDArray[np.int64]] = field(default_factory=dict)
    kept: dict[bytes, _Kept] = field(default_factory=dict)
    first: FirstRequest | None = None


class Patterns(Struct, frozen=True):
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
    parts = Parts(
        secondary=patterns.secondary is not None,
        issued=patterns.issued is not None,
        source_bytes=patterns.source_bytes is not None,
        spaces=patterns.generic_spaces is not None,
    )
    keys, times = _find_distinct(_make_columns(patterns), patterns.warps)
    counts = count_keys(counter, keys, parts)
    counter.sums += times @ counts
    keep_patterns(counter, keys, parts, counts, times)


def keep_patterns(counter: SiteCounter, keys: Keys, parts: Parts, counts: Keys, times: Keys) -> None:
    """Keeps the dearest of distinct patterns: `keys` [n, columns], their `counts` [n, 9], each `times` [n] seen."""
    excess = counts[:, 0] - counts[:, 1] + counts[:, 3] - counts[:, 4]
    dearest = range(len(keys)) if len(keys) <= _KEPT_PATTERNS else np.argsort(-excess * times, kind="stable")
    least: int | None = None
    for row in dearest[:_KEPT_PATTERNS]:
        if keys[row, 0] == 0:
            continue
        name = keys[row].tobytes()
        known = counter.kept.get(name)
        if known is not None:
            known.times += int(times[row])
            continue
        if len(counter.kept) == _KEPT_PATTERNS:
            if least is None:
                least = min(kept.excess for kept in counter.kept.values())
            if least >= excess[row]:
                continue
            del counter.kept[next(each for each, kept in counter.kept.items() if kept.excess == least)]
            least = None
        counter.kept[name] = _Kept(keys[row], parts, counts[row], int(times[row]), int(excess[row]))


def find_least_excess(counter: SiteCounter) -> int:
    """The sectors and passes beyond the ideal that a pattern has to exceed to be kept; -1 as long as any is kept."""
    if len(counter.kept) < _KEPT_PATTERNS:
        return -1
    return min(kept.excess for kept in counter.kept.values())


def find_first(
    addresses: Addresses, active: Lanes | None, rows: npt.NDArray[np.intp] | None, numbers: npt.NDArray[np.int64]
) -> FirstRequest | None:
    """The request of the first warp that accesses; None if none does.

    `addresses` broadcast to `[warps, 32]`; `rows` are the warps of the batch, which has them of these `numbers`.
    """
    row = 0 if active is None else int(active.any(axis=1).argmax())
    lanes = np.ones(32, np.bool_) if active is None else active[row]
    if not lanes.any():
        return None
    shown = np.where(lanes, addresses[min(row, len(addresses) - 1)], 0)
    warp = row if rows is None else int(rows[row])
    return FirstRequest(int(numbers[warp]), tuple(shown.tolist()), int(_pack(lanes[None])[0, 0]))


def record_silent(counter: SiteCounter, warps: int) -> None:
    """Adds warps that issued without a lane that accessed, or whose access is not known."""
    counter.executed += warps


def judge_doubts(doubts: int) -> Certainty:
    """How sure a count is of which these flags are all that was uncertain."""
    if doubts & ORDERED:
        return Certainty.SCHEDULE_DEPENDENT
    return Certainty.ASSUMED if doubts else Certainty.EXACT


def close_site(counter: SiteCounter, unknown_because: str | None) -> Site:
    """The site as the execution reports it."""
    certainty = judge_doubts(counter.doubts)
    if certainty is Certainty.EXACT and counter.modelled:
        certainty = Certainty.MODELLED
    elif counter.sampled:
        certainty = Certainty.SAMPLED
    *counts, sectors_hardware, requests = (int(total) for total in counter.sums)
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
        _count_silent(counter, requests),
        tuple(_show_patterns(counter)),
        counter.first,
    )


def _count_silent(counter: SiteCounter, requests: int) -> int:
    """Issues without a lane that accesses memory; none of unknown accesses, and of generic ones, whose parts count."""
    if counter.unknown or counter.access.space is Space.GENERIC:
        return 0
    return max(0, counter.executed - requests)


def _show_patterns(counter: SiteCounter) -> Iterator[Pattern]:
    """What is kept, the dearest first."""
    ranked = sorted(counter.kept.values(), key=lambda kept: -kept.excess * kept.times)
    for parts, group in groupby(ranked, lambda kept: kept.parts):
        kept = list(group)
        requests = _restore_requests(counter, np.stack([each.key for each in kept]), parts)
        rows = [
            repeat(None) if values is None else map(tuple, np.where(requests.mask, values, 0).tolist())
            for values in (requests.shared_addresses, requests.source_bytes, requests.generic_spaces)
        ]
        addresses = map(tuple, np.where(requests.mask, requests.addresses, 0).tolist())
        yield from (_show_pattern(*each) for each in zip(kept, addresses, *rows, strict=False))


def _show_pattern(
    kept: _Kept, addresses: Row, shared_addresses: Row | None, source_bytes: Row | None, generic_spaces: Row | None
) -> Pattern:
    sectors, sectors_ideal, _tags, wavefronts, wavefronts_ideal, *_ = (int(each) for each in kept.counts)
    return Pattern(
        addresses=addresses,
        mask=int(kept.key[0]),
        times=kept.times,
        sectors=sectors,
        sectors_ideal=sectors_ideal,
        wavefronts=wavefronts,
        wavefronts_ideal=wavefronts_ideal,
        shared_addresses=shared_addresses,
        source_bytes=source_bytes,
        generic_spaces=generic_spaces,
    )


def _make_columns(patterns: Patterns) -> list[Keys]:
    """What tells requests apart, `[warps or 1, columns]` each.

    The mask; for each kind of address 32 differences to the first active lane and that lane's place in its period;
    the lanes that issue; 32 source sizes; 32 spaces.
    """
    active, warps = patterns.active, patterns.warps
    issued = None if patterns.issued is None else np.broadcast_to(patterns.issued, (warps, 32))
    columns: list[Keys] = []
    if active is None:
        columns.append(np.full((1, 1), ALL_LANES, np.int64))
    else:
        columns.append(_pack(active))
    lanes = active if issued is None else issued
    if patterns.secondary is None:
        columns.extend(_relate(patterns.primary, lanes, warps, PERIOD_BYTES))
    else:
        columns.extend(_relate(patterns.primary, lanes, warps, COPY_PERIOD_BYTES))
        columns.extend(_relate(patterns.secondary, lanes, warps, PERIOD_BYTES))
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


def _relate(addresses: Addresses, active: Lanes | None, warps: int, period_bytes: int) -> tuple[Addresses, Addresses]:
    if active is None:
        first = addresses[:, :1]
        if addresses.shape[1] == 1:
            return np.zeros((1, 32), np.int64), first & (period_bytes - 1)
        return addresses - first, first & (period_bytes - 1)
    full = np.broadcast_to(addresses, (warps, 32))
    first = np.take_along_axis(full, active.argmax(axis=1)[:, None], axis=1)
    accesses = np.asarray(active.any(axis=1, keepdims=True))
    place = np.where(accesses, first & (period_bytes - 1), 0)
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
    hashes = rows.view(np.uint64) @ HASH_FACTORS[: rows.shape[1]]
    _, first, inverse, multiplicity = np.unique(hashes, return_index=True, return_inverse=True, return_counts=True)
    if np.array_equal(rows[first][inverse], rows):
        return first, multiplicity
    _, first, multiplicity = np.unique(rows, axis=0, return_index=True, return_counts=True)
    return first, multiplicity


def count_keys(counter: SiteCounter, keys: Keys, parts: Parts) -> npt.NDArray[np.int64]:
    """Counts `[rows, 9]` of distinct keys (see `_make_columns`), from the memo where they are few."""
    if len(keys) > _MEMO_ROWS:
        return _count_keys(counter, keys, parts)
    names = [key.tobytes() for key in keys]
    missing = [row for row, name in enumerate(names) if name not in counter.memo]
    if missing:
        if len(counter.memo) > _MEMO_LIMIT:
            counter.memo.clear()
            missing = list(range(len(names)))
        for row, counts in zip(missing, _count_keys(counter, keys[missing], parts), strict=True):
            counter.memo[names[row]] = counts
    return np.stack([counter.memo[name] for name in names])


def _count_keys(counter: SiteCounter, keys: Keys, parts: Parts) -> npt.NDArray[np.int64]:
    requests = _restore_requests(counter, keys, parts)
    lanes = requests.mask if requests.source_bytes is None else requests.mask & (requests.source_bytes > 0)
    counts = count_requests(requests)
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
        lanes.any(axis=1).astype(np.int64),  # a lane that only fills zeros in shared memory accesses none
    )
    return np.stack(fields, axis=1)


def _restore_requests(counter: SiteCounter, keys: Keys, parts: Parts) -> Requests:
    """Requests whose keys these are."""
    mask = unpack(keys[:, 0].astype(np.uint32))
    at = 1
    addresses = _restore(keys, at)
    at += 33
    secondary = source_bytes = spaces = issued = None
    if parts.secondary:
        secondary = _restore(keys, at)
        at += 33
    if parts.issued:
        issued = unpack(keys[:, at].astype(np.uint32))
        at += 1
    if parts.source_bytes:
        source_bytes = keys[:, at : at + 32]
        at += 32
    if parts.spaces:
        spaces = keys[:, at : at + 32].astype(np.int8)
    return Requests(counter.access, addresses, mask, secondary, source_bytes, spaces, issued)


def _restore(keys: Keys, at: int) -> Addresses:
    """Addresses with these differences and place, none negative."""
    differences = keys[:, at : at + 32]
    lowest = differences.min(axis=1, keepdims=True)
    shift = (-lowest + COPY_PERIOD_BYTES - 1) // COPY_PERIOD_BYTES * COPY_PERIOD_BYTES
    addresses: Addresses = differences + shift + keys[:, at + 32 : at + 33]
    return addresses
