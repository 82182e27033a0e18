"""Turns the lines that the blocks of an SM touch, in the order of its warps, into hits in its L1."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, field

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
    """An L1 of so many bytes, in sets of `ways` lines, and the loads of a kernel: their `roles`, by instruction.

    `depths` says how many requests of its warp a load goes on without waiting for the data of the first of them.
    `blocks_total` are those of the launch, of which a window is followed; None: the window's.
    """

    size_bytes: int
    ways: int
    roles: Mapping[int, Role]
    depths: Mapping[int, int]
    blocks_total: int | None = None


def simulate_l1(window: Window, placement: Placement, setup: L1Setup) -> L1Result:
    """Let a few SMs run their blocks of the window through an L1 of this size.

    The L1 has sets of `ways` lines of four sectors; of each set the least recently used line goes first. A load brings
    the sectors that are missing, and one that is on its way counts as there: it is, as long as requests that followed
    it in its warp did not wait. Stores leave their line in L1 and pass
    on. Where the SMs ask for more than `MOST_LOOKUPS`, a part of the lines, chosen by hash, is looked up in an L1 of
    that part of the size.

    Blocks that begin together all wait for what they have in common; those that follow them do not, and stand for all
    later ones of the launch.
    """
    sms = _choose_sms(window, placement)
    blocks = np.flatnonzero(np.isin(placement.sm, sms))
    share = blocks.size / max(1, window.blocks)
    parts = 1
    while window.count_lines() * share / parts > MOST_LOOKUPS and parts < MOST_PARTS:
        parts *= 2
    lines = window.gather(blocks, lambda line: hash_lines(line) % parts == 0)
    counts = _Counts()
    sets = max(1, setup.size_bytes // LINE_BYTES // setup.ways // parts)
    for sm in sms.tolist():
        _run_sm(_Sm(lines, np.flatnonzero(placement.sm[lines.block] == sm), placement), setup, sets, counts)
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


class _Sm(Struct, frozen=True):
    lines: Lines
    rows: npt.NDArray[np.intp]
    placement: Placement


def _run_sm(sm: _Sm, setup: L1Setup, sets: int, counts: _Counts) -> None:
    lines, rows = sm.lines, sm.rows
    begins = sm.placement.start[lines.block[rows]]
    ticks = begins + lines.position[rows]
    order = np.lexsort((lines.warp[rows], lines.block[rows], ticks))
    rows, begins = rows[order], begins[order]
    request = lines.block[rows].astype(np.int64) << 32 | lines.warp[rows].astype(np.int64) << 26 | lines.position[rows]
    cache: list[OrderedDict[int, tuple[int, int, int]]] = [OrderedDict() for _ in range(sets)]
    stream = zip(
        lines.instruction[rows].tolist(),
        lines.line[rows].tolist(),
        lines.sectors[rows].tolist(),
        ticks[order].tolist(),
        (hash_lines(lines.line[rows]) // MOST_PARTS % sets).tolist(),
        (begins > 0).astype(np.int64).tolist(),
        (np.diff(request, prepend=-1) != 0).tolist(),
        strict=True,
    )
    was_late = False
    for instruction, line, sectors, tick, place, follows, begins_request in stream:
        role = setup.roles[instruction]
        if role is Role.ATOMIC:
            continue
        lines_of_set = cache[place]
        there, _, fetched = lines_of_set.get(line, (0, 0, 0))
        if role is not Role.STORE:
            if role is Role.BYPASSING_LOAD:
                there = 0
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
            if role is Role.BYPASSING_LOAD:
                continue
            if missing:
                fetched = tick
        lines_of_set[line] = (there | sectors, tick, fetched)
        lines_of_set.move_to_end(line)
        if len(lines_of_set) > setup.ways:
            _, (_, last, _) = lines_of_set.popitem(last=False)
            counts.ages.append(tick - last)
