"""Turns a kernel's decoded blocks into a flow graph: where each may lead, and which slots are live there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE, Constant, Predicate, Register, Target
from sectorwise.counting.request import Space
from sectorwise.machine.divisions import names_rounding
from sectorwise.machine.native.aside_forms import is_trial
from sectorwise.machine.native.trace import Marks, trace_step
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.program import BasicBlock, Program, block_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.native.detours import Detour
    from sectorwise.machine.program import Step

_INDIRECT = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
_SEES_OTHERS = frozenset({"SHFL", "LDSM", "MOVM"})


class Flow(Struct, frozen=True):
    """All basic blocks that can be reached, by their first instruction; where each may lead; what instructions do.

    Where a block in `dead_ends` leads is not known: whoever comes there gives up. `in_step` says that the warps of a
    block of threads run each of these in turn, those at the lowest place first; accesses in `racing` show in which
    order they run. `detours` are branches, by index, that decide no count of memory.
    """

    blocks: dict[int, BasicBlock]
    leads: dict[int, tuple[int, ...]]
    marks: dict[int, Marks]
    dead_ends: frozenset[int]
    in_step: bool = False
    racing: frozenset[int] = frozenset()
    detours: Mapping[int, Detour] = field(default_factory=dict)

    def step_at(self, index: int) -> Step:
        """The instruction with an index."""
        start = max(start for start in self.blocks if start <= index)
        return steps_of(self.blocks[start])[index - start]

    def steps(self) -> Iterator[Step]:
        """All instructions."""
        for block in self.blocks.values():
            yield from steps_of(block)


def steps_of(block: BasicBlock) -> tuple[Step, ...]:
    """The instructions of a block, its last included."""
    return block.steps if block.terminator is None else (*block.steps, block.terminator)


def find_flow(program: Program) -> Flow:
    """The flow graph of a kernel.

    Raises:
        UnsupportedError: it runs off its end.
    """
    blocks: dict[int, BasicBlock] = {}
    leads: dict[int, tuple[int, ...]] = {}
    dead_ends: set[int] = set()
    waiting = [0]
    returns = tuple(
        instruction.index + 1 for instruction in program.kernel.instructions if instruction.opcode == "CALL"
    )
    while waiting:
        start = waiting.pop()
        if start in blocks:
            continue
        if start >= len(program.kernel.instructions):
            raise UnsupportedError("code that runs off its end")
        block = block_at(program, start)
        blocks[start] = block
        try:
            leads[start] = _successors(program, block, returns)
        except UnsupportedError:
            leads[start] = ()
            dead_ends.add(start)
        if block.terminator is not None and is_trial(block.terminator.instruction) and block.stop - 1 != start:
            # Who waits comes back to the trial alone.
            leads[start] = (*leads[start], block.stop - 1)
        waiting.extend(leads[start])
    blocks = dict(sorted(blocks.items()))
    marks: dict[int, Marks] = {}
    for block in blocks.values():
        for step in steps_of(block):
            marks[step.instruction.index] = trace_step(step)
    return Flow(blocks, leads, marks, frozenset(dead_ends), detours=_find_detours(program, blocks, marks))


def _find_detours(
    program: Program, blocks: Mapping[int, BasicBlock], marks: Mapping[int, Marks]
) -> Mapping[int, Detour]:
    if not any(map(names_rounding, program.kernel.functions)):
        return {}
    # Loaded here: few kernels have any.
    from sectorwise.machine.native.detours import find_detours

    return find_detours(program.kernel, blocks, marks)


def split_at_accesses(flow: Flow) -> Flow:
    """The same with a basic block for each access to memory that lanes of several warps may reach."""
    blocks: dict[int, BasicBlock] = {}
    leads: dict[int, tuple[int, ...]] = {}
    dead_ends: set[int] = set()
    for start, block in flow.blocks.items():
        accesses = [step for step in block.steps if step.access is not None and step.access.space is not Space.LOCAL]
        cuts = sorted({start, *(step.instruction.index for step in accesses)})
        for first, stop in zip(cuts, [*cuts[1:], block.stop], strict=True):
            steps = tuple(step for step in block.steps if first <= step.instruction.index < stop)
            is_last = stop == block.stop
            blocks[first] = BasicBlock(first, stop, steps, block.terminator if is_last else None)
            leads[first] = flow.leads[start] if is_last else (stop,)
        if start in flow.dead_ends:
            dead_ends.add(cuts[-1])
    return Flow(blocks, leads, flow.marks, frozenset(dead_ends), detours=flow.detours)


def sees_others(step: Step) -> bool:
    """Whether an instruction reads registers of lanes that do not issue it."""
    return step.instruction.opcode in _SEES_OTHERS


def is_conditional(step: Step) -> bool:
    """Whether some lanes may go on behind a branch or exit."""
    instruction = step.instruction
    if step.guard_slot is not None or instruction.has("DIV") or instruction.has("CONV"):
        return True
    if instruction.opcode not in ("BRA", "JMP", "EXIT"):
        return False
    return any(
        isinstance(operand, Predicate) and (operand.index != TRUE_PREDICATE or operand.negate)
        for operand in instruction.operands
    )


def is_indirect_call(instruction: Instruction) -> bool:
    """Whether a call goes to a function that a register names."""
    named = any(isinstance(operand, Register | Constant) for operand in instruction.operands)
    return instruction.opcode == "CALL" and named


def indirect_places(program: Program, instruction: Instruction) -> tuple[int, ...]:
    """The places to which an indirect branch, call or return may go."""
    match instruction.opcode:
        case "RET":
            calls = [each.index for each in program.kernel.instructions if each.opcode == "CALL"]
            return tuple(index + 1 for index in calls if index + 1 < len(program.kernel.instructions))
        case "CALL":
            offsets: Iterable[int] = program.kernel.functions.values()
        case _:
            offsets = instruction.branch_targets
    return tuple(program.index_of_offset[offset] for offset in offsets if offset in program.index_of_offset)


def direct_target(program: Program, instruction: Instruction) -> int:
    """The place that a branch or call names."""
    target = next((operand for operand in instruction.operands if isinstance(operand, Target)), None)
    place = None if target is None or target.offset is None else program.index_of_offset.get(target.offset)
    if place is None:
        raise UnsupportedError(f"{instruction.text}: the target is not in the kernel")
    return place


def _successors(program: Program, block: BasicBlock, returns: tuple[int, ...]) -> tuple[int, ...]:
    if block.terminator is None:
        return (block.stop,)
    instruction = block.terminator.instruction
    if instruction.opcode == "ENDCOLLECTIVE" or instruction.has("COLLECTIVE"):
        raise UnsupportedError(instruction.text)
    behind = (block.stop,) if is_conditional(block.terminator) else ()
    match instruction.opcode:
        case "BRA" | "JMP":
            return (direct_target(program, instruction), *behind)
        case "EXIT" | "KILL" | "BPT":
            return behind
        case "RET":
            return (*returns, *behind)
        case opcode if opcode in _INDIRECT or is_indirect_call(instruction):
            places = indirect_places(program, instruction)
            if not places:
                raise UnsupportedError("a branch to places that are not known")
            return (*places, *behind)
        case "CALL":
            return (direct_target(program, instruction), *behind)
        case _:
            return (block.stop,)


def find_live(
    leads: Mapping[int, tuple[int, ...]], needs: Mapping[int, set[int]], writes: Mapping[int, set[int]]
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Slots that are live where each block begins, and where it ends."""
    begins = {start: set(needs[start]) for start in leads}
    ends: dict[int, set[int]] = {start: set() for start in leads}
    before: dict[int, list[int]] = {start: [] for start in leads}
    for start, successors in leads.items():
        for successor in successors:
            before[successor].append(start)
    waiting = list(leads)
    while waiting:
        start = waiting.pop()
        ends[start] = set().union(*(begins[successor] for successor in leads[start]))
        live = needs[start] | (ends[start] - writes[start])
        if live != begins[start]:
            begins[start] = live
            waiting.extend(before[start])
    return begins, ends
