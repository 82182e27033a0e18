"""Turns groups that issue the same instruction into one frame, and what happens to their lanes back into groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from sectorwise.machine.convergence import Groups, State, select, send
from sectorwise.machine.lanes import first_lane

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.batch import Batch

    Masks = npt.NDArray[np.uint32]
    Places = npt.NDArray[np.int64]


class Frame(Struct, frozen=True):
    """Groups at one place, at most one for each warp, as rows of a register window.

    `rows` are the warps of the window (None: all of the batch, in order), `masks` uint32 [rows] the lanes of each that
    issue: none in rows without a group. `chosen` index the batch's groups, `at` gives the row of each.
    `group` bool [rows, 32] are the lanes of `masks` (None: all 32 everywhere); `mask` those whose registers an
    unguarded instruction writes (None where no other lane is alive). `next_pc` is the least place of any group that
    could run but is not in the frame. `issuing` counts the groups, `lanes` their lanes.
    """

    chosen: npt.NDArray[np.intp]
    at: npt.NDArray[np.intp]
    rows: npt.NDArray[np.intp] | None
    masks: Masks
    group: npt.NDArray[np.bool_] | None
    mask: npt.NDArray[np.bool_] | None
    pc: int
    next_pc: int
    issuing: int
    lanes: int

    @property
    def warps(self) -> int:
        """Number of rows."""
        return len(self.masks)


def of_group(frame: Frame, value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """One number a row, `[rows]`: that of the first lane that issues."""
    full = np.broadcast_to(value, (frame.warps, value.shape[1]))
    if value.shape[1] == 1:
        return full[:, 0]
    return full[np.arange(frame.warps), first_lane(frame.masks)]


def live_lanes(batch: Batch, frame: Frame) -> Masks:
    """Lanes of each row's warp that have not exited."""
    return batch.live if frame.rows is None else batch.live[frame.rows]


def move(batch: Batch, frame: Frame, masks: list[Masks], places: list[Places | int]) -> None:
    """Sends lanes (`masks`, one entry a row, each) to places; what is in none of the masks stays."""
    count = len(frame.chosen)
    chosen = np.tile(frame.chosen, len(masks))
    goes = np.concatenate([mask[frame.at] for mask in masks])
    to = np.concatenate(
        [np.full(count, place) if isinstance(place, int) else place[frame.at] for place in places]
    ).astype(np.int64)
    batch.groups = send(batch.groups, chosen, goes, to)


def end(batch: Batch, frame: Frame, taken: Masks, behind: int) -> None:
    """Lets lanes exit; the rest of each group goes on behind, as one."""
    warps = batch.groups.warp[frame.chosen]
    gone = taken[frame.at]
    batch.live[warps] &= ~gone
    batch.groups.mask[frame.chosen] &= ~gone
    batch.groups.pc[frame.chosen] = behind
    batch.groups = select(batch.groups, batch.groups.mask != 0)
    batch.unsettled = True


def park(batch: Batch, frame: Frame, taken: Masks, at: int, state: State, key: int | Places, awaited: Masks) -> None:
    """Makes the `taken` lanes of each group wait at `at`; the others go on behind."""
    groups: Groups = batch.groups
    waits = taken[frame.at]
    rest = groups.mask[frame.chosen] & ~waits
    some = waits != 0
    groups.pc[frame.chosen] = np.where(some, at, at + 1)
    waiting = frame.chosen[some]
    groups.state[waiting] = state
    groups.key[waiting] = key if isinstance(key, int) else key[frame.at][some]
    groups.awaited[waiting] = awaited[frame.at][some]
    parted = some & (rest != 0)
    if parted.any():
        batch.groups = send(groups, frame.chosen[parted], rest[parted], np.full(int(parted.sum()), at + 1))
    batch.unsettled = True
