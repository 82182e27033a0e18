"""Turns arrivals and transactions on mbarriers, many at a time, into the barriers' next words and what each lane saw.

An mbarrier is one 64-bit word of shared memory, of which code reads no more than the parity of its phase (bit 63) and
the arrivals that it awaits. Where these lie is told by the words that compiled code makes to initialise barriers, and
by what `mbarrier.pending_count` takes from a word (NVRTC 13.0): from sm_90 on the arrivals awaited are a negative
number in bits 43 to 62, those of a whole phase one in bits 1 to 20, and bits 21 to 42 are left for bytes under way;
before, they are bits 32 to 62 and 0 to 29. Bit 0 says here that bytes have come, nobody knows how many, before it was
said that they would.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Words = npt.NDArray[np.uint64]
Amounts = npt.NDArray[np.int64]

_PHASE = 63


class Layout(Struct, frozen=True):
    """Where the fields of a barrier's word lie: first bit and bits; no `bytes_bits`: it knows no transactions."""

    pending: int
    pending_bits: int
    expected: int
    expected_bits: int
    bytes: int = 0
    bytes_bits: int = 0


WITH_TRANSACTIONS = Layout(43, 20, 1, 20, 21, 22)
WITHOUT_TRANSACTIONS = Layout(32, 31, 0, 30)


class Arrivals(Struct, frozen=True):
    """What each lane does to a barrier: arrivals, bytes that come under way (negative: have come), lanes that leave."""

    arrivals: Amounts
    transactions: Amounts
    leaving: Amounts


def arrive_in_turn(memory: Words, cells: npt.NDArray[np.int64], given: Arrivals, layout: Layout) -> Words:
    """Applies all to the words `cells` of a memory, lane after lane; returns the word that each lane saw."""
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    starts = np.flatnonzero(first)
    run = np.cumsum(first) - 1
    until = [np.cumsum(each[order]) for each in (given.arrivals, given.transactions, given.leaving)]
    begin = [total[starts] - each[order][starts] for total, each in zip(until, _fields(given), strict=True)]
    through = Arrivals(*(total - at[run] for total, at in zip(until, begin, strict=True)))
    before = Arrivals(*(total - each[order] for total, each in zip(_fields(through), _fields(given), strict=True)))
    old = memory[ordered]
    seen = np.empty_like(old)
    seen[order] = advance(old, before, layout)
    last = np.append(starts[1:], len(ordered)) - 1
    memory[ordered[last]] = advance(old[last], Arrivals(*(each[last] for each in _fields(through))), layout)
    return seen


def _fields(given: Arrivals) -> tuple[Amounts, Amounts, Amounts]:
    return given.arrivals, given.transactions, given.leaving


def advance(words: Words, given: Arrivals, layout: Layout) -> Words:
    """Words after arrivals: a phase ends once nobody is awaited and no byte is under way, and the next one begins."""
    expected = _negative(words, layout.expected, layout.expected_bits) - given.leaving
    pending = _negative(words, layout.pending, layout.pending_bits) - given.arrivals
    under_way = np.zeros_like(pending)
    credit = spends = np.zeros(pending.shape, np.bool_)
    if layout.bytes_bits:
        half = 1 << (layout.bytes_bits - 1)
        raw = (words >> np.uint64(layout.bytes) & np.uint64(2 * half - 1)).astype(np.int64)
        credit = (words & np.uint64(1)) != 0
        spends = credit & (given.transactions > 0)
        under_way = np.where(raw >= half, raw - 2 * half, raw) + np.where(spends, 0, given.transactions)
    phase = (words >> np.uint64(_PHASE)).astype(np.int64)
    acted = (given.arrivals != 0) | (given.transactions != 0)
    ends = acted & (pending <= 0) & (under_way == 0)
    # Who arrives too often ends more than one phase.
    turns = np.where(ends, np.where(expected > 0, -pending // np.maximum(expected, 1) + 1, 1), 0)
    pending = pending + turns * np.maximum(expected, 0)
    phase = (phase + turns) & 1
    made = phase.astype(np.uint64) << np.uint64(_PHASE)
    made |= _bits(-pending, layout.pending_bits) << np.uint64(layout.pending)
    made |= _bits(-expected, layout.expected_bits) << np.uint64(layout.expected)
    if layout.bytes_bits:
        made |= _bits(under_way, layout.bytes_bits) << np.uint64(layout.bytes)
        made |= (credit & ~spends).astype(np.uint64)
    return made


def bytes_under_way(words: Words) -> Amounts:
    """Bytes that barriers with transactions still wait for."""
    raw = (words >> np.uint64(WITH_TRANSACTIONS.bytes) & np.uint64((1 << 22) - 1)).astype(np.int64)
    return np.where(raw >= 1 << 21, raw - (1 << 22), raw)


def _negative(words: Words, start: int, bits: int) -> Amounts:
    """A field that holds a negative number, as a positive one."""
    field = (words >> np.uint64(start) & np.uint64((1 << bits) - 1)).astype(np.int64)
    return -field & ((1 << bits) - 1)


def _bits(values: Amounts, bits: int) -> Words:
    return (values & ((1 << bits) - 1)).astype(np.uint64)
