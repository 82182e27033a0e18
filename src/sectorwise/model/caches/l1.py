"""Turns the lines that the blocks of an SM touch, in the order of its warps, into hits in its L1."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, field

from sectorwise.model.caches.batches import find_turns
from sectorwise.model.caches.lines import COUNT_OF_BITS, LINE_BYTES, Role, hash_sets
from sectorwise.model.caches.window import take_rows

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


Part = tuple[float, float]
"""Some of so many."""


class L1Result(Struct, frozen=True):
    """Hits in L1 of a sample of SMs, later blocks as often as there are more of them in the launch.

    `asked` and `hit` are sectors of loads by instruction. `late` are lines that they ask for and that L1 does not have
    yet, as it lacks sectors of them or they are on their way, out of how many; `waiting` the same of requests, of which
    one that has a late line is late. `lifetimes_ticks` are
    quantiles, ascending, of how long a line stays after its last use: sets fill unevenly. Empty where none was ever
    evicted.
    """

    asked: Mapping[int, float]
    hit: Mapping[int, float]
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


class _Counts(Struct):
    """Of loads by instruction: of the blocks that begin together, and of those that follow them."""

    asked: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    hit: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    lines: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    late: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    requests: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    waiting: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    ages: list[int] = field(default_factory=list)


class L1Setup(Struct, frozen=True):
    """An L1 of so many bytes, and the loads of a kernel: their `roles`, by instruction.

    Its sets have `ways` lines if none of it is shared memory, `whole_bytes` then (None: none is); what shared memory
    takes it takes of all sets. `depths` says how many requests of its warp a load goes on without waiting for the data
    of the first of them.
    `blocks_total` are those of the launch, of which a window is followed; None: the window's.
    """

    size_bytes: int
    ways: int
    roles: Mapping[int, Role]
    depths: Mapping[int, int]
    blocks_total: int | None = None
    whole_bytes: int | None = None

    def count_sets(self) -> int:
        """Sets: the largest power of two that leaves each its ways."""
        sets = max(1, (self.whole_bytes or self.size_bytes) // LINE_BYTES // self.ways)
        return 1 << (sets.bit_length() - 1)


def simulate_l1(window: Window, placement: Placement, setup: L1Setup) -> L1Result:
    """Let a few SMs run their blocks of the window through an L1 of this size.

    The L1 has sets of lines of four sectors; of each set the least recently used line goes first. A load brings
    the sectors that are missing, and one that is on its way counts as there: it is, as long as requests that followed
    it in its warp did not wait. Stores leave their line in L1 and pass
    on. Where the SMs ask for more than `MOST_LOOKUPS`, a part of the sets is looked at.

    Blocks that begin together all wait for what they have in common; those that follow them do not, and stand for all
    later ones of the launch.
    """
    sms = _choose_sms(window, placement)
    blocks = np.flatnonzero(np.isin(placement.sm, sms))
    share = blocks.size / max(1, window.blocks)
    sets, parts = setup.count_sets(), 1
    while window.count_lines() * share / parts > MOST_LOOKUPS and parts < min(MOST_PARTS, sets):
        parts *= 2
    lines = window.gather(blocks, lambda line: hash_sets(line, sets) % parts == 0)
    counts = _Counts()
    for sm in sms.tolist():
        rows = np.flatnonzero(placement.sm[lines.block] == sm)
        _run_sm(take_rows(lines, rows), placement, setup, counts)
    quantiles = np.quantile(counts.ages, (np.arange(QUANTILES) + 0.5) / QUANTILES).tolist() if counts.ages else ()
    weight = _weigh_later(placement, blocks, setup.blocks_total or window.blocks)

    def join(pair: tuple[dict[int, int], dict[int, int]]) -> dict[int, float]:
        first, later = pair
        return {i: first.get(i, 0) + weight * later.get(i, 0) for i in {*first, *later}}

    def pair(some: tuple[dict[int, int], dict[int, int]], of: tuple[dict[int, int], dict[int, int]]) -> dict[int, Part]:
        joined = join(some)
        return {i: (joined[i], whole) for i, whole in join(of).items()}

    return L1Result(
        join(counts.asked),
        join(counts.hit),
        pair(counts.late, counts.lines),
        pair(counts.waiting, counts.requests),
        tuple(quantiles),
    )


def _weigh_later(placement: Placement, chosen: npt.NDArray[np.intp], blocks_total: int) -> float:
    """How many times as often as the first blocks later ones count: as the launch has more of them than were chosen."""
    first, first_chosen = np.count_nonzero(placement.start == 0), np.count_nonzero(placement.start[chosen] == 0)
    later_chosen = chosen.size - first_chosen
    if not later_chosen or not first_chosen:
        return 1.0
    return float((blocks_total - first) / later_chosen * first_chosen / first)


def _choose_sms(window: Window, placement: Placement) -> npt.NDArray[np.int64]:
    """A few SMs far apart, or all that have blocks where that is little work; those with later blocks, if some have."""
    used = np.unique(placement.sm)
    later = np.unique(placement.sm[placement.start > 0])
    if later.size >= FEWEST_SMS:
        used = later
    wanted = max(FEWEST_SMS, int(MOST_LOOKUPS * used.size / max(1, window.count_lines())))
    if wanted >= used.size:
        return used
    return used[np.linspace(0, used.size - 1, wanted).astype(np.int64)]


def _run_sm(lines: Lines, placement: Placement, setup: L1Setup, counts: _Counts) -> None:
    """Add what the lines of one SM's blocks do to the counts."""
    begins = placement.start[lines.block]
    ticks = begins + lines.position
    turns = begins + find_turns(lines, setup.depths)
    order = np.lexsort((lines.position, lines.warp, lines.block, turns))
    request = lines.block.astype(np.int64) << 32 | lines.warp.astype(np.int64) << 26 | lines.position
    sets = setup.count_sets()
    fewest, spare = divmod(setup.size_bytes // LINE_BYTES, sets)
    cache: list[OrderedDict[int, tuple[int, int, int]]] = [OrderedDict() for _ in range(sets)]
    stream = zip(
        lines.instruction[order].tolist(),
        lines.line[order].tolist(),
        lines.sectors[order].tolist(),
        ticks[order].tolist(),
        hash_sets(lines.line[order], sets).tolist(),
        (begins[order] > 0).astype(np.int64).tolist(),
        (np.diff(request[order], prepend=-1) != 0).tolist(),
        strict=True,
    )
    passing: dict[int, tuple[int, int]] = {}
    was_late = False
    for instruction, line, sectors, tick, place, follows, begins_request in stream:
        role = setup.roles[instruction]
        if role is Role.ATOMIC:
            continue
        lines_of_set = cache[place]
        there, _, fetched = lines_of_set.get(line, (0, 0, 0))
        if role is not Role.STORE:
            asked_at, brought = passing.get(line, (0, 0))
            if role is not Role.CACHED_LOAD:
                there = 0
            elif tick - asked_at <= setup.depths[instruction]:
                there |= brought
            missing = sectors & ~there
            late = bool(missing) or tick - fetched <= setup.depths[instruction]
            for tally, number in (
                (counts.asked, COUNT_OF_BITS[sectors]),
                (counts.hit, COUNT_OF_BITS[sectors & ~missing]),
                (counts.lines, 1),
                (counts.late, late),
                (counts.requests, begins_request),
                (counts.waiting, late and (begins_request or not was_late)),
            ):
                tally[follows][instruction] = tally[follows].get(instruction, 0) + number
            was_late = late or (was_late and not begins_request)
            if role is not Role.CACHED_LOAD:
                passing[line] = tick, sectors
                continue
            if missing:
                fetched = tick
        lines_of_set[line] = (there | sectors, tick, fetched)
        lines_of_set.move_to_end(line)
        if len(lines_of_set) > max(1, fewest + (place < spare)):
            _, (_, last, _) = lines_of_set.popitem(last=False)
            counts.ages.append(tick - last)
