"""Turns requests at an L2 into what its sets keep, and what they read from DRAM and write to it."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from sectorwise.model.caches.lines import COUNT_OF_BITS, SECTORS_IN_LINE
from sectorwise.model.caches.sets import ALL_WORDS, CacheSet, Entry, find_whole, spread_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.model.caches.flow import Flow
    from sectorwise.model.caches.lines import Hint, Role

PAIRS: Final = tuple((3 if bits & 3 else 0) | (12 if bits & 12 else 0) for bits in range(16))
"""Sectors of a line that come with others, where DRAM is read by 64 bytes."""

_HALVES: Final = frozenset({3, 12})
"""Sectors that lie in one half of a line, its other half not asked for at the time."""

PAIR_BYTES: Final = 256
"""What a hint may ask for at most: the line and its neighbour."""


class L2Setup(Struct, frozen=True):
    """What the L2 model needs to know of the device and the launch.

    The L2 has `halves` of sets of `ways` lines, of which `proven_ways` at most are lines used again. `merge_share` is
    the part of the requests for one line, by SMs of one group in the same tick, that travel together, up to
    `merge_most` of them. A missed sector brings `fetch_bytes`, 32, 64 or 128, or what `hints` says of its instruction,
    up to 256. `l1_lifetimes_ticks` are quantiles of how long L1 keeps a line that is not used; empty: to the end.
    Requests of the instructions in `alone` never travel with others. `depths` says how many requests of its warp a load
    goes on without waiting for the data of the first of them. Sectors may be stored in part in `partial_lines` at once.
    `coming_share` is the part of those that travel together of requests for a line that comes from DRAM.
    """

    size_bytes: int
    halves: int
    ways: int
    proven_ways: int
    merge_share: float
    merge_most: int
    fetch_bytes: int
    hints: Mapping[int, Hint]
    l1_lifetimes_ticks: tuple[float, ...]
    alone: frozenset[int] = frozenset()
    depths: Mapping[int, int] = field(default_factory=dict)
    partial_lines: int = 1 << 30
    coming_share: float = 1.0

    def fetch_of(self, instruction: int) -> int:
        """Bytes that a missed sector brings."""
        hint = self.hints.get(instruction)
        return self.fetch_bytes if hint is None or hint.fetch_bytes is None else hint.fetch_bytes

    def brings_pairs(self) -> bool:
        """Whether an instruction asks for the neighbours of its lines."""
        return any(self.fetch_of(instruction) == PAIR_BYTES for instruction in self.hints)

    def leaves_first(self, instruction: int) -> bool:
        """Whether lines that the instruction brings are the first to go."""
        hint = self.hints.get(instruction)
        return hint is not None and hint.leaves_first


class L2State(Struct):
    """An L2 at work: its sets half by half, and what flows."""

    setup: L2Setup
    sets: int
    halves: list[list[CacheSet]]
    groups: list[int]
    """The group of each SM."""
    near: list[int]
    """The half of the L2 that each SM is at."""
    flow: Flow
    last_half: dict[int, int] = field(default_factory=dict)
    """The half at which each line was asked for last."""
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)
    coming: dict[tuple[int, int, Role], tuple[int, int]] = field(default_factory=dict)
    """Of each SM and line, when loads around L1 asked for it, and the sectors that they asked for since."""
    most_parted: int = 0
    parted: OrderedDict[tuple[int, int], Entry] = field(default_factory=OrderedDict)
    """Lines of each half with sectors that the L2 has in part; the one that was stored to last comes last."""


def push_through(state: L2State, sectors: float, dirty_share: float = 0.0) -> None:
    """Let so many sectors of lines that nobody asks for again pass through all sets alike, a part of them written."""
    lines = round(sectors / SECTORS_IN_LINE / state.sets / state.setup.halves)
    for half in state.halves:
        for each in half:
            for number in range(min(lines, state.setup.ways)):
                entry, _ = each.add(-1 - number)
                entry.words = ALL_WORDS
                entry.dirty = 15 if int((number + 1) * dirty_share) > int(number * dirty_share) else 0


def add_to(counts: dict[int, float], instruction: int, count: float) -> None:
    """Add to what was counted of an instruction."""
    counts[instruction] = counts.get(instruction, 0.0) + count


def look_up(state: L2State, instruction: int, line: int, wanted: int, home: int, near: int) -> int:
    """Sectors that must come from DRAM, of a line wanted by an SM of half `near`; both halves keep what passes."""
    setup, flow = state.setup, state.flow
    own = home % setup.halves
    place = (home >> 8) % state.sets
    entry = state.halves[near][place].use(line)
    if entry is not None:
        wanted &= ~entry.sectors
        if not wanted:
            return 0
    missed = wanted
    if own != near and (entry := state.halves[own][place].use(line)) is not None:
        missed &= ~entry.sectors
    fetched = {32: missed, 64: PAIRS[missed]}.get(setup.fetch_of(instruction), 15 if missed else 0)
    first = setup.leaves_first(instruction)
    if missed:
        add_to(flow.dram_read, instruction, COUNT_OF_BITS[fetched])
        add_to(flow.dram_lone, instruction, _count_lone(state.halves[own][place].find(line), fetched))
        add_to(flow.kept_reads, instruction, _keep(state, (own, place), line, fetched, instruction, leaves_first=first))
    if own != near:
        # What DRAM gave crosses whole: reads of single sectors 128 bytes apart cross at twice their number.
        add_to(flow.crossed, instruction, COUNT_OF_BITS[wanted | fetched])
        add_to(
            flow.kept_reads,
            instruction,
            _keep(state, (near, place), line, wanted | fetched, instruction, leaves_first=first),
        )
    return COUNT_OF_BITS[missed]


def _count_lone(entry: Entry | None, fetched: int) -> int:
    """Sectors that come alone in their half of the line; less than none where they join the other half."""
    if fetched not in _HALVES:
        return 0
    return COUNT_OF_BITS[fetched] if entry is None or not entry.sectors & ~fetched else -COUNT_OF_BITS[fetched]


def write(state: L2State, instruction: int, line: int, stored: tuple[int, int], home: int) -> None:
    """A store of sectors, and words in them, goes to the half that the line belongs to, and stays until it is evicted.

    The L2 remembers which words it has of so many lines only, of whose sectors some were stored in part; of the one
    that was stored to the longest ago it fetches what it lacks, and writes it.
    """
    sectors, words = stored
    where = (home % state.setup.halves, (home >> 8) % state.sets)
    first = state.setup.leaves_first(instruction)
    state.flow.stored += COUNT_OF_BITS[sectors]
    before = state.halves[where[0]][where[1]].find(line)
    new = sectors if before is None else sectors & ~before.sectors
    state.flow.kept_writes += _keep(state, where, line, sectors, instruction, dirty=sectors, leaves_first=first)
    entry = state.halves[where[0]][where[1]].find(line)
    if entry is None:
        return
    entry.words |= words
    whole = find_whole(entry.words)
    entry.lacking = (entry.lacking | new) & ~whole
    key = where[0], line
    state.parted.pop(key, None)
    if entry.lacking:
        state.parted[key] = entry
    if len(state.parted) > state.most_parted:
        _, oldest = state.parted.popitem(last=False)
        state.flow.filled_up += COUNT_OF_BITS[oldest.dirty]
        _write_back(state, oldest, instruction)


def _write_back(state: L2State, entry: Entry, instruction: int) -> None:
    """Write what differs from DRAM there, after what is lacking of sectors was fetched."""
    add_to(state.flow.dram_read, instruction, COUNT_OF_BITS[entry.lacking])
    state.flow.dram_written += COUNT_OF_BITS[entry.dirty]
    entry.dirty = entry.words = entry.lacking = 0


def update(state: L2State, instruction: int, line: int, sectors: int, home: int) -> None:
    """An atomic works on the half that the line belongs to, which must have the old value."""
    own, place = home % state.setup.halves, (home >> 8) % state.sets
    entry = state.halves[own][place].use(line)
    missed = sectors if entry is None else sectors & ~entry.sectors
    add_to(state.flow.dram_read, instruction, COUNT_OF_BITS[missed])
    state.flow.kept_writes += _keep(state, (own, place), line, sectors, instruction, dirty=sectors)
    if (kept := state.halves[own][place].find(line)) is not None:
        kept.words |= spread_words(sectors)
        kept.lacking &= ~sectors


def _keep(
    state: L2State,
    where: tuple[int, int],
    line: int,
    sectors: int,
    instruction: int,
    dirty: int = 0,
    *,
    leaves_first: bool = False,
) -> int:
    """Put sectors into a set of a half; returns how many were not there before."""
    half, place = where
    lines = state.halves[half][place]
    entry = lines.find(line)
    if entry is None:
        entry, evicted = lines.add(line, leaves_first=leaves_first)
        if evicted is not None:
            _write_back(state, evicted, instruction)
    added = COUNT_OF_BITS[sectors & ~entry.sectors]
    state.flow.dirtied += COUNT_OF_BITS[dirty & ~entry.dirty]
    entry.sectors |= sectors
    entry.dirty |= dirty
    return added
