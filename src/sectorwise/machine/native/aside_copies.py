"""Turns copies that can do nothing wrong into counts at once: the most frequent form of asides, and the simplest."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.pieces import UNIT_BYTES
from sectorwise.counting.request import Space
from sectorwise.machine import bulk_copies, tile_copies
from sectorwise.machine.arrivals import WITH_TRANSACTIONS, Arrivals, advance
from sectorwise.machine.bulk_sums import can_reduce, find_kind
from sectorwise.machine.copy_counts import find_copy_counter
from sectorwise.machine.copy_sums import add_moved, note_landings
from sectorwise.machine.mbarriers import BARRIER_BYTES
from sectorwise.machine.native.aside_extents import look
from sectorwise.machine.native.desk import find_map, read_word
from sectorwise.machine.tile_pieces import measure_tile

if TYPE_CHECKING:
    from sectorwise.machine.copy_sums import Moved
    from sectorwise.machine.native.desk import Desk, Task

_SIGN = 1 << 31
"""To read a word as a signed number."""


def copy_at_once(desk: Desk, task: Task, warp: int, lane: int) -> bool:
    """Counts a copy by the registers of a lane, and tells its barrier; False: the reference engine's way is to be gone.

    Notes where copies are whose places move between blocks.
    """
    return (_copy_tile if task.aside.address is None else _copy_range)(desk, task, warp, lane)


def _copy_tile(desk: Desk, task: Task, warp: int, lane: int) -> bool:
    aside, instruction, memory = task.aside, task.step.instruction, desk.batch.memory
    low, high, *coordinates = (
        read_word(desk, warp, lane, slot) for slot in (aside.tensor_map, aside.tensor_map + 1, *aside.corner)
    )
    where, corner = low | high << 32, tuple((each ^ _SIGN) - _SIGN for each in coordinates)
    tensor = find_map(desk, where)
    if tensor is None or len(tensor.shape) != len(corner) or not tile_copies.is_followed(instruction):
        return False
    if task.moves:
        look(desk.sights, instruction.index, where, tensor, corner)
    place = 0 if aside.place is None else read_word(desk, warp, lane, aside.place)
    is_store = aside.stores is Space.GLOBAL
    sound = aside.place is None or tile_copies.lies_well(memory, tensor, place, corner[0])
    if is_store:
        sums = instruction.opcode != "UTMAREDG" or can_reduce(instruction, tensor.kind)
        sound = sound and min(corner) >= 0 and sums
    if not sound or not _tell(desk, task, (warp, lane), tensor.tile_bytes):
        return False
    loads, targets = instruction.opcode == "UTMALDG", int(aside.place is not None)
    moved = measure_tile(tensor, corner, place, targets, loads=loads, spread=False)
    _count(desk, task, (warp, lane), moved, tensor.landing_bytes)
    return True


def _copy_range(desk: Desk, task: Task, warp: int, lane: int) -> bool:
    aside, instruction, memory = task.aside, task.step.instruction, desk.batch.memory
    assert aside.address is not None  # noqa: S101 - narrows the type
    low, high, units = (read_word(desk, warp, lane, slot) for slot in (aside.address, aside.address + 1, aside.size))
    there, size = low | high << 32, (units & bulk_copies.SIZE_UNITS) * UNIT_BYTES
    if task.moves:
        look(desk.sights, instruction.index, 0, None, (there, there + size, low))
    if aside.place is None:
        return False
    here = read_word(desk, warp, lane, aside.place)
    sums = instruction.opcode != "UBLKRED" or can_reduce(instruction, find_kind(instruction))
    sound = sums and bulk_copies.lies_well(memory, there, here, size)
    if not sound or not _tell(desk, task, (warp, lane), size):
        return False
    _count(desk, task, (warp, lane), bulk_copies.measure_range(there, here, size, 1), size)
    return True


def _count(desk: Desk, task: Task, at: tuple[int, int], moved: Moved, landing_bytes: int) -> None:
    """Adds what a copy moves; loads fill a place in shared memory, and a barrier is told."""
    aside = task.aside
    counter = find_copy_counter(desk.batch.tally, task.step.instruction)
    add_moved(counter, moved)
    if aside.barrier is not None and aside.place is not None:
        start, barrier = (read_word(desk, *at, slot) for slot in (aside.place, aside.barrier))
        note_landings(counter, [start], landing_bytes, [barrier])


def _tell(desk: Desk, task: Task, at: tuple[int, int], size_bytes: int) -> bool:
    """Tells the barrier of a load, if it is one, that its bytes have come; False where there is no such barrier."""
    if task.aside.barrier is None:
        return True
    place = read_word(desk, *at, task.aside.barrier)
    if place % BARRIER_BYTES or place > desk.batch.memory.bound.shared_bytes - BARRIER_BYTES:
        return False
    cell = place // BARRIER_BYTES
    desk.words[cell] = _transact(desk.words[cell], -size_bytes)
    return True


@lru_cache(4096)
def _transact(word: int, amount: int) -> int:
    """The next word of a barrier."""
    none = np.zeros(1, np.int64)
    given = Arrivals(none, np.array([amount]), none)
    return int(advance(np.array([word], np.uint64), given, WITH_TRANSACTIONS)[0])
