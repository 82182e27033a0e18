"""Turns what each instruction does into which must compute values: those that reach an address, a guard or a branch.

All others are issued and counted, not computed. Stores matter where a load that matters may read what they wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation
from sectorwise.machine.registers import BARRIER

if TYPE_CHECKING:
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Part, Reach
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step


Guard = tuple[int, bool]
"""A predicate's slot, and whether it is negated."""

Need = tuple[int, Guard | None]
"""A slot whose value matters, everywhere or where a guard holds."""


def guard_of(step: Step) -> Guard | None:
    """The guard of an instruction."""
    return None if step.guard_slot is None else (step.guard_slot, step.guard_negated)


def find_relevant(flow: Flow, reach: Reach) -> set[int]:
    """Instructions whose values matter for counts."""
    relevant: set[int] = set()
    parts: set[Part] = set()
    while True:
        before = (len(relevant), len(parts))
        _search(flow, reach, relevant, parts)
        if (len(relevant), len(parts)) == before:
            return relevant


def _search(flow: Flow, reach: Reach, relevant: set[int], parts: set[Part]) -> None:
    """Backwards along the flow graph, to a fixed point."""
    begins: dict[int, set[Need]] = {start: set() for start in flow.blocks}
    before: dict[int, list[int]] = {start: [] for start in flow.blocks}
    for start, successors in flow.leads.items():
        for successor in successors:
            before[successor].append(start)
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        block = flow.blocks[start]
        needs: set[Need] = set().union(*(begins[successor] for successor in flow.leads[start]))
        if block.terminator is not None:
            needs |= {(slot, None) for slot in flow.marks[block.terminator.instruction.index].reads}
        for step in reversed(block.steps):
            index = step.instruction.index
            is_read = not parts.isdisjoint(reach.stored(index))
            if _pass(step, flow.marks[index], needs, relevant, is_read=is_read):
                parts |= reach.loaded(index)
        if not needs <= begins[start]:
            begins[start] |= needs
            waiting.extend(before[start])


def _pass(step: Step, marks: Marks, needs: set[Need], relevant: set[int], *, is_read: bool) -> bool:
    """What matters before an instruction, from what matters behind it; `is_read` says that what it stores matters.

    Gives whether what it loads matters, and may be written.
    """
    guard = guard_of(step)
    matters = step.is_control or any(
        slot in marks.writes and not (guard is not None and other == (guard[0], not guard[1])) for slot, other in needs
    )
    matters |= is_read
    is_barrier = any(slot >= BARRIER for slot in marks.writes)
    if not is_barrier:
        needs -= {need for need in needs if need[0] in marks.writes and (guard is None or need[1] == guard)}
    # Behind a change of its predicate, a guard says nothing of what it lets through before.
    stale = {need for need in needs if need[1] is not None and need[1][0] in marks.writes}
    needs -= stale
    needs |= {(slot, None) for slot, _ in stale}
    if matters:
        relevant.add(step.instruction.index)
        needs |= {(slot, guard) for slot in marks.reads}
    elif step.access is not None:
        decides = marks.reads if step.access.operation is Operation.ASYNC_COPY else set(step.address_slots)
        needs |= {(slot, guard) for slot in decides}
    else:
        return False
    if guard is not None:
        needs.add((guard[0], None))
    # Nothing may be stored to what LDG.CONSTANT reads as long as the kernel runs (PTX ISA, ld.global.nc).
    return matters and not (step.access is not None and "CONSTANT" in step.access.modifiers)
