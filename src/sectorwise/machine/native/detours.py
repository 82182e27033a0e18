"""Turns a kernel into its branches to slow paths of quotients and roots: no count of memory hangs on these.

A quotient is computed in line, and where an operand or the result is no plain number, or nearly none, by a function of
the compiler's. Such a branch accesses no memory on either way, and its lanes wait for each other where the ways meet:
what follows is issued by the same lanes whichever way they went, though not with the same values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.binary.flow import build_flow
from sectorwise.binary.ir import ConvergenceBarrier
from sectorwise.machine.divisions import names_rounding
from sectorwise.machine.regions import find_region, reach_blocks
from sectorwise.machine.registers import BARRIER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.flow import Flow
    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import BasicBlock
    from sectorwise.machine.regions import Region

_MOVES_LANES = frozenset({"BREAK", "BMOV", "WARPSYNC", "ENDCOLLECTIVE", "YIELD", "NANOSLEEP"})


class Detour(Struct, frozen=True):
    """A branch that decides no count of memory: instructions `inside` run, and are counted, on one of its ways alone.

    The ways meet at instruction `meeting`; what those inside write, `writes`, hangs on which way was gone.
    """

    meeting: int
    inside: frozenset[int]
    writes: frozenset[int]


def find_detours(kernel: Kernel, blocks: Mapping[int, BasicBlock], marks: Mapping[int, Marks]) -> dict[int, Detour]:
    """The detours of a kernel, by the index of the branch; `marks` are of all instructions that can be reached."""
    offsets = {offset for name, offset in kernel.functions.items() if names_rounding(name)}
    if not offsets:
        return {}
    flow = build_flow(kernel.instructions)
    found = {}
    for start, block in blocks.items():
        if block.terminator is None or block.terminator.instruction.opcode != "BRA":
            continue
        index = block.terminator.instruction.index
        meeting = flow.post_dominators[flow.block_of[index]]
        place = -1 if meeting is None else flow.blocks[meeting].first
        barrier = _find_barrier(kernel, range(start, index), place) if place in blocks else None
        if meeting is None or barrier is None or not _calls_only(kernel, flow, index, offsets):
            continue
        region = find_region(kernel, flow, index)
        if region is not None and not region.accesses and _stays(kernel, region, barrier):
            writes = {slot for each in region.inside & marks.keys() for slot in marks[each].writes}
            found[index] = Detour(place, region.inside, frozenset(writes))
    return found


def _find_barrier(kernel: Kernel, before: range, meeting: int) -> int | None:
    """The barrier register at which lanes wait at `meeting`, if it is set where they all are, before the branch."""
    last = kernel.instructions[meeting]
    if last.opcode != "BSYNC" or last.guard is not None:
        return None
    slot = _barrier_of(last)
    named = [kernel.instructions[index] for index in before if _barrier_of(kernel.instructions[index]) == slot]
    is_set = bool(named) and named[-1].opcode == "BSSY" and named[-1].guard is None
    return slot if is_set else None


def _barrier_of(instruction: Instruction) -> int | None:
    return next((BARRIER + each.index for each in instruction.operands if isinstance(each, ConvergenceBarrier)), None)


def _calls_only(kernel: Kernel, flow: Flow, index: int, offsets: set[int]) -> bool:
    """Whether there are calls before the ways of a branch meet, and none but of functions at these offsets."""
    block = flow.block_of[index]
    meeting = flow.post_dominators[block]
    between = reach_blocks(flow, flow.blocks[block].successors, -1 if meeting is None else meeting)
    lasts = [kernel.instructions[flow.blocks[each].end - 1] for each in between]
    called = [getattr(each.operands[-1], "offset", None) for each in lasts if each.opcode == "CALL"]
    return bool(called) and offsets.issuperset(called)


def _stays(kernel: Kernel, region: Region, barrier: int) -> bool:
    """Whether lanes leave neither the region nor their barrier other than by its end."""
    inside = [kernel.instructions[index] for index in region.inside]
    return not any(each.opcode in _MOVES_LANES or _barrier_of(each) == barrier for each in inside)
