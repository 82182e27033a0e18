"""Turns the lines that all blocks of a window ask for into requests that reach the L2, its misses, and DRAM traffic."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, field

from sectorwise.model.caches.batches import find_turns
from sectorwise.model.caches.flow import Flow, scale_flow
from sectorwise.model.caches.held import hash_home, hash_homes, is_sampled, put_back, take_stock
from sectorwise.model.caches.lines import COUNT_OF_BITS, LINE_BYTES, LOADS, SECTORS_IN_LINE, Role, unite_sectors
from sectorwise.model.caches.sets import ALL_WORDS, CacheSet, Entry, find_whole, spread_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sectorwise.model.caches.held import Held
    from sectorwise.model.caches.lines import Hint, Lines
    from sectorwise.model.caches.placement import Placement
    from sectorwise.model.caches.window import Window

MOST_EVENTS: Final = 80_000
"""Lines followed at most: about a third of a second."""

_PAIRS: Final = tuple((3 if bits & 3 else 0) | (12 if bits & 12 else 0) for bits in range(16))
"""Sectors of a line that come with others, where DRAM is read by 64 bytes."""

_HALVES: Final = frozenset({3, 12})
"""Sectors that lie in one half of a line, its other half not asked for at the time."""

PAIR_BYTES: Final = 256
"""What a hint may ask for at most: the line and its neighbour."""


_Event = tuple[int, int, int, int, int, int, int, int, int]
"""Instruction, line, its sectors and words, tick, turn, SM, home, and block."""


class L2Setup(Struct, frozen=True):
    """What the L2 model needs to know of the device and the launch.

    The L2 has `halves` of sets of `ways` lines, of which `proven_ways` at most are lines used again. `merge_share` is
    the part of the requests for one line, by SMs of one group in the same tick, that travel together, up to
    `merge_most` of them. A missed sector brings `fetch_bytes`, 32, 64 or 128, or what `hints` says of its instruction,
    up to 256. `l1_lifetimes_ticks` are quantiles of how long L1 keeps a line that is not used; empty: to the end.
    Requests of the instructions in `alone` never travel with others. `depths` says how many requests of its warp a load
    goes on without waiting for the data of the first of them. Sectors may be stored in part in `partial_lines` at once.
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


class L2Result(Struct, frozen=True):
    """What flowed for the first and for the second half of the window's blocks, and what stays dirty in the L2.

    `switches` are, by instruction, how often it asked for a line that another request had asked for before, and how
    often that one came from the other half's SMs. `wanted_share` is the part of the sectors in touched pairs of 64
    bytes that the window's loads want at some time.
    """

    first: Flow
    second: Flow
    dirty_sectors: float
    held: Held
    switches: Mapping[int, tuple[int, int]]
    wanted_share: float


class Rest(Struct, frozen=True):
    """What a launch does after its window: blocks that are not followed, in windows, and then the `last` that are."""

    windows: float
    last: Window | None
    placement: Placement | None


class _State(Struct):
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


