"""Turns functions that call themselves, and whose lanes part, into doubt about what is counted in and behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.flow import build_flow
from sectorwise.machine.native.flow import is_indirect_call
from sectorwise.machine.taint import ORDERED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.binary.flow import Flow
    from sectorwise.binary.ir import Kernel
    from sectorwise.machine.batch import Tally

_LANES = 32


def doubt_recursion(tally: Tally) -> None:
    """Makes counts of recursion depend on the schedule, where some of a warp's lanes recur and others do not.

    A function that calls itself sets its convergence barriers aside (BMOV.CLEAR) and uses them anew. A warp has one set
    of them: lanes that come to a barrier before or after that meet others or do not. Of `recurse` an H200 counted 399
    calls in one pass of the profiler and 633 in another, where 328 are the fewest. A function that calls by pointer may
    call itself.
    """
    kernel = tally.bound.kernel
    if not any(each.opcode == "CALL" for each in kernel.instructions):
        return
    flow = build_flow(kernel.instructions)
    callees = _list_callees(kernel, flow)
    for function in sorted(set().union(*callees)):
        inside = _reach(flow, callees, [function])
        parts = any(
            tally.lanes[index] != _LANES * tally.issued[index]
            for block in inside
            for index in range(flow.blocks[block].first, flow.blocks[block].end)
        )
        if not parts or not any(function in callees[block] for block in inside):
            continue
        callers = [block for block in flow.blocks if function in callees[block.index]]
        touched = inside | _reach(flow, callees, [after for block in callers for after in block.successors])
        for index, counter in tally.counters.items():
            if flow.block_of[index] in touched:
                counter.doubts |= ORDERED
        for index, copies in tally.bulk.items():
            if flow.block_of[index] in touched:
                copies.doubts |= ORDERED


def _list_callees(kernel: Kernel, flow: Flow) -> list[tuple[int, ...]]:
    """Of each block the first blocks of functions that it may call: by pointer, any but the kernel itself."""
    by_offset = {each.offset: each.index for each in kernel.instructions}
    functions = tuple(flow.block_of[by_offset[offset]] for offset in kernel.functions.values() if by_offset.get(offset))
    found: list[tuple[int, ...]] = []
    for block in flow.blocks:
        last = kernel.instructions[block.end - 1]
        named = () if block.callee is None else (block.callee,)
        found.append(functions if is_indirect_call(last) else named)
    return found


def _reach(flow: Flow, callees: Sequence[tuple[int, ...]], begin: Sequence[int]) -> set[int]:
    """Blocks that may run from `begin` on, functions that they call included."""
    seen: set[int] = set()
    waiting = list(begin)
    while waiting:
        block = waiting.pop()
        if block not in seen:
            seen.add(block)
            waiting += (*flow.blocks[block].successors, *callees[block])
    return seen
