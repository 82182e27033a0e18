"""Turns what each instruction does into whether machine code may run the launch: certainty, and order between warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.counting.request import Operation, Space
from sectorwise.launch.contents import is_assumed
from sectorwise.machine.effects import destinations
from sectorwise.machine.encounters import COLLIDED, UNWRITTEN
from sectorwise.machine.native.flow import steps_of
from sectorwise.machine.native.relevance import Guard, guard_of
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.products import PRODUCTS
from sectorwise.machine.taint import INEXACT, ORDERED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Part, Reach
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step

_COMMUTATIVE = frozenset({"ADD", "POPC", "AND", "OR", "XOR", "MIN", "MAX"})
_FLOATS = ("F16", "F32", "F64", "BF16")
_ORDERED_LOADS = frozenset({"STRONG", "VOLATILE"})


class Source(Struct, frozen=True):
    """One sort of doubt: what makes results doubtful, what makes memory so, and its parts that are from the start.

    `reaches_waits` says that who waits for a phase of a barrier decides by such a doubt too.
    """

    results: Callable[[Marks], bool]
    stores: Callable[[Marks], bool]
    parts: frozenset[Part] = frozenset()
    reaches_waits: bool = True


def find_doubts(flow: Flow, bound: BoundLaunch, reach: Reach) -> dict[int, int]:
    """Memory instructions whose address, guard or way may depend on inexact values or on an order: their flags.

    Raises:
        UnsupportedError: one may depend on a value that is not known at all.
    """
    assumed = frozenset(number for number, each in enumerate(bound.allocations) if is_assumed(each.buffer))
    unknown = Source(lambda marks: marks.unknown, lambda marks: marks.leaves_unknown)
    decisions = _find_decisions(flow, reach, unknown)
    if decisions:
        text = flow.step_at(min(decisions)).instruction.text
        raise UnsupportedError(f"{text} may depend on a value that is not known")
    found: dict[int, int] = {}
    inexact = Source(lambda marks: marks.inexact, lambda marks: marks.inexact, assumed)
    ordered = Source(lambda marks: marks.ordered, lambda marks: marks.stains, reaches_waits=False)
    for flag, source in ((INEXACT, inexact), (ORDERED, ordered)):
        for index in _find_touched(flow, _find_decisions(flow, reach, source)):
            found[index] = found.get(index, 0) | flag
    return found


def find_met_doubts(flow: Flow, reach: Reach, met: Mapping[int, int]) -> dict[int, int]:
    """As `find_doubts`, for what instructions (by index) have met that CUDA leaves undefined."""

    def marks_of(flag: int) -> set[int]:
        return {id(flow.marks[index]) for index, flags in met.items() if flags & flag}

    collided, unwritten = marks_of(COLLIDED), marks_of(UNWRITTEN)
    lost = Source(lambda _marks: False, lambda marks: id(marks) in collided)
    unset = Source(lambda marks: id(marks) in unwritten, lambda _marks: False)
    found: dict[int, int] = {}
    for flag, source, some in ((ORDERED, lost, collided), (INEXACT, unset, unwritten)):
        for index in _find_touched(flow, _find_decisions(flow, reach, source)) if some else ():
            found[index] = found.get(index, 0) | flag
    return found


def _find_touched(flow: Flow, decisions: set[int]) -> set[int]:
    """Memory instructions among doubtful decisions, and those that lie behind a doubtful branch."""
    touched = {index for index in decisions if _is_counted(flow.step_at(index))}
    waiting = [
        successor
        for start, block in flow.blocks.items()
        if block.terminator is not None and block.terminator.instruction.index in decisions
        for successor in flow.leads[start]
    ]
    seen: set[int] = set()
    while waiting:
        start = waiting.pop()
        if start not in seen:
            seen.add(start)
            touched.update(step.instruction.index for step in flow.blocks[start].steps if _is_counted(step))
            waiting.extend(flow.leads[start])
    return touched


def _is_counted(step: Step) -> bool:
    """Whether an instruction is a site of its own: it accesses memory, or tensor cores do for it."""
    return step.access is not None or step.instruction.opcode in PRODUCTS


def _find_decisions(flow: Flow, reach: Reach, source: Source) -> set[int]:
    """Instructions that decide by a doubtful value."""
    doubtful = set(source.parts)
    while True:
        before = len(doubtful)
        decisions = _follow(flow, reach, source, doubtful)
        if len(doubtful) == before:
            return decisions


Doubts = dict[int, frozenset[Guard]]
"""Slots that may be in doubt, and the guards under which they are not."""


def _follow(flow: Flow, reach: Reach, source: Source, doubtful: set[Part]) -> set[int]:
    """Doubt along the flow graph, to a fixed point; `doubtful` gains what doubtful values are stored to.

    Gives the instructions that decide by what is in doubt.
    """
    decisions: set[int] = set()
    begins: dict[int, Doubts] = {start: {} for start in flow.blocks}
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        doubts, leads = dict(begins[start]), flow.leads[start]
        for step in steps_of(flow.blocks[start]):
            index = step.instruction.index
            loads_doubt = not doubtful.isdisjoint(reach.loaded(index))
            decides, stores_doubt = _follow_step(step, (flow.marks[index], source), doubts, loads_doubt=loads_doubt)
            detour = flow.detours.get(index)
            if decides and detour is not None:
                # Which way is gone shows in what is written on it, and in nothing else.
                leads = (detour.meeting,)
                _write(set(detour.writes), None, doubts, doubt=True)
            elif decides:
                decisions.add(index)
            if stores_doubt:
                doubtful |= reach.stored(index)
        waiting.extend(successor for successor in leads if _join(begins[successor], doubts))
    return decisions


def _join(known: Doubts, more: Doubts) -> bool:
    """Adds doubts from another way to a place; says whether that changed anything."""
    changed = False
    for slot, clean in more.items():
        joined = known[slot] & clean if slot in known else clean
        if known.get(slot) != joined:
            known[slot] = joined
            changed = True
    return changed


def _follow_step(step: Step, sort: tuple[Marks, Source], doubts: Doubts, *, loads_doubt: bool) -> tuple[bool, bool]:
    """Doubts behind an instruction; says whether it decides by one, and whether what it stores is in doubt."""
    marks, source = sort
    guard = guard_of(step)

    def in_doubt(slot: int) -> bool:
        return slot in doubts and guard not in doubts[slot]

    # Branches and waits decide by all that they read, memory accesses by address and guard.
    reads = marks.reads if source.reaches_waits else marks.reads - marks.awaits
    decides = reads if step.action is None else set(step.address_slots)
    guarded = step.guard_slot in doubts and (step.access is not None or step.action is None)
    decided = guarded or any(in_doubt(slot) for slot in decides)
    doubt = any(in_doubt(slot) for slot in reads) or step.guard_slot in doubts
    doubt |= loads_doubt
    _write(marks.writes, guard, doubts, doubt=doubt or source.results(marks))
    return decided, doubt or source.stores(marks)


def _write(writes: set[int], guard: Guard | None, doubts: Doubts, *, doubt: bool) -> None:
    """Doubts behind a write under a guard."""
    for slot in writes:
        clean = doubts.get(slot)
        if guard is None:
            doubts.pop(slot, None)
            if doubt:
                doubts[slot] = frozenset()
        elif doubt:
            opposite = (guard[0], not guard[1])
            doubts[slot] = frozenset({opposite}) if clean is None else clean - {guard}
        elif clean is not None:
            doubts[slot] = clean | {guard}
    # Behind a change of its predicate, a guard says nothing of what it let through.
    for slot, clean in list(doubts.items()):
        doubts[slot] = frozenset(each for each in clean if each[0] not in writes)


def find_racing(flow: Flow, reach: Reach, relevant: frozenset[int] | None, blocks: int) -> frozenset[int]:
    """Accesses by which values that matter depend on the order of a block's warps within a loop.

    Outside of loops, and for updates that commute, all warps of a block in turn are the reference engine's order. Where
    `blocks` are several, these accesses must be to shared memory.

    Raises:
        UnsupportedError: they depend on the order of blocks too.
    """
    found = set()
    for start in _find_looping(flow.leads):
        for step in flow.blocks[start].steps:
            index = step.instruction.index
            matters = relevant is None or index in relevant
            if matters and step.access is not None and _shows_order(step):
                parts = reach.loaded(index) | reach.stored(index)
                is_update = step.access.operation is not Operation.LOAD
                # A generic update that goes elsewhere than to shared memory ends the run.
                is_inside = Space.SHARED in parts and (is_update or parts == {Space.SHARED})
                if blocks > 1 and not is_inside:
                    raise UnsupportedError(f"{step.instruction.text} in a loop depends on the order of warps")
                found.add(index)
    return frozenset(found)


def _shows_order(step: Step) -> bool:
    assert step.access is not None  # noqa: S101 - narrows the type
    modifiers = step.access.modifiers
    if step.access.operation not in (Operation.ATOMIC, Operation.REDUCTION):
        return step.access.operation is Operation.LOAD and bool(_ORDERED_LOADS & set(modifiers))
    if any(modifier.startswith(_FLOATS) or modifier in ("CAS", "CAST", "EXCH", "INC", "DEC") for modifier in modifiers):
        return True
    if not _COMMUTATIVE & set(modifiers):
        return True
    return step.access.operation is Operation.ATOMIC and _uses_result(step)


def _uses_result(step: Step) -> bool:
    return bool(destinations(step.instruction))


def _find_looping(leads: dict[int, tuple[int, ...]]) -> list[int]:
    """Blocks that can be reached from themselves."""
    looping: list[int] = []
    for start, successors in leads.items():
        seen: set[int] = set()
        waiting = list(successors)
        while waiting:
            place = waiting.pop()
            if place not in seen:
                seen.add(place)
                waiting.extend(leads[place])
        if start in seen:
            looping.append(start)
    return looping