def simulate_l2(
    window: Window,
    placement: Placement,
    roles: Mapping[int, Role],
    setup: L2Setup,
    *,
    warmed_by: float | None = None,
    before: Held | None = None,
    find_rest: Callable[[Flow], Rest] | None = None,
) -> L2Result:
    """Let all blocks of the window ask for a sample of the lines, chosen by hash, in the order of time.

    The L2 is empty at first, or has what it had `before`; or, with `warmed_by`, has seen the same window before, and so
    many times its second half as further blocks, which touch lines of their own. `find_rest` says, from what the second
    half moved, what follows the window: it changes what is held at the end, and nothing else.
    """
    parts = 1 if before is None else before.parts
    while window.count_lines() / parts > MOST_EVENTS:
        parts *= 2
    pairs = before is not None or find_rest is not None or setup.brings_pairs()
    lines = window.gather(np.arange(window.blocks), lambda line: is_sampled(line, parts, pairs=pairs))
    wanted_share = _measure_wanted(lines, roles)
    sets = max(1, setup.size_bytes // setup.halves // LINE_BYTES // setup.ways // parts)
    halves = [[CacheSet(setup.ways, setup.proven_ways) for _ in range(sets)] for _ in range(setup.halves)]
    near = placement.group * setup.halves // (placement.group.max() + 1)
    state = _State(
        setup, sets, halves, placement.group.tolist(), near.tolist(), Flow(), most_parted=setup.partial_lines // parts
    )
    if before is not None:
        put_back(halves, before, parts)
    if warmed_by is not None:
        _, earlier = _play(state, _order(lines, placement, setup.depths), roles, window.blocks)
        _push(state, warmed_by * (sum(earlier.kept_reads.values()) + earlier.kept_writes))
    first, second = _play(state, _order(lines, placement, setup.depths), roles, window.blocks)
    dirty = sum(COUNT_OF_BITS[bits] for half in halves for each in half for bits in each.list_dirty())
    if find_rest is not None:
        rest = find_rest(scale_flow(second, parts))
        kept = sum(second.kept_reads.values()) + second.kept_writes
        _push(state, 2 * rest.windows * kept, second.dirtied / kept if kept else 0.0)
        if rest.last is not None and rest.placement is not None:
            lines = rest.last.gather(np.arange(rest.last.blocks), lambda line: is_sampled(line, parts))
            _play(state, _order(lines, rest.placement, setup.depths), roles, rest.last.blocks)
    held = take_stock(halves, parts)
    flows = scale_flow(first, parts), scale_flow(second, parts)
    return L2Result(*flows, float(dirty * parts), held, state.switches, wanted_share)


def _measure_wanted(lines: Lines, roles: Mapping[int, Role]) -> float:
    loads = [index for index, role in roles.items() if role in LOADS]
    wanted = unite_sectors(lines, loads)
    touched = np.array(_PAIRS, np.uint8)[wanted]
    pairs = int(np.unpackbits(touched).sum())
    return int(np.unpackbits(wanted).sum()) / pairs if pairs else 1.0


def _play(
    state: _State,
    events: Iterator[tuple[int, int, int, int, int, int, int, int, int]],
    roles: Mapping[int, Role],
    blocks: int,
) -> tuple[Flow, Flow]:
    """Let the events meet the L2; what flows for the first and for the second half of the blocks."""
    setup = state.setup
    first, second = Flow(), Flow()
    in_l1: dict[tuple[int, int], tuple[int, int]] = {}
    asked: dict[tuple[int, int], list[int]] = {}
    fetched_at: dict[int, int] = {}
    played = list(events)
    owners: dict[int, int] = {}
    for _, line, *_, block in played:
        owners[line] = min(block, owners.get(line, block))
    for instruction, line, sectors, words, tick, turn, sm, home, block in played:
        flow = state.flow = first if 2 * block < blocks else second
        role = roles[instruction]
        loads = role in LOADS
        if loads:
            _add(flow.asked, instruction, COUNT_OF_BITS[sectors])
        wanted = sectors
        if role is Role.CACHED_LOAD or role is Role.STORE:
            wanted = _pass_l1(in_l1, setup, (sm, line), sectors, tick)
        if role is Role.ATOMIC:
            _add(flow.asked, instruction, COUNT_OF_BITS[sectors])
            _update(state, instruction, line, sectors, home)
        elif not loads:
            _write(state, instruction, line, (sectors, words), home)
        elif wanted:
            _add(flow.filled, instruction, COUNT_OF_BITS[wanted])
            group = state.groups[sm]
            near = state.near[sm]
            _note_half(state, instruction, line, near)
            alone = instruction in setup.alone
            sent = _join(state, instruction, (sm, line, role), wanted, tick)
            share = 1.0 if fetched_at.get(line) == turn else setup.merge_share
            part = 1.0 if alone or not sent else _merge(asked, setup, (group, line), turn, sent, share)
            _add(flow.read, instruction, COUNT_OF_BITS[sent] * part)
            if line not in fetched_at:
                # Blocks that run beside each other: what is new is the first block's, whichever comes to it first.
                state.flow = first if 2 * owners[line] < blocks else second
            missed = _look_up(state, instruction, line, wanted, home, near)
            _add(state.flow.missed, instruction, missed)
            if missed and setup.fetch_of(instruction) == PAIR_BYTES:
                # The neighbour is asked for by halves, and the L2 counts a sector for each.
                _add(flow.read, instruction, 2)
                _look_up(state, instruction, line ^ 1, 15, hash_home(line ^ 1), near)
            if missed:
                fetched_at[line] = turn
            elif fetched_at.get(line) == turn:
                _add(flow.waited, instruction, COUNT_OF_BITS[wanted])
    return first, second


def _join(state: _State, instruction: int, where: tuple[int, int, Role], wanted: int, tick: int) -> int:
    """The sectors that a load around L1 asks the L2 for: none that its SM asked for in this way, and that are coming.

    `reread` asks for 5,242,880 sectors, each twice in a row: all count as brought, and the L2 is asked for half.
    """
    if where[2] is Role.CACHED_LOAD:
        return wanted
    asked_at, coming = state.coming.get(where, (0, 0))
    known = coming if tick - asked_at <= state.setup.depths.get(instruction, 0) else 0
    state.coming[where] = (asked_at, coming | wanted) if known else (tick, wanted)
    return wanted & ~known


def _note_half(state: _State, instruction: int, line: int, near: int) -> None:
    """Count a request for a line that was asked for before, and whether it comes from the other half's SMs."""
    before = state.last_half.get(line)
    state.last_half[line] = near
    if before is not None:
        again, switched = state.switches.get(instruction, (0, 0))
        state.switches[instruction] = again + 1, switched + (before != near)


def _push(state: _State, sectors: float, dirty_share: float = 0.0) -> None:
    """Let so many sectors of lines that nobody asks for again pass through all sets alike, a part of them written."""
    lines = round(sectors / SECTORS_IN_LINE / state.sets / state.setup.halves)
    for half in state.halves:
        for each in half:
            for number in range(min(lines, state.setup.ways)):
                entry, _ = each.add(-1 - number)
                entry.words = ALL_WORDS
                entry.dirty = 15 if int((number + 1) * dirty_share) > int(number * dirty_share) else 0


def _order(lines: Lines, placement: Placement, depths: Mapping[int, int]) -> Iterator[_Event]:
    ticks = placement.start[lines.block] + lines.position
    turns = placement.start[lines.block] + find_turns(lines, depths)
    order = np.lexsort((lines.position, lines.warp, lines.block, turns))
    return zip(
        lines.instruction[order].tolist(),
        lines.line[order].tolist(),
        lines.sectors[order].tolist(),
        lines.words[order].tolist(),
        ticks[order].tolist(),
        turns[order].tolist(),
        placement.sm[lines.block[order]].tolist(),
        hash_homes(lines.line[order]).tolist(),
        lines.block[order].tolist(),
        strict=True,
    )


def _add(counts: dict[int, float], instruction: int, count: float) -> None:
    counts[instruction] = counts.get(instruction, 0.0) + count


def _pass_l1(
    in_l1: dict[tuple[int, int], tuple[int, int]], setup: L2Setup, where: tuple[int, int], sectors: int, tick: int
) -> int:
    """Sectors that the SM's L1 does not have, and now has."""
    there, last = in_l1.get(where, (0, tick))
    lifetimes = setup.l1_lifetimes_ticks
    if lifetimes and tick - last > lifetimes[hash(where) % len(lifetimes)]:
        there = 0
    in_l1[where] = (there | sectors, tick)
    return sectors & ~there


def _merge(
    asked: dict[tuple[int, int], list[int]],
    setup: L2Setup,
    where: tuple[int, int],
    turn: int,
    wanted: int,
    share: float,
) -> float:
    """The part of a request that reaches the L2: less than all where SMs of a GPC ask for the same at once."""
    waiting = asked.get(where)
    if waiting is None or waiting[0] != turn or not waiting[1] % setup.merge_most or wanted & ~waiting[2]:
        asked[where] = [turn, 1, wanted]
        return 1.0
    waiting[1] += 1
    return 1.0 - share


def _look_up(state: _State, instruction: int, line: int, wanted: int, home: int, near: int) -> int:
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
    fetched = {32: missed, 64: _PAIRS[missed]}.get(setup.fetch_of(instruction), 15 if missed else 0)
    first = setup.leaves_first(instruction)
    if missed:
        _add(flow.dram_read, instruction, COUNT_OF_BITS[fetched])
        _add(flow.dram_lone, instruction, _count_lone(state.halves[own][place].find(line), fetched))
        _add(flow.kept_reads, instruction, _keep(state, (own, place), line, fetched, instruction, leaves_first=first))
    if own != near:
        # What DRAM gave crosses whole: reads of single sectors 128 bytes apart cross at twice their number.
        _add(flow.crossed, instruction, COUNT_OF_BITS[wanted | fetched])
        _add(
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


def _write(state: _State, instruction: int, line: int, stored: tuple[int, int], home: int) -> None:
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
    known = state.parted.pop(key, None)
    if entry.lacking:
        state.parted[key] = entry
    state.flow.parted += (key in state.parted) - (known is not None)
    if len(state.parted) > state.most_parted:
        _, oldest = state.parted.popitem(last=False)
        state.flow.parted_out += 1
        state.flow.filled_up += COUNT_OF_BITS[oldest.dirty]
        _write_back(state, oldest, instruction)


def _write_back(state: _State, entry: Entry, instruction: int) -> None:
    """Write what differs from DRAM there, after what is lacking of sectors was fetched."""
    _add(state.flow.dram_read, instruction, COUNT_OF_BITS[entry.lacking])
    state.flow.dram_written += COUNT_OF_BITS[entry.dirty]
    entry.dirty = entry.words = entry.lacking = 0


def _update(state: _State, instruction: int, line: int, sectors: int, home: int) -> None:
    """An atomic works on the half that the line belongs to, which must have the old value."""
    own, place = home % state.setup.halves, (home >> 8) % state.sets
    entry = state.halves[own][place].use(line)
    missed = sectors if entry is None else sectors & ~entry.sectors
    _add(state.flow.dram_read, instruction, COUNT_OF_BITS[missed])
    state.flow.kept_writes += _keep(state, (own, place), line, sectors, instruction, dirty=sectors)
    if (kept := state.halves[own][place].find(line)) is not None:
        kept.words |= spread_words(sectors)
        kept.lacking &= ~sectors


def _keep(
    state: _State,
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
