"""Turns what each instruction does into whether machine code may run the launch: certainty, and order between warps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.effects import destinations
from sectorwise.machine.native.flow import steps_of
from sectorwise.machine.native.relevance import reached_spaces
from sectorwise.machine.native.unsupported import UnsupportedError

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step

_COMMUTATIVE = frozenset({"ADD", "POPC", "AND", "OR", "XOR", "MIN", "MAX"})
_FLOATS = ("F16", "F32", "F64", "BF16")
_ORDERED_LOADS = frozenset({"STRONG", "VOLATILE"})


def check_suitability(flow: Flow, bound: BoundLaunch) -> None:
    """Raises UnsupportedError where the launch needs what only the reference engine has."""
    _check_certainty(flow, bound)
    _check_order(flow)


def _check_certainty(flow: Flow, bound: BoundLaunch) -> None:
    """Values that are not known, or inexact, must reach no address, guard or branch."""
    noisy = any(allocation.buffer.contents.kind == "noise" for allocation in bound.allocations)
    doubtful: set[Space] = {Space.GLOBAL, Space.GENERIC} if noisy else set()
    while True:
        before = len(doubtful)
        _follow(flow, doubtful)
        if len(doubtful) == before:
            return


def _follow(flow: Flow, doubtful: set[Space]) -> None:
    """Doubt along the flow graph, to a fixed point; `doubtful` gains the spaces that doubtful values are stored to."""
    begins: dict[int, set[int]] = {start: set() for start in flow.blocks}
    waiting = list(flow.blocks)
    while waiting:
        start = waiting.pop()
        block = flow.blocks[start]
        slots = set(begins[start])
        for step in steps_of(block):
            _follow_step(step, flow.marks[step.instruction.index], slots, doubtful)
        for successor in flow.leads[start]:
            if not slots <= begins[successor]:
                begins[successor] |= slots
                waiting.append(successor)


def _follow_step(step: Step, marks: Marks, slots: set[int], doubtful: set[Space]) -> None:
    decides = set(step.address_slots)
    if step.guard_slot is not None:
        decides.add(step.guard_slot)
    if step.action is None:
        # Branches and waits decide by all that they read.
        decides |= marks.reads
    if decides & slots:
        raise UnsupportedError(f"{step.instruction.text} may depend on a value that is inexact or not known")
    in_doubt = marks.inexact or marks.unknown or bool(marks.reads & slots)
    in_doubt |= marks.loads is not None and bool(reached_spaces(marks.loads) & doubtful)
    if in_doubt:
        slots |= marks.writes
        if marks.stores is not None:
            doubtful |= reached_spaces(marks.stores)
    elif step.guard_slot is None:
        slots -= marks.writes


def _check_order(flow: Flow) -> None:
    """What depends on the order of warps within a loop runs as the reference engine orders them."""
    looping = _find_looping(flow.leads)
    for start, block in flow.blocks.items():
        if start in looping:
            for step in block.steps:
                if step.access is not None and _shows_order(step):
                    raise UnsupportedError(f"{step.instruction.text} in a loop depends on the order of warps")


def _shows_order(step: Step) -> bool:
    assert step.access is not None
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


def _find_looping(leads: dict[int, tuple[int, ...]]) -> set[int]:
    """Blocks that can be reached from themselves."""
    looping: set[int] = set()
    for start in leads:
        seen: set[int] = set()
        waiting = list(leads[start])
        while waiting:
            place = waiting.pop()
            if place == start:
                looping.add(start)
                break
            if place not in seen:
                seen.add(place)
                waiting.extend(leads[place])
    return looping


