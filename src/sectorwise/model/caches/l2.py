"""Turns the lines that all blocks of a window ask for into requests that reach the L2, its misses, and DRAM traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from sectorwise.model.caches.batches import find_turns
from sectorwise.model.caches.flow import Flow, scale_flow
from sectorwise.model.caches.held import hash_home, hash_homes, is_sampled, put_back, take_stock
from sectorwise.model.caches.lines import COUNT_OF_BITS, LINE_BYTES, LOADS, Role, unite_sectors
from sectorwise.model.caches.sets import CacheSet
from sectorwise.model.caches.storage import (
    PAIR_BYTES,
    PAIRS,
    L2Setup,
    L2State,
    add_to,
    look_up,
    push_through,
    update,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sectorwise.model.caches.held import Held
    from sectorwise.model.caches.lines import Lines
    from sectorwise.model.caches.placement import Placement
    from sectorwise.model.caches.window import Window

MOST_EVENTS: Final = 80_000
"""Lines followed at most: about a third of a second."""

_Event = tuple[int, int, int, int, int, int, int, int, int]
"""Instruction, line, its sectors and words, tick, turn, SM, home, and block."""


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
    state = L2State(
        setup, sets, halves, placement.group.tolist(), near.tolist(), Flow(), most_parted=setup.partial_lines // parts
    )
    if before is not None:
        put_back(halves, before, parts)
    if warmed_by is not None:
        _, earlier = _play(state, _order(lines, placement, setup.depths), roles, window.blocks)
        push_through(state, warmed_by * (sum(earlier.kept_reads.values()) + earlier.kept_writes))
    first, second = _play(state, _order(lines, placement, setup.depths), roles, window.blocks)
    dirty = sum(COUNT_OF_BITS[bits] for half in halves for each in half for bits in each.list_dirty())
    if find_rest is not None:
        rest = find_rest(scale_flow(second, parts))
        kept = sum(second.kept_reads.values()) + second.kept_writes
        push_through(state, 2 * rest.windows * kept, second.dirtied / kept if kept else 0.0)
        if rest.last is not None and rest.placement is not None:
            lines = rest.last.gather(np.arange(rest.last.blocks), lambda line: is_sampled(line, parts))
            _play(state, _order(lines, rest.placement, setup.depths), roles, rest.last.blocks)
    held = take_stock(halves, parts)
    flows = scale_flow(first, parts), scale_flow(second, parts)
    return L2Result(*flows, float(dirty * parts), held, state.switches, wanted_share)


def _measure_wanted(lines: Lines, roles: Mapping[int, Role]) -> float:
    loads = [index for index, role in roles.items() if role in LOADS]
    wanted = unite_sectors(lines, loads)
    touched = np.array(PAIRS, np.uint8)[wanted]
    pairs = int(np.unpackbits(touched).sum())
    return int(np.unpackbits(wanted).sum()) / pairs if pairs else 1.0


def _play(
    state: L2State,
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
            add_to(flow.asked, instruction, COUNT_OF_BITS[sectors])
        wanted = sectors
        if role is Role.CACHED_LOAD or role is Role.STORE:
            wanted = _pass_l1(in_l1, setup, (sm, line), sectors, tick)
        if role is Role.ATOMIC:
            add_to(flow.asked, instruction, COUNT_OF_BITS[sectors])
            update(state, instruction, line, sectors, home)
        elif not loads:
            write(state, instruction, line, (sectors, words), home)
        elif wanted:
            add_to(flow.filled, instruction, COUNT_OF_BITS[wanted])
            group = state.groups[sm]
            near = state.near[sm]
            _note_half(state, instruction, line, near)
            alone = instruction in setup.alone
            sent = _join(state, instruction, (sm, line, role), wanted, tick)
            share = setup.coming_share if fetched_at.get(line) == turn else setup.merge_share
            part = 1.0 if alone or not sent else _merge(asked, setup, (group, line), turn, sent, share)
            add_to(flow.read, instruction, COUNT_OF_BITS[sent] * part)
            if line not in fetched_at:
                # Blocks that run beside each other: what is new is the first block's, whichever comes to it first.
                state.flow = first if 2 * owners[line] < blocks else second
            missed = look_up(state, instruction, line, wanted, home, near)
            add_to(state.flow.missed, instruction, missed)
            if missed and setup.fetch_of(instruction) == PAIR_BYTES:
                # The neighbour is asked for by halves, and the L2 counts a sector for each.
                add_to(flow.read, instruction, 2)
                look_up(state, instruction, line ^ 1, 15, hash_home(line ^ 1), near)
            if missed:
                fetched_at[line] = turn
            elif fetched_at.get(line) == turn:
                add_to(flow.waited, instruction, COUNT_OF_BITS[wanted])
    return first, second


def _join(state: L2State, instruction: int, where: tuple[int, int, Role], wanted: int, tick: int) -> int:
    """The sectors that a load around L1 asks the L2 for: none that its SM asked for in this way, and that are coming.

    `reread` asks for 5,242,880 sectors, each twice in a row: all count as brought, and the L2 is asked for half.
    """
    if where[2] is Role.CACHED_LOAD:
        return wanted
    asked_at, coming = state.coming.get(where, (0, 0))
    known = coming if tick - asked_at <= state.setup.depths.get(instruction, 0) else 0
    state.coming[where] = (asked_at, coming | wanted) if known else (tick, wanted)
    return wanted & ~known


def _note_half(state: L2State, instruction: int, line: int, near: int) -> None:
    """Count a request for a line that was asked for before, and whether it comes from the other half's SMs."""
    before = state.last_half.get(line)
    state.last_half[line] = near
    if before is not None:
        again, switched = state.switches.get(instruction, (0, 0))
        state.switches[instruction] = again + 1, switched + (before != near)


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
