"""Turns the uniform registers of copies of whole ranges into numbers, one a row, and tells mbarriers what has come."""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.arrivals import Arrivals, bytes_under_way
from sectorwise.machine.doubts import way_of
from sectorwise.machine.frame import of_group
from sectorwise.machine.lanes import first_lane
from sectorwise.machine.mbarriers import change_words, find_words, find_words_at
from sectorwise.machine.named_registers import following
from sectorwise.machine.program import register_slot
from sectorwise.machine.taint import INEXACT, UNKNOWN, collect, join, level_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction, Register
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.registers import Window
    from sectorwise.machine.taint import Levels

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Longs = npt.NDArray[np.int64]

_CREDIT = 1
RANKS = 16
"""Blocks that a cluster has at most."""


def row_words(frame: Frame, window: Window, register: Register, step: int = 0) -> Longs:
    """The word of each row in a register, or in one `step` behind it."""
    return of_group(frame, window.read(register_slot(register) + step)).astype(np.int64)


def row_places(frame: Frame, window: Window, way: str, register: Register) -> Longs:
    """An address for each row: a word in shared memory, else a pair."""
    low = row_words(frame, window, register)
    return low if way == "S" else low | row_words(frame, window, register, 1) << 32


def doubt_places(window: Window, ways: tuple[str, ...], places: tuple[Register, ...], size: Register) -> int:
    """What is uncertain of the size and of places of these ways (`S` for a word, `G` for a pair)."""
    named = [size, *places, *(following(place) for way, place in zip(ways, places, strict=False) if way == "G")]
    return doubt_registers(window, named)


def doubt_registers(window: Window, named: Iterable[Register]) -> int:
    """What is uncertain of registers: flags of `taint`."""
    doubts = (collect(window.taints.get(register_slot(each)), None) for each in named)
    return functools.reduce(operator.or_, doubts, 0)


def note_doubt(batch: Batch, instruction: Instruction, doubt: int) -> None:
    """Says where a copy goes by estimates: what it might have written elsewhere is not known."""
    if doubt:
        said = f"{instruction.text}: what is copied where hangs on values that are estimates"
        batch.tally.limitations[instruction.index, said] = None


def judge_copied(batch: Batch, frame: Frame, level: Levels | None, doubt: int = 0) -> Levels | None:
    """How sure what is copied is: no surer than the way here, as for stores, nor than its places and size (`doubt`)."""
    way = way_of(batch, frame) | doubt
    return join(level, level_of((way & ~UNKNOWN) or INEXACT)) if way else level


def leave_sums_unknown(batch: Batch, instruction: Instruction) -> None:
    """Says that what a reduction leaves in memory is not known."""
    batch.tally.origins.setdefault(instruction.index, "sums of bulk copies are not computed")
    said = f"{instruction.opcode}: its sums are counted, not computed: what it leaves in memory is taken as unknown"
    batch.tally.limitations[instruction.index, said] = None
    batch.tally.uncomputed.add((instruction.index, said))


def complete(
    batch: Batch, frame: Frame, instruction: Instruction, issuing: Lanes, barrier: Longs | None, sizes: Longs
) -> None:
    """Tells the barrier of each row that its bytes have come."""
    if barrier is None:
        return
    lanes = issuing[:, None] & (first_lane(frame.masks)[:, None] == np.arange(32))
    cells, valid = find_words_at(batch, frame, instruction, barrier[:, None], lanes)
    transact(batch, cells, valid, -np.broadcast_to(sizes[:, None], valid.shape)[valid])


def barrier_words(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks, register: Register
) -> tuple[Longs | None, Lanes]:
    """The word of each row's mbarrier, in one lane of those that issue."""
    lanes = (taken[:, None] != 0) & (first_lane(frame.masks)[:, None] == np.arange(32))
    return find_words(batch, frame, window, instruction, register, lanes)


def transact(batch: Batch, cells: Longs, lanes: Lanes, amounts: Longs) -> None:
    """Adds bytes to what barriers wait for, or takes them away."""
    none = np.zeros_like(amounts)
    change_words(batch, cells[lanes], Arrivals(none, amounts, none))


def release(batch: Batch, frame: Frame, instruction: Instruction, issuing: Lanes, barrier: Longs) -> Longs:
    """Lets a barrier go of all bytes that it waits for, or will next wait for; what it waited for, `[rows]`."""
    lanes = issuing[:, None] & (first_lane(frame.masks)[:, None] == np.arange(32))
    cells, valid = find_words_at(batch, frame, instruction, barrier[:, None], lanes)
    words = batch.memory.shared.octets.view(np.uint64)
    waited = bytes_under_way(words[cells[valid]])
    words[cells[valid][waited == 0]] |= np.uint64(_CREDIT)
    transact(batch, cells, valid, -waited)
    rows = np.zeros(frame.warps, np.int64)
    rows[valid.any(axis=1)] = waited
    return rows
