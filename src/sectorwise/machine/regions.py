"""Turns a branch into what depends on it: the instructions until all of its ways meet again, and what these write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.effects import destinations, slot_number
from sectorwise.machine.forms import access_of
from sectorwise.machine.products import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.binary.flow import Flow
    from sectorwise.binary.ir import Instruction, Kernel

_BRANCHES = frozenset({"BRA", "JMP", "BRX", "BRXU", "JMX", "JMXU"})
_WAITS = frozenset({"BAR", "B2R"})
_COPIES = frozenset({"UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG", "STAS"})


class Region(Struct, frozen=True):
    """The instructions `inside`, by index, the slots that any of them writes, and whether any accesses memory.

    Tensor cores do so for products of warpgroups.
    """

    inside: frozenset[int]
    writes: frozenset[int]
    accesses: bool


def find_region(kernel: Kernel, flow: Flow, index: int) -> Region | None:
    """What depends on branch `index`; None where that is everything behind it.

    So it is where lanes may exit, meet the rest of the block, or go where nobody knows before the ways meet again; and
    where memory is written that someone reads.
    """
    if kernel.instructions[index].opcode not in _BRANCHES:
        return None
    start = flow.block_of[index]
    meeting = flow.post_dominators[start]
    if meeting is None:
        return None
    blocks = reach_blocks(flow, flow.blocks[start].successors, meeting)
    inside = list(_instructions(kernel, flow, blocks))
    if any(_is_open(flow, instruction) for instruction in inside) or _passes_memory(kernel, inside):
        return None
    writes = frozenset(slot_number(slot) for instruction in inside for slot in destinations(instruction))
    accesses = any(access_of(each) is not None or each.opcode in PRODUCTS for each in inside)
    return Region(frozenset(instruction.index for instruction in inside), writes, accesses)


def list_decided(kernel: Kernel, flow: Flow, index: int) -> frozenset[int]:
    """The instructions of which branch `index` decides whether, or how often, they run: until all its ways meet again.

    Of a branch at the end of a loop the loop is among them.
    """
    start = flow.block_of[index]
    meeting = flow.post_dominators[start]
    blocks = reach_blocks(flow, flow.blocks[start].successors, -1 if meeting is None else meeting)
    return frozenset(instruction.index for instruction in _instructions(kernel, flow, blocks))


def reach_blocks(flow: Flow, begin: Iterable[int], stop: int) -> set[int]:
    """Blocks that may run from `begin` on before block `stop`, functions that they call included."""
    seen: set[int] = set()
    waiting = [block for block in begin if block != stop]
    while waiting:
        block = waiting.pop()
        if block in seen:
            continue
        seen.add(block)
        callee = flow.blocks[block].callee
        following = [*flow.blocks[block].successors, *([callee] if callee is not None else [])]
        waiting.extend(each for each in following if each != stop)
    return seen


def _instructions(kernel: Kernel, flow: Flow, blocks: set[int]) -> Iterator[Instruction]:
    for block in blocks:
        yield from kernel.instructions[flow.blocks[block].first : flow.blocks[block].end]


def _is_open(flow: Flow, instruction: Instruction) -> bool:
    """Whether more than the warp's own registers hangs on whether this is issued."""
    if instruction.opcode == "CALL":
        return flow.blocks[flow.block_of[instruction.index]].callee is None
    return instruction.opcode in _WAITS | _COPIES or instruction.opcode in ("EXIT", "KILL", "BPT")


def _passes_memory(kernel: Kernel, inside: list[Instruction]) -> bool:
    """Whether anyone may read what these write: other warps may be anywhere, so reads before count too."""
    written = {space for instruction in inside for space in _spaces(instruction, writes=True)}
    return any(not written.isdisjoint(_spaces(each, writes=False)) for each in kernel.instructions)


def _spaces(instruction: Instruction, *, writes: bool) -> set[Space]:
    """Memories that an instruction writes, or reads."""
    access = access_of(instruction)
    if access is None:
        return set()
    spaces: set[Space] = {access.space}
    if access.space is Space.GENERIC:
        spaces |= {Space.GLOBAL, Space.SHARED, Space.LOCAL}
    match access.operation:
        case Operation.LOAD | Operation.MATRIX_LOAD:
            return set() if writes or instruction.has("CONSTANT") else spaces
        case Operation.STORE | Operation.MATRIX_STORE | Operation.REDUCTION:
            return spaces if writes else set()
        case Operation.ASYNC_COPY:
            return {Space.SHARED} if writes else spaces
        case Operation.ATOMIC:
            return spaces
