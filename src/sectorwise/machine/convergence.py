"""Turns branches and convergence instructions into groups: the lanes of a warp that issue together.

A group is one row of parallel arrays. Lanes part at a divergent branch and meet again only where a convergence
instruction says so, never because their places happen to be equal; so each issue of a group is one request.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

    Masks = npt.NDArray[np.uint32]
    Indices = npt.NDArray[np.intp]


class State(IntEnum):
    """What a group does."""

    RUNS = 0
    MEETS = 1
    """Waits for the lanes in `awaited`, at BSYNC or WARPSYNC."""
    BARRIER = 2
    """Waits at the block barrier whose number is in `key`."""
    SPINS = 3
    """Repeats a loop that changes nothing: waits until something changes memory."""
    CLUSTER = 4
    """Waits for all threads of its cluster, in the phase that is in `key`."""


class Groups(Struct):
    """All groups of a batch, in order of their warps.

    `warp` the warp in the batch, `mask` its lanes, `pc` the instruction that it is at, `state` a `State`, `key` the
    barrier register (or 16 for WARPSYNC, 17 for its collective form) or block barrier that it waits at, `awaited` the
    lanes that it waits for, `ran` when it was last chosen.
    """

    warp: Indices
    mask: Masks
    pc: npt.NDArray[np.int64]
    state: npt.NDArray[np.int8]
    key: npt.NDArray[np.int64]
    awaited: Masks
    ran: npt.NDArray[np.int64]


WARPSYNC_KEY = 16
COLLECTIVE_KEY = 17


def start_groups(masks: Masks) -> Groups:
    """One group for each warp, at the first instruction."""
    count = len(masks)
    return Groups(
        np.arange(count),
        masks.copy(),
        np.zeros(count, np.int64),
        np.zeros(count, np.int8),
        np.zeros(count, np.int64),
        np.zeros(count, np.uint32),
        np.zeros(count, np.int64),
    )


def select(groups: Groups, chosen: npt.NDArray[np.bool_] | Indices) -> Groups:
    """Some of the groups."""
    return Groups(
        groups.warp[chosen],
        groups.mask[chosen],
        groups.pc[chosen],
        groups.state[chosen],
        groups.key[chosen],
        groups.awaited[chosen],
        groups.ran[chosen],
    )


def unite(parts: list[Groups]) -> Groups:
    """All groups of the parts, in order of their warps."""
    warp = np.concatenate([part.warp for part in parts])
    order = np.argsort(warp, kind="stable")
    return Groups(
        warp[order],
        np.concatenate([part.mask for part in parts])[order],
        np.concatenate([part.pc for part in parts])[order],
        np.concatenate([part.state for part in parts])[order],
        np.concatenate([part.key for part in parts])[order],
        np.concatenate([part.awaited for part in parts])[order],
        np.concatenate([part.ran for part in parts])[order],
    )


def send(groups: Groups, chosen: Indices, masks: Masks, pcs: npt.NDArray[np.int64]) -> Groups:
    """Lanes `masks` of the chosen groups go to `pcs`; what is left of a group stays where it is; empty ones end.

    `chosen`, `masks` and `pcs` are parallel; a group may occur more than once.
    """
    goes = np.flatnonzero(masks)
    moved = select(groups, chosen[goes])
    moved.mask, moved.pc = masks[goes], np.broadcast_to(pcs, masks.shape)[goes].copy()
    moved.state = np.zeros(len(goes), np.int8)
    left = groups.mask.copy()
    np.bitwise_and.at(left, chosen, ~masks)
    stays = Groups(groups.warp, left, groups.pc, groups.state, groups.key, groups.awaited, groups.ran)
    return unite([select(stays, left != 0), moved])


def meet(groups: Groups, live: Masks) -> Groups:
    """Joins groups whose awaited lanes have all arrived; they go on as one, behind where they waited.

    `live` are the lanes of each warp that have not exited: no one waits for the others.
    """
    waiting = np.flatnonzero(groups.state == State.MEETS)
    if not waiting.size:
        return groups
    warp, key = groups.warp[waiting], groups.key[waiting]
    awaited = groups.awaited[waiting] & live[warp]
    order = np.lexsort((groups.pc[waiting], awaited, key, warp))
    warp, key, awaited, at = warp[order], key[order], awaited[order], waiting[order]
    changes = (warp[1:] != warp[:-1]) | (key[1:] != key[:-1]) | (awaited[1:] != awaited[:-1])
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    arrived = np.bitwise_or.reduceat(groups.mask[at], starts)
    # Lanes that are here without being awaited do not hold the others up.
    complete = (awaited[starts] & ~arrived) == 0
    if not complete.any():
        return groups
    lengths = np.diff(np.append(starts, len(at)))
    released = at[np.repeat(complete, lengths)]
    joined = _join_same_place(select(groups, released))
    rest = np.ones(len(groups.warp), np.bool_)
    rest[released] = False
    return unite([select(groups, rest), joined])


def yield_waiting(groups: Groups) -> Groups | None:
    """Lets lanes go on that wait at a BSYNC for lanes that wait themselves; None where no one does so.

    BSYNC gathers lanes where it can and holds no one for ever: an H200 lets them go once all lanes of their warp are
    blocked. Code that jumps into and out of loops leaves barriers behind without a BREAK and relies on this. Of each
    warp, those at the first such place go.
    """
    waits = np.flatnonzero((groups.state == State.MEETS) & (groups.key < WARPSYNC_KEY))
    if not waits.size:
        return None
    first: npt.NDArray[np.int64] = np.full(int(groups.warp.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, groups.warp[waits], groups.pc[waits])
    released = waits[groups.pc[waits] == first[groups.warp[waits]]]
    rest = np.ones(len(groups.warp), np.bool_)
    rest[released] = False
    return unite([select(groups, rest), _join_same_place(select(groups, released))])


def _join_same_place(released: Groups) -> Groups:
    """One group for each warp, barrier and place among groups that were let go; a collective has but one place."""
    order = np.lexsort((released.pc, released.awaited, released.key, released.warp))
    sorted_groups = select(released, order)
    same = (
        (sorted_groups.warp[1:] == sorted_groups.warp[:-1])
        & (sorted_groups.key[1:] == sorted_groups.key[:-1])
        & (sorted_groups.awaited[1:] == sorted_groups.awaited[:-1])
        & ((sorted_groups.pc[1:] == sorted_groups.pc[:-1]) | (sorted_groups.key[1:] == COLLECTIVE_KEY))
    )
    starts = np.flatnonzero(np.concatenate([[True], ~same]))
    joined = select(sorted_groups, starts)
    joined.mask = np.bitwise_or.reduceat(sorted_groups.mask, starts)
    joined.pc = joined.pc + 1
    joined.state = np.zeros(len(starts), np.int8)
    return joined


def release_barriers(groups: Groups, live: Masks, warps_per_block: int, arrived: npt.NDArray[np.int64]) -> Groups:
    """Lets go the blocks whose barrier is complete; returns new groups.

    A barrier without a thread count waits for every lane of the block that has not exited; one with a count (in
    `awaited`) for that many threads, whole warps, those that arrived without waiting included (`arrived`
    int64 [blocks, 16], which is reduced for the barriers that complete).
    """
    waiting = np.flatnonzero(groups.state == State.BARRIER)
    if not waiting.size:
        return groups
    blocks = len(live) // warps_per_block
    block = groups.warp[waiting] // warps_per_block
    place = block * 16 + groups.key[waiting]
    present = np.bincount(place, np.bitwise_count(groups.mask[waiting]), blocks * 16).astype(np.int64)
    needed = np.repeat(np.bitwise_count(live.reshape(blocks, warps_per_block)).sum(axis=1, dtype=np.int64), 16)
    counted = np.zeros(blocks * 16, np.int64)
    np.maximum.at(counted, place, groups.awaited[waiting].astype(np.int64))
    whole = _count_whole_warps(groups, waiting, live, warps_per_block, blocks) * 32 + arrived.reshape(-1)
    complete = np.where(counted > 0, whole >= counted, present + arrived.reshape(-1) >= needed)
    let_go = waiting[complete[place]]
    if not let_go.size:
        return groups
    arrived.reshape(-1)[place[complete[place]]] = 0
    pc, state = groups.pc.copy(), groups.state.copy()
    pc[let_go] += 1
    state[let_go] = State.RUNS
    return Groups(groups.warp, groups.mask, pc, state, groups.key, groups.awaited, groups.ran)


def _count_whole_warps(
    groups: Groups, waiting: Indices, live: Masks, warps_per_block: int, blocks: int
) -> npt.NDArray[np.int64]:
    """Warps, by block and barrier, all of whose live lanes wait there."""
    spot = groups.warp[waiting] * 16 + groups.key[waiting]
    lanes = np.bincount(spot, np.bitwise_count(groups.mask[waiting]), len(live) * 16).astype(np.int64)
    alive = np.repeat(np.bitwise_count(live).astype(np.int64), 16)
    whole = (lanes == alive) & (lanes > 0)
    counts: npt.NDArray[np.int64] = whole.reshape(blocks, warps_per_block, 16).sum(axis=1, dtype=np.int64)
    return counts.reshape(-1)
