"""Turns what each instruction does into whether machine code may run the launch: certainty, and order between warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.effects import destinations
from sectorwise.machine.native.flow import steps_of
from sectorwise.machine.native.relevance import Guard, guard_of, reached_spaces
from sectorwise.machine.native.unsupported import UnsupportedError

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step

_COMMUTATIVE = frozenset({"ADD", "POPC", "AND", "OR", "XOR", "MIN", "MAX"})
_FLOATS = ("F16", "F32", "F64", "BF16")
_ORDERED_LOADS = frozenset({"STRONG", "VOLATILE"})


def check_certainty(flow: Flow, bound: BoundLaunch) -> None:
    """Raises UnsupportedError where values that are not known, or inexact, may reach an address, guard or branch."""
    noisy = any(allocation.buffer.contents.kind == "noise" for allocation in bound.allocations)
    doubtful: set[Space] = {Space.GLOBAL, Space.GENERIC} if noisy else set()
    while True:
        before = len(doubtful)
        _follow(flow, doubtful)
        if len(doubtful) == before:
            return


Doubts = dict[int, frozenset[Guard]]
"""Slots that may be in doubt, and the guards under which they are not."""


def _follow(flow: Flow, doubtful: set[Space]) -> None:
    """Doubt along the flow graph, to a fixed point; `doubtful` gains the spaces that doubtful values are stored to."""
    begins: dict[int, Doubts] = {start: {} for start in flow.blocks}
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        doubts = dict(begins[start])
        for step in steps_of(flow.blocks[start]):
            _follow_step(step, flow.marks[step.instruction.index], doubts, doubtful)
        waiting.extend(successor for successor in flow.leads[start] if _join(begins[successor], doubts))


def _join(known: Doubts, more: Doubts) -> bool:
    """Adds doubts from another way to a place; says whether that changed anything."""
    changed = False
    for slot, clean in more.items():
        joined = known[slot] & clean if slot in known else clean
        if known.get(slot) != joined:
            known[slot] = joined
            changed = True
    return changed


def _follow_step(step: Step, marks: Marks, doubts: Doubts, doubtful: set[Space]) -> None:
    guard = guard_of(step)

    def in_doubt(slot: int) -> bool:
        return slot in doubts and guard not in doubts[slot]

    # Branches and waits decide by all that they read, memory accesses by address and guard.
    decides = marks.reads if step.action is None else set(step.address_slots)
    guarded = step.guard_slot in doubts and (step.access is not None or step.action is None)
    if guarded or any(in_doubt(slot) for slot in decides):
        raise UnsupportedError(f"{step.instruction.text} may depend on a value that is inexact or not known")
    doubt = marks.inexact or marks.unknown or any(in_doubt(slot) for slot in marks.reads) or step.guard_slot in doubts
    doubt |= marks.loads is not None and bool(reached_spaces(marks.loads) & doubtful)
    if doubt and marks.stores is not None:
        doubtful |= reached_spaces(marks.stores)
    _write(marks.writes, guard, doubts, doubt=doubt)


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


def check_order(flow: Flow, relevant: frozenset[int] | None) -> None:
    """Raises UnsupportedError where values that matter depend on the order of warps within a loop.

    Outside of loops, and for updates that commute, all warps of a block in turn are the reference engine's order.
    """
    for start in _find_looping(flow.leads):
        for step in flow.blocks[start].steps:
            matters = relevant is None or step.instruction.index in relevant
            if matters and step.access is not None and _shows_order(step):
                raise UnsupportedError(f"{step.instruction.text} in a loop depends on the order of warps")


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
