"""Turns a grid into clusters of blocks: who is whose peer, and what their barriers know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch

    Numbers = npt.NDArray[np.int64]


class Clusters(Struct):
    """The clusters of a batch: `of_block` and `rank` [blocks], `peers` [clusters, size] blocks by rank.

    Of their barriers: `arrived` [clusters] lanes that have come in this phase, `phase` [clusters], and `seen` [warps]:
    the phase that a warp last arrived in.
    """

    of_block: Numbers
    rank: Numbers
    peers: Numbers
    arrived: Numbers
    phase: Numbers
    seen: Numbers


def find_shape(bound: BoundLaunch) -> tuple[int, int, int] | None:
    """Blocks of a cluster along x, y and z; None for kernels that do not ask for clusters of several blocks."""
    shape = bound.kernel.resources.cluster
    return None if shape is None or shape == (1, 1, 1) else shape


def count_inseparable(bound: BoundLaunch) -> int:
    """So many neighbouring blocks, in linear order, are whole clusters."""
    shape, grid = find_shape(bound), bound.launch.grid
    if shape is None:
        return 1
    if shape[2] > 1:
        return grid[0] * grid[1] * shape[2]
    return grid[0] * shape[1] if shape[1] > 1 else shape[0]


def find_places(bound: BoundLaunch, linear: Numbers) -> tuple[Numbers, Numbers]:
    """Cluster and rank in it, of blocks by their linear index."""
    shape, grid = find_shape(bound) or (1, 1, 1), bound.launch.grid
    places = (linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1]))
    cluster, rank = np.zeros_like(linear), np.zeros_like(linear)
    for axis in (2, 1, 0):
        cluster = cluster * (grid[axis] // shape[axis]) + places[axis] // shape[axis]
        rank = rank * shape[axis] + places[axis] % shape[axis]
    return cluster, rank


def open_clusters(bound: BoundLaunch, blocks: Numbers, warps: int) -> Clusters | None:
    """The clusters of a batch of whole ones, by the numbers of its blocks; none of its threads has arrived anywhere."""
    shape = find_shape(bound)
    if shape is None:
        return None
    cluster, rank = find_places(bound, blocks)
    names, of_block = np.unique(cluster, return_inverse=True)
    size = shape[0] * shape[1] * shape[2]
    peers = np.zeros((len(names), size), np.int64)
    peers[of_block, rank] = np.arange(len(blocks))
    none = np.zeros(len(names), np.int64)
    return Clusters(of_block, rank, peers, none, none.copy(), np.full(warps, -1, np.int64))
