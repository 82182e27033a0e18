"""Turns branches on values that are not certain into doubt about where warps are, until their lanes meet again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.flow import build_flow
from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.lanes import unpack
from sectorwise.machine.regions import find_region, list_decided
from sectorwise.machine.taint import across_lanes, collect, join

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.flow import Flow
    from sectorwise.machine.batch import Batch, Tally
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.regions import Region
    from sectorwise.machine.registers import Window
    from sectorwise.machine.taint import Levels

NO_BRANCH = -1
NEVER_ENDS = -2
"""In `Batch.doubtful`: no branch, or one whose doubt is not known to end."""


def begin_doubt(batch: Batch, frame: Frame, index: int, level: Levels) -> None:
    """From branch `index` on, warps whose lanes went by a value of this level are in doubt."""
    rows = np.arange(frame.warps) if frame.rows is None else frame.rows
    flags = across_lanes(np.broadcast_to(level, (frame.warps, level.shape[1])), frame.group)[:, 0]
    flags = np.where(frame.masks != 0, flags, np.uint8(0))
    batch.ways[rows] |= flags
    said = batch.tally.doubtful_branches
    said[index] = said.get(index, 0) | int(np.bitwise_or.reduce(flags))
    batch.some_ways = True
    unsure = np.flatnonzero(flags)
    branches = batch.doubtful[rows[unsure]]
    for branch in list_distinct(branches):
        those = rows[unsure[branches == branch]]
        masks = frame.masks[unsure[branches == branch]]
        if branch == NO_BRANCH:
            batch.doubtful[those] = NEVER_ENDS if _region_of(batch.tally, index) is None else index
            batch.doubted[those] = masks
        elif branch != NEVER_ENDS:
            region = _region_of(batch.tally, int(branch))
            within = region is not None and index in region.inside
            batch.doubtful[those[(masks & ~batch.doubted[those]) != 0] if within else those] = NEVER_ENDS


def end_doubts(batch: Batch, frame: Frame, window: Window, pc: int) -> None:
    """Ends the doubt of warps that are at `pc`, behind all that depended on the branch, as whole as they came to it.

    What may have been written on the way is as doubtful as the branch was.
    """
    rows = np.arange(frame.warps) if frame.rows is None else frame.rows
    branches = np.where(frame.masks != 0, batch.doubtful[rows], NO_BRANCH)
    for branch in list_distinct(branches):
        region = _region_of(batch.tally, int(branch)) if branch >= 0 else None
        if region is None or pc in region.inside:
            continue
        came = batch.doubted[rows] & (batch.live if frame.rows is None else batch.live[frame.rows])
        whole = (branches == branch) & ((came & ~frame.masks) == 0)
        if not whole.any():
            continue
        level = np.where(unpack(np.where(whole, came, np.uint32(0))), batch.ways[rows][:, None], np.uint8(0))
        for slot in region.writes:
            window.write_taint(slot, join(window.taints.get(slot), level), None)
        batch.ways[rows[whole]] = 0
        batch.doubtful[rows[whole]] = NO_BRANCH
    batch.some_ways = bool(batch.ways.any())


def counts_depend_on(batch: Batch, index: int) -> bool:
    """Whether a count may depend on where branch `index` goes: clocks that decide how long to sleep do not matter."""
    region = _region_of(batch.tally, index)
    return region is None or region.accesses


def way_of(batch: Batch, frame: Frame) -> int:
    """All that is uncertain about the values that led any warp of the frame here."""
    if not batch.some_ways:
        return 0
    ways: npt.NDArray[np.uint8] = batch.ways if frame.rows is None else batch.ways[frame.rows]
    return collect(np.where(frame.masks != 0, ways, np.uint8(0))[:, None], None)


def spread_doubts(tally: Tally) -> None:
    """Makes every count that depends on a doubtful branch doubtful, also where it was made before the branch was met.

    The last round of a loop is as doubtful as whether there is another one.
    """
    for branch, flags in tally.doubtful_branches.items():
        inside = list_decided(tally.bound.kernel, _flow_of(tally), branch)
        for index in inside & tally.counters.keys():
            tally.counters[index].doubts |= flags
        for index in inside & tally.products.keys():
            tally.products[index] |= flags
        for index in inside & tally.bulk.keys():
            tally.bulk[index].doubts |= flags


def _region_of(tally: Tally, index: int) -> Region | None:
    if index not in tally.regions:
        tally.regions[index] = find_region(tally.bound.kernel, _flow_of(tally), index)
    return tally.regions[index]


def _flow_of(tally: Tally) -> Flow:
    if tally.flow is None:
        tally.flow = build_flow(tally.bound.kernel.instructions)
    return tally.flow
