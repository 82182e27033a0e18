"""Turns the loads of a launch into the part of the requests for one line that travel to the L2 together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.counting.request import Operation
from sectorwise.device import require_capability
from sectorwise.machine.copy_forms import copy_form_of
from sectorwise.model.schedule import find_loops

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution
    from sectorwise.measurements import CacheBehaviour
    from sectorwise.model.occupancy import Occupancy

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


class Merging(Struct, frozen=True):
    """The part of mergeable requests that travel together, and instructions whose requests are always `alone`.

    `coming` is that part of those for lines that are on their way from DRAM.
    """

    share: float
    coming: float
    alone: frozenset[int]


def find_merging(bound: BoundLaunch, execution: Execution, occupancy: Occupancy, behaviour: CacheBehaviour) -> Merging:
    """Which requests for a line that SMs make in one tick come close enough in time: an SM asks for one line a cycle.

    They spread over as many cycles as the SM's warps ask for lines in one pass of their loop. What DRAM brings is on
    its way for so long that SMs which are late catch up, unless they compute for longer in each pass. Bulk copies are
    one warp's, and SMs that want the same tile ask for it line by line together: of 64 tiles that were the same an
    H200's L2 was asked for 17. But not for parts of sectors, as rows of 16 bytes are, and not for several blocks at
    once (multicast): there it was asked for each (tests/measured/tiles).
    """
    code, sites = bound.kernel.instructions, execution.sites
    copies = [site for site in sites if copy_form_of(code[site.instruction]) is not None]
    alone = (s for s in copies if code[s.instruction].has("MULTICAST") or s.sectors > s.sectors_ideal)
    share, coming = _find_shares(bound, execution, occupancy, behaviour)
    return Merging(share, coming, frozenset(s.instruction for s in alone))


def _find_shares(
    bound: BoundLaunch, execution: Execution, occupancy: Occupancy, behaviour: CacheBehaviour
) -> tuple[float, float]:
    blocks = min(occupancy.blocks_per_sm, -(-bound.launch.blocks_total // bound.device.sm_count))
    whole = bound.kernel.instructions
    loads = (s for s in execution.sites if s.access.operation in _LOADS and copy_form_of(whole[s.instruction]) is None)
    lines = {s.instruction: s.tag_requests / s.executed for s in loads}
    code = tuple(each for each in bound.kernel.instructions if execution.issued[each.index])
    passes = [(sum(lines.get(each.index, 0.0) for each in loop), len(loop)) for loop in find_loops(code)]
    lines_a_pass, length = max(passes, default=(0.0, 0))
    if not lines_a_pass:
        lines_a_pass, length = sum(lines.values()), len(code)
    warps = blocks * occupancy.warps_per_block
    spread, issued = warps * lines_a_pass, warps * length / require_capability(bound.device).sub_partitions
    coming = min(1.0, behaviour.merge_coming_cycles / issued) if issued else 1.0
    if blocks > 1:
        spread = max(spread, behaviour.merge_skew_cycles)
    share = min(1.0, behaviour.merge_window_cycles / spread) if spread else 1.0
    return share, max(share, coming)
