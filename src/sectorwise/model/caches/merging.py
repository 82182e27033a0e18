"""Turns the loads of a launch into the part of the requests for one line that travel to the L2 together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.model.schedule import find_loops

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution
    from sectorwise.measurements import CacheBehaviour
    from sectorwise.model.occupancy import Occupancy

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


def find_merge_share(
    bound: BoundLaunch, execution: Execution, occupancy: Occupancy, behaviour: CacheBehaviour
) -> float:
    """The part of mergeable requests that come close enough in time: an SM asks for one line a cycle.

    Requests of one tick spread over as many cycles as the SM's warps ask for lines in one pass of their loop.
    """
    blocks = min(occupancy.blocks_per_sm, -(-bound.launch.blocks_total // bound.device.sm_count))
    lines = {s.instruction: s.tag_requests / s.executed for s in execution.sites if s.access.operation in _LOADS}
    code = [each for each in bound.kernel.instructions if execution.issued[each.index]]
    passes = [sum(lines.get(each.index, 0.0) for each in loop) for loop in find_loops(code)]
    lines_a_pass = max(passes, default=0.0) or sum(lines.values())
    spread = blocks * occupancy.warps_per_block * lines_a_pass
    if blocks > 1:
        spread = max(spread, behaviour.merge_skew_cycles)
    return min(1.0, behaviour.merge_window_cycles / spread) if spread else 1.0
