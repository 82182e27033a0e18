"""Turns the groups of a batch into the next frame: the groups, one a warp, that issue the same instruction now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.cluster_barriers import release_clusters
from sectorwise.machine.convergence import State, meet, release_barriers
from sectorwise.machine.execution import Order
from sectorwise.machine.frame import Frame
from sectorwise.machine.lanes import ALL_LANES, unpack
from sectorwise.machine.progress import wake_spinners

if TYPE_CHECKING:
    from sectorwise.machine.batch import Batch

QUANTUM = 1024
"""Frames after which a group that could run is preferred, whatever its place: spin loops wait for such groups."""

NOWHERE = int(np.iinfo(np.int64).max)


def settle(batch: Batch) -> None:
    """Lets go of all groups that wait for nothing any more."""
    batch.groups = meet(batch.groups, batch.live)
    batch.groups = release_barriers(batch.groups, batch.live, batch.warps_per_block, batch.arrived)
    release_clusters(batch)
    batch.unsettled = False


def choose_frame(batch: Batch) -> Frame | None:
    """The groups to run next: those at the lowest place, or with the one that has waited longest; None if none can."""
    groups = batch.groups
    if batch.some_spin and (batch.clock - batch.woken > QUANTUM or not (groups.state == State.RUNS).any()):
        batch.woken = batch.clock
        wake_spinners(batch)
    runs = np.flatnonzero(groups.state == State.RUNS)
    if not runs.size:
        return None
    pcs = groups.pc[runs]
    batch.clock += 1
    ran = groups.ran[runs]
    oldest = int(ran.argmin())
    highest = batch.tally.options.order is Order.HIGHEST
    pc = int(pcs.max() if highest else pcs.min())
    if batch.clock - ran[oldest] > QUANTUM:
        pc = int(pcs[oldest])
    here = pcs == pc
    chosen = runs[here]
    others = pcs[~here]
    next_pc = int(others.min()) if others.size else NOWHERE
    if highest and others.size:
        # Who is highest may change with every block.
        next_pc = 0
    warps = groups.warp[chosen]
    if warps.size > 1:
        first = np.concatenate([[True], warps[1:] != warps[:-1]])
        if not first.all():
            chosen, warps, next_pc = chosen[first], warps[first], min(pc, next_pc)
    groups.ran[chosen] = batch.clock
    return _make_frame(batch, chosen, pc, next_pc)


def _make_frame(batch: Batch, chosen: np.ndarray[tuple[int], np.dtype[np.intp]], pc: int, next_pc: int) -> Frame:
    warps, masks = batch.groups.warp[chosen], batch.groups.mask[chosen]
    total = len(batch.live)
    issuing, lanes = len(chosen), int(np.bitwise_count(masks).sum())
    if 2 * warps.size >= total:
        # A window on everything is cheaper than gathering more than half of the rows.
        spread = masks
        if warps.size < total:
            spread = np.zeros(total, np.uint32)
            spread[warps] = masks
        rows, at, live = None, warps, batch.live
    else:
        spread, rows, at, live = masks, warps, np.arange(warps.size), batch.live[warps]
    group = None if (spread == ALL_LANES).all() else unpack(spread)
    mask = None if group is None or (spread == live).all() else group
    return Frame(chosen, at, rows, spread, group, mask, pc, next_pc, issuing, lanes)
