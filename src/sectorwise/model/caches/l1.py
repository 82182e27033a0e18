"""Turns the lines that the blocks of an SM touch, in the order of its warps, into hits in its L1."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.model.caches.lines import COUNT_OF_BITS, LINE_BYTES, Role, hash_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from sectorwise.model.caches.lines import Lines
    from sectorwise.model.caches.placement import Placement
    from sectorwise.model.caches.window import Window

MOST_LOOKUPS: Final = 80_000
"""Lines looked up at most, over all SMs that are looked at: about a tenth of a second."""

FEWEST_SMS: Final = 3
MOST_PARTS: Final = 64
QUANTILES: Final = 16


Part = tuple[int, int]
"""Some of so many."""


@dataclass(frozen=True, slots=True)
class L1Result:
    """Hits in L1 of a sample of SMs.

    `asked` and `hit` are sectors of loads by instruction. `late` are lines that they ask for and that L1 does not have
    yet, as it lacks sectors of them or they are on their way, out of how many; `waiting` the same of requests, of which
    one that has a late line is late. `lifetimes_ticks` are
    quantiles, ascending, of how long a line stays after its last use: sets fill unevenly. Empty where none was ever
    evicted.
    """

    asked: Mapping[int, int]
    hit: Mapping[int, int]
    late: Mapping[int, Part]
    waiting: Mapping[int, Part]
    lifetimes_ticks: tuple[float, ...]

    def hit_share(self, instruction: int) -> float:
        """The part of an instruction's sectors that hit; of one that was not seen, the part of all together."""
        if asked := self.asked.get(instruction, 0):
            return self.hit.get(instruction, 0) / asked
        together = sum(self.asked.values())
        return sum(self.hit.values()) / together if together else 0.0

    def late_shares(self, instruction: int) -> tuple[float, float]:
        """The parts of an instruction's requests, and of their lines, that are late; of one not seen, of all."""
        shares = []
        for parts in (self.waiting, self.late):
            some, of = parts.get(instruction) or tuple(
                sum(column) for column in zip((0, 0), *parts.values(), strict=True)
            )
            shares.append(some / of if of else 1.0)
        return shares[0], shares[1]


@dataclass(slots=True)
class _Counts:
    asked: dict[int, int]
    hit: dict[int, int]
    late: dict[int, Part]
    waiting: dict[int, Part]
    ages: list[int]


@dataclass(frozen=True, slots=True)
class L1Setup:
    """An L1 of so many bytes, in sets of `ways` lines, and the loads of a kernel: their `roles`, by instruction.

    `depths` says how many requests of its warp a load goes on without waiting for the data of the first of them.
    """

    size_bytes: int
    ways: int
    roles: Mapping[int, Role]
    depths: Mapping[int, int]


def simulate_l1(window: Window, placement: Placement, setup: L1Setup) -> L1Result:
    """Let a few SMs run their blocks of the window through an L1 of this size.

    The L1 has sets of `ways` lines of four sectors; of each set the least recently used line goes first. A load brings
    the sectors that are missing, and one that is on its way counts as there: it is, as long as requests that followed
    it in its warp did not wait. Stores leave their line in L1 and pass
    on. Where the SMs ask for more than `MOST_LOOKUPS`, a part of the lines, chosen by hash, is looked up in an L1 of
    that part of the size.
    """
    sms = _choose_sms(window, placement)
    blocks = np.flatnonzero(np.isin(placement.sm, sms))
    share = blocks.size / max(1, window.blocks)
    parts = 1
    while window.count_lines() * share / parts > MOST_LOOKUPS and parts < MOST_PARTS:
        parts *= 2
    lines = window.gather(blocks, lambda line: hash_lines(line) % parts == 0)
    counts = _Counts({}, {}, {}, {}, [])
    sets = max(1, setup.size_bytes // LINE_BYTES // setup.ways // parts)
    for sm in sms.tolist():
        _run_sm(_Sm(lines, np.flatnonzero(placement.sm[lines.block] == sm), placement), setup, sets, counts)
    quantiles = np.quantile(counts.ages, (np.arange(QUANTILES) + 0.5) / QUANTILES).tolist() if counts.ages else ()
    return L1Result(counts.asked, counts.hit, counts.late, counts.waiting, tuple(quantiles))


def _choose_sms(window: Window, placement: Placement) -> npt.NDArray[np.int64]:
    """A few SMs far apart, or all that have blocks where that is little work."""
    used = np.unique(placement.sm)
    wanted = max(FEWEST_SMS, int(MOST_LOOKUPS * used.size / max(1, window.count_lines())))
    if wanted >= used.size:
        return used
    return used[np.linspace(0, used.size - 1, wanted).astype(np.int64)]


@dataclass(frozen=True, slots=True)
class _Sm:
    lines: Lines
    rows: npt.NDArray[np.intp]
    placement: Placement


def _run_sm(sm: _Sm, setup: L1Setup, sets: int, counts: _Counts) -> None:
    lines, rows = sm.lines, sm.rows
    begins = sm.placement.start[lines.block[rows]]
    ticks = begins + lines.position[rows]
    order = np.lexsort((lines.warp[rows], lines.block[rows], ticks))
    rows, begins = rows[order], begins[order]
    # Blocks that begin together all wait for what they have in common; those that follow them, and are more, do not.
    steady = begins > 0 if begins.any() else np.ones(begins.size, np.bool_)
    request = lines.block[rows].astype(np.int64) << 32 | lines.warp[rows].astype(np.int64) << 26 | lines.position[rows]
    cache: list[OrderedDict[int, tuple[int, int, int]]] = [OrderedDict() for _ in range(sets)]
    stream = zip(
        lines.instruction[rows].tolist(),
        lines.line[rows].tolist(),
        lines.sectors[rows].tolist(),
        ticks[order].tolist(),
        (hash_lines(lines.line[rows]) // MOST_PARTS % sets).tolist(),
        steady.tolist(),
        (np.diff(request, prepend=-1) != 0).tolist(),
        strict=True,
    )
    was_late = False
    for instruction, line, sectors, tick, place, counts_late, begins_request in stream:
        role = setup.roles[instruction]
        if role is Role.ATOMIC:
            continue
        lines_of_set = cache[place]
        there, _, fetched = lines_of_set.get(line, (0, 0, 0))
        if role is not Role.STORE:
            if role is Role.BYPASSING_LOAD:
                there = 0
            missing = sectors & ~there
            _count(counts, instruction, sectors, missing)
            if counts_late:
                late = bool(missing) or tick - fetched <= setup.depths[instruction]
                _add(counts.late, instruction, late, 1)
                _add(counts.waiting, instruction, late and (begins_request or not was_late), begins_request)
                was_late = late or (was_late and not begins_request)
            if role is Role.BYPASSING_LOAD:
                continue
            if missing:
                fetched = tick
        lines_of_set[line] = (there | sectors, tick, fetched)
        lines_of_set.move_to_end(line)
        if len(lines_of_set) > setup.ways:
            _, (_, last, _) = lines_of_set.popitem(last=False)
            counts.ages.append(tick - last)


def _count(counts: _Counts, instruction: int, sectors: int, missing: int) -> None:
    counts.asked[instruction] = counts.asked.get(instruction, 0) + COUNT_OF_BITS[sectors]
    counts.hit[instruction] = counts.hit.get(instruction, 0) + COUNT_OF_BITS[sectors & ~missing]


def _add(parts: dict[int, Part], instruction: int, some: int, of: int) -> None:
    before = parts.get(instruction, (0, 0))
    parts[instruction] = before[0] + some, before[1] + of
