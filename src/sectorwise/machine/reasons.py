"""Turns an instruction whose inputs are not known into the sentence that says where the unknown value comes from."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from sectorwise.binary.ir import Target
from sectorwise.machine.effects import CALL_RESULTS, File, destinations, sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.effects import Slot

_LOADS = frozenset(("LDG", "LDS", "LDL", "LD", "LDSM", "ATOM", "ATOMG", "ATOMS"))
_ENDS_FLOW = frozenset(("BRA", "BRX", "BRXU", "JMP", "JMX", "JMXU", "EXIT", "RET", "KILL"))


def explain_unknown(kernel: Kernel, index: int, origins: Mapping[int, str]) -> str:
    """Why something that instruction `index` reads is not known, by reaching definitions.

    `origins` maps instructions to why what they wrote was not known. Searches backwards, nearest definitions first.
    """
    if index in origins:
        return origins[index]
    before = _predecessors(kernel)
    queue: deque[tuple[Slot, int]] = deque((slot, index) for slot in sources(kernel.instructions[index]))
    seen = set(queue)
    through_memory: str | None = None
    while queue:
        slot, at = queue.popleft()
        for definition in _definitions(kernel, before, slot, at, origins):
            instruction = kernel.instructions[definition]
            if definition in origins:
                return f"{_name(slot)} comes from {instruction.opcode} at {_place(instruction)}: {origins[definition]}"
            if through_memory is None and instruction.opcode in _LOADS:
                through_memory = f"{_name(slot)} was loaded by {instruction.opcode} at {_place(instruction)}"
            for source in sources(instruction):
                if (source, definition) not in seen:
                    seen.add((source, definition))
                    queue.append((source, definition))
    if through_memory is not None and origins:
        first = min(origins)
        origin = kernel.instructions[first]
        return f"{through_memory}; the value was stored after {origin.opcode} at {_place(origin)}: {origins[first]}"
    return "it depends on a value that is not known"


def _name(slot: Slot) -> str:
    file, index = slot
    return f"{file.value}{index}"


def _place(instruction: Instruction) -> str:
    if instruction.location is None:
        return f"offset 0x{instruction.offset:04x}"
    return f"line {instruction.location.line}"


def _predecessors(kernel: Kernel) -> list[list[int]]:
    """For each instruction those that may run right before it; a function's callers precede its first instruction."""
    places = {instruction.offset: instruction.index for instruction in kernel.instructions}
    before: list[list[int]] = [[] for _ in kernel.instructions]
    returns: list[int] = []
    for instruction in kernel.instructions:
        index = instruction.index
        falls = instruction.opcode not in _ENDS_FLOW or instruction.guard is not None
        if falls and index + 1 < len(before):
            before[index + 1].append(index)
        if instruction.opcode in ("BRA", "JMP", "CALL"):
            for operand in instruction.operands:
                if isinstance(operand, Target) and operand.offset in places:
                    before[places[operand.offset]].append(index)
        if instruction.opcode == "RET":
            returns.append(index)
    for instruction in kernel.instructions:
        if instruction.opcode == "CALL" and instruction.index + 1 < len(before):
            before[instruction.index + 1].extend(returns)
    return before


def _is_result(slot: Slot) -> bool:
    return slot[0] is File.REGISTER and slot[1] in CALL_RESULTS


def _definitions(kernel: Kernel, before: list[list[int]], slot: Slot, at: int, origins: Mapping[int, str]) -> list[int]:
    """Instructions whose write of `slot` may reach `at`, nearest first."""
    found: list[int] = []
    queue = deque(before[at])
    seen = set(queue)
    while queue:
        index = queue.popleft()
        instruction = kernel.instructions[index]
        if slot in destinations(instruction) or (
            index in origins and instruction.opcode == "CALL" and _is_result(slot)
        ):
            found.append(index)
            if instruction.guard is None:
                continue
        for earlier in before[index]:
            if earlier not in seen:
                seen.add(earlier)
                queue.append(earlier)
    return found
