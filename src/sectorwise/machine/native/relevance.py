"""Turns what each instruction does into which must compute values: those that reach an address, a guard or a branch.

All others are issued and counted, not computed. Stores matter where a load that matters may read what they wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation
from sectorwise.machine.registers import BARRIER, PREDICATE

if TYPE_CHECKING:
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Part, Reach
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step


Guard = tuple[int, bool]
"""A predicate's slot, and whether it is negated."""

Needs = dict[int, frozenset[Guard | None]]
"""Slots whose values matter, each with the guards under which they do; with None they do everywhere."""

_EVERYWHERE: frozenset[Guard | None] = frozenset({None})


def guard_of(step: Step) -> Guard | None:
    """The guard of an instruction."""
    return None if step.guard_slot is None else (step.guard_slot, step.guard_negated)


def find_relevant(flow: Flow, reach: Reach) -> set[int]:
    """Instructions whose values matter for counts."""
    relevant: set[int] = set()
    parts: set[Part] = set()
    while True:
        before = len(parts)
        _search(flow, reach, relevant, parts)
        # What matters hangs on what is loaded from; where that is all known from the start, nothing more comes of it.
        if len(parts) == before:
            return relevant


def _search(flow: Flow, reach: Reach, relevant: set[int], parts: set[Part]) -> None:
    """Backwards along the flow graph, to a fixed point."""
    begins: dict[int, Needs] = {start: {} for start in flow.blocks}
    before: dict[int, list[int]] = {start: [] for start in flow.blocks}
    for start, successors in flow.leads.items():
        for successor in successors:
            before[successor].append(start)
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        block = flow.blocks[start]
        needs: Needs = {}
        for successor in flow.leads[start]:
            _join(needs, begins[successor])
        if block.terminator is not None:
            for slot in flow.marks[block.terminator.instruction.index].reads:
                _need(needs, slot, None)
        for step in reversed(block.steps):
            index = step.instruction.index
            is_read = not parts.isdisjoint(reach.stored(index))
            if _pass(step, flow.marks[index], needs, relevant, is_read=is_read):
                parts |= reach.loaded(index)
        if _join(begins[start], needs):
            waiting.extend(before[start])


def _join(known: Needs, more: Needs) -> bool:
    """Adds needs to others; says whether any was new."""
    changed = False
    for slot, guards in more.items():
        joined = known[slot] | guards if slot in known else guards
        if known.get(slot) != joined:
            known[slot] = joined
            changed = True
    return changed


def _need(needs: Needs, slot: int, guard: Guard | None) -> None:
    known = needs.get(slot)
    own = _EVERYWHERE if guard is None else frozenset({guard})
    needs[slot] = own if known is None else known | own


def _pass(step: Step, marks: Marks, needs: Needs, relevant: set[int], *, is_read: bool) -> bool:
    """What matters before an instruction, from what matters behind it; `is_read` says that what it stores matters.

    Gives whether what it loads matters, and may be written.
    """
    guard = guard_of(step)
    opposite = None if guard is None else frozenset({(guard[0], not guard[1])})
    written = [slot for slot in marks.writes if slot in needs]
    matters = step.is_control or is_read or any(needs[slot] != opposite for slot in written)
    if not any(slot >= BARRIER for slot in marks.writes):
        for slot in written:
            left = frozenset() if guard is None else needs[slot] - {guard}
            if left:
                needs[slot] = left
            else:
                del needs[slot]
    # Behind a change of its predicate, a guard says nothing of what it lets through before.
    if any(slot >= PREDICATE for slot in marks.writes):
        for slot, guards in needs.items():
            if any(each is not None and each[0] in marks.writes for each in guards):
                needs[slot] = frozenset(None if each and each[0] in marks.writes else each for each in guards)
    if matters:
        relevant.add(step.instruction.index)
        decides = marks.reads
    elif step.access is not None:
        decides = marks.reads if step.access.operation is Operation.ASYNC_COPY else set(step.address_slots)
    else:
        return False
    for slot in decides:
        _need(needs, slot, guard)
    if guard is not None:
        _need(needs, guard[0], None)
    # Nothing may be stored to what LDG.CONSTANT reads as long as the kernel runs (PTX ISA, ld.global.nc).
    return matters and not (step.access is not None and "CONSTANT" in step.access.modifiers)
