"""Turns functions that call themselves, and whose lanes part, into doubt about what is counted in and behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.flow import build_flow
from sectorwise.machine.native.flow import is_indirect_call
from sectorwise.machine.regions import reach_blocks
from sectorwise.machine.taint import ORDERED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.binary.flow import Block, Flow
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.batch import Tally

    Instructions = tuple[Instruction, ...]

_LANES = 32


def doubt_recursion(tally: Tally) -> None:
    """Makes counts of recursion depend on the schedule, where some of a warp's lanes recur and others do not.

    A function that calls itself sets its convergence barriers aside (BMOV.CLEAR) and uses them anew. A warp has one set
    of them: lanes that come to a barrier before or after that meet others or do not. Of `recurse` an H200 counted 399
    calls in one pass of the profiler and 633 in another, where 328 are the fewest. A function that calls one by a
    pointer may be calling itself.
    """
    instructions = tally.bound.kernel.instructions
    if not any(each.opcode == "CALL" for each in instructions):
        return
    flow = build_flow(instructions)
    pointed = _list_pointed(tally, flow)
    for callee in _list_recursive(flow, instructions, pointed):
        inside = _reach(flow, instructions, pointed, [callee])
        parts = any(
            tally.lanes[index] != _LANES * tally.issued[index]
            for block in inside
            for index in range(flow.blocks[block].first, flow.blocks[block].end)
        )
        if not parts:
            continue
        callers = [block for block in flow.blocks if _may_call(instructions, pointed, block, callee)]
        behind = [after for block in callers for after in block.successors]
        touched = inside | _reach(flow, instructions, pointed, behind)
        for index, counter in tally.counters.items():
            if flow.block_of[index] in touched:
                counter.doubts |= ORDERED


def _list_pointed(tally: Tally, flow: Flow) -> frozenset[int]:
    """The first blocks of functions that no call names: pointers to them must be what they are there for."""
    table, first = tally.program.index_of_offset, {block.first: block.index for block in flow.blocks}
    starts = {table.get(offset) for offset in tally.bound.kernel.functions.values()} - {0}
    named = {block.callee for block in flow.blocks}
    return frozenset(first[start] for start in starts if start in first and first[start] not in named)


def _may_call(instructions: Instructions, pointed: frozenset[int], block: Block, callee: int) -> bool:
    """Whether the last instruction of a block calls a function, or may, by way of a pointer."""
    return block.callee == callee or (callee in pointed and is_indirect_call(instructions[block.end - 1]))


def _reach(flow: Flow, instructions: Instructions, pointed: frozenset[int], begin: Iterable[int]) -> set[int]:
    """Blocks that may run from `begin` on, functions that they call or may call included."""
    seen = reach_blocks(flow, begin, -1)
    if any(is_indirect_call(instructions[flow.blocks[block].end - 1]) for block in seen):
        seen |= reach_blocks(flow, pointed, -1)
    return seen


def _list_recursive(flow: Flow, instructions: Instructions, pointed: frozenset[int]) -> list[int]:
    """The first blocks of functions that call themselves, or may by a pointer, by way of others too."""
    callees = {block.callee for block in flow.blocks if block.callee is not None} | pointed
    return [
        callee
        for callee in sorted(callees)
        if any(
            _may_call(instructions, pointed, flow.blocks[block], callee)
            for block in _reach(flow, instructions, pointed, [callee])
        )
    ]
