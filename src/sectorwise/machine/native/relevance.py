"""Turns what each instruction does into which must compute values: those that reach an address, a guard or a branch.

All others are issued and counted, not computed. Stores matter where a load that matters may read what they wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.registers import BARRIER

if TYPE_CHECKING:
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step


def reached_spaces(space: Space) -> set[Space]:
    """Spaces whose memory an access of one may touch."""
    if space is Space.GENERIC:
        return {Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.GENERIC}
    return {space, Space.GENERIC}


def find_relevant(flow: Flow) -> set[int]:
    """Instructions whose values matter for counts."""
    relevant: set[int] = set()
    spaces: set[Space] = set()
    while True:
        before = (len(relevant), len(spaces))
        _search(flow, relevant, spaces)
        if (len(relevant), len(spaces)) == before:
            return relevant


def _search(flow: Flow, relevant: set[int], spaces: set[Space]) -> None:
    """Backwards along the flow graph, to a fixed point."""
    begins: dict[int, set[int]] = {start: set() for start in flow.blocks}
    before: dict[int, list[int]] = {start: [] for start in flow.blocks}
    for start, successors in flow.leads.items():
        for successor in successors:
            before[successor].append(start)
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        block = flow.blocks[start]
        slots: set[int] = set().union(*(begins[successor] for successor in flow.leads[start]))
        if block.terminator is not None:
            slots |= flow.marks[block.terminator.instruction.index].reads
        for step in reversed(block.steps):
            _pass(step, flow.marks[step.instruction.index], slots, relevant, spaces)
        if not slots <= begins[start]:
            begins[start] |= slots
            waiting.extend(before[start])


def _pass(step: Step, marks: Marks, slots: set[int], relevant: set[int], spaces: set[Space]) -> None:
    """Slots that matter before an instruction, from those that matter behind it."""
    index = step.instruction.index
    matters = bool(marks.writes & slots) or step.is_control
    if marks.stores is not None and marks.stores in spaces:
        matters = True
    if matters:
        relevant.add(index)
        if step.guard_slot is None and not any(slot >= BARRIER for slot in marks.writes):
            slots -= marks.writes
        slots |= marks.reads
        if marks.loads is not None:
            spaces |= reached_spaces(marks.loads)
        return
    if step.access is not None:
        slots.update(step.address_slots)
        if step.guard_slot is not None:
            slots.add(step.guard_slot)
        if step.access.operation is Operation.ASYNC_COPY:
            slots |= marks.reads
