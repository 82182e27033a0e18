"""Turns arrivals and waits at the barriers of clusters (UCGABAR) into which groups of lanes go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.convergence import State
from sectorwise.machine.frame import park

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.batch import Batch
    from sectorwise.machine.clusters import Clusters
    from sectorwise.machine.frame import Frame

    Masks = npt.NDArray[np.uint32]


def arrive_in_cluster(batch: Batch, frame: Frame, taken: Masks) -> None:
    """UCGABAR_ARV: counts lanes that have come; nobody waits yet. A kernel without clusters has nobody to tell."""
    clusters = batch.clusters
    if clusters is None:
        return
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    mine = clusters.of_block[warps // batch.warps_per_block]
    came = taken != 0
    clusters.seen[warps[came]] = clusters.phase[mine[came]]
    np.add.at(clusters.arrived, mine, np.bitwise_count(taken).astype(np.int64))
    _end_phases(batch, clusters)
    batch.unsettled = True


def wait_for_cluster(batch: Batch, frame: Frame, index: int, taken: Masks) -> int | None:
    """UCGABAR_WAIT: goes on where all threads of the cluster have arrived; else parks."""
    clusters = batch.clusters
    behind = index + 1
    if clusters is None:
        return behind
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    waits = clusters.phase[clusters.of_block[warps // batch.warps_per_block]] == clusters.seen[warps]
    if not (waits & (taken != 0)).any():
        return behind
    masks = np.where(waits, taken, np.uint32(0))
    park(batch, frame, masks, index, State.CLUSTER, clusters.seen[warps], np.zeros(frame.warps, np.uint32))
    return None


def release_clusters(batch: Batch) -> None:
    """Lets go of groups whose cluster's barrier is complete: threads that have exited are waited for no more."""
    clusters, groups = batch.clusters, batch.groups
    if clusters is None:
        return
    _end_phases(batch, clusters)
    waits = groups.state == State.CLUSTER
    free = waits & (clusters.phase[clusters.of_block[groups.warp // batch.warps_per_block]] != groups.key)
    groups.pc[free] += 1
    groups.state[free] = State.RUNS


def _end_phases(batch: Batch, clusters: Clusters) -> None:
    lanes = np.bitwise_count(batch.live).reshape(batch.blocks, -1).sum(axis=1, dtype=np.int64)
    alive = np.bincount(clusters.of_block, lanes, len(clusters.phase)).astype(np.int64)
    ends = (clusters.arrived > 0) & (clusters.arrived >= alive)
    clusters.phase[ends] += 1
    clusters.arrived[ends] = 0
