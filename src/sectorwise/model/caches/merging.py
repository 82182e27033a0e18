"""Turns the loads of a launch into the part of the requests for one line that travel to the L2 together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.counting.request import Operation
from sectorwise.machine.copy_forms import copy_form_of
from sectorwise.model.schedule import find_loops

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution
    from sectorwise.measurements import CacheBehaviour
    from sectorwise.model.occupancy import Occupancy

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


class Merging(Struct, frozen=True):
    """The part of mergeable requests that travel together, and instructions whose requests are always `alone`."""

    share: float
    alone: frozenset[int]


def find_merging(bound: BoundLaunch, execution: Execution, occupancy: Occupancy, behaviour: CacheBehaviour) -> Merging:
    """Which requests for a line that SMs make in one tick come close enough in time: an SM asks for one line a cycle.

    They spread over as many cycles as the SM's warps ask for lines in one pass of their loop. Bulk copies are one
    warp's, and SMs that want the same tile ask for it line by line together: of 64 tiles that were the same an H200's
    L2 was asked for 17. But not for parts of sectors, as rows of 16 bytes are, and not for several blocks at once
    (multicast): there it was asked for each (tests/measured/tiles).
    """
    code, sites = bound.kernel.instructions, execution.sites
    copies = [site for site in sites if copy_form_of(code[site.instruction]) is not None]
    alone = (s for s in copies if code[s.instruction].has("MULTICAST") or s.sectors > s.sectors_ideal)
    return Merging(_find_share(bound, execution, occupancy, behaviour), frozenset(s.instruction for s in alone))


def _find_share(bound: BoundLaunch, execution: Execution, occupancy: Occupancy, behaviour: CacheBehaviour) -> float:
    blocks = min(occupancy.blocks_per_sm, -(-bound.launch.blocks_total // bound.device.sm_count))
    whole = bound.kernel.instructions
    loads = (s for s in execution.sites if s.access.operation in _LOADS and copy_form_of(whole[s.instruction]) is None)
    lines = {s.instruction: s.tag_requests / s.executed for s in loads}
    code = [each for each in bound.kernel.instructions if execution.issued[each.index]]
    passes = [sum(lines.get(each.index, 0.0) for each in loop) for loop in find_loops(code)]
    lines_a_pass = max(passes, default=0.0) or sum(lines.values())
    spread = blocks * occupancy.warps_per_block * lines_a_pass
    if blocks > 1:
        spread = max(spread, behaviour.merge_skew_cycles)
    return min(1.0, behaviour.merge_window_cycles / spread) if spread else 1.0
