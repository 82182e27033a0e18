"""Turns functions that call themselves, and whose lanes part, into doubt about what is counted in and behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.flow import build_flow
from sectorwise.machine.regions import reach_blocks
from sectorwise.machine.taint import ORDERED

if TYPE_CHECKING:
    from sectorwise.binary.flow import Flow
    from sectorwise.machine.batch import Tally

_LANES = 32


def doubt_recursion(tally: Tally) -> None:
    """Makes counts of recursion depend on the schedule, where some of a warp's lanes recur and others do not.

    A function that calls itself sets its convergence barriers aside (BMOV.CLEAR) and uses them anew. A warp has one set
    of them: lanes that come to a barrier before or after that meet others or do not. Of `recurse` an H200 counted 399
    calls in one pass of the profiler and 633 in another, where 328 are the fewest.
    """
    instructions = tally.bound.kernel.instructions
    if not any(each.opcode == "CALL" for each in instructions):
        return
    flow = build_flow(instructions)
    for callee in _list_recursive(flow):
        inside = reach_blocks(flow, [callee], -1)
        parts = any(
            tally.lanes[index] != _LANES * tally.issued[index]
            for block in inside
            for index in range(flow.blocks[block].first, flow.blocks[block].end)
        )
        if not parts:
            continue
        callers = [block for block in flow.blocks if block.callee == callee]
        touched = inside | reach_blocks(flow, [after for block in callers for after in block.successors], -1)
        for index, counter in tally.counters.items():
            if flow.block_of[index] in touched:
                counter.doubts |= ORDERED


def _list_recursive(flow: Flow) -> list[int]:
    """The first blocks of functions that call themselves, by way of others too."""
    callees = {block.callee for block in flow.blocks if block.callee is not None}
    return [
        callee
        for callee in sorted(callees)
        if any(flow.blocks[block].callee == callee for block in reach_blocks(flow, [callee], -1))
    ]
