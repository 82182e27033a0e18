"""Turns BSSY, BREAK, BMOV and the block barriers into changes of who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    ConvergenceBarrier,
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
    Target,
)
from sectorwise.machine.convergence import State
from sectorwise.machine.frame import Frame, live_lanes, of_group, park
from sectorwise.machine.lanes import pack, unpack
from sectorwise.machine.program import predicate_slot, register_slot
from sectorwise.machine.registers import BARRIER

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.batch import Batch
    from sectorwise.machine.registers import Window

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]


def run_inline_control(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, lanes: Lanes | None, mask: Lanes | None
) -> None:
    """Runs an instruction that changes convergence state, behind which all lanes go on.

    `lanes` are those that execute it (None: all 32 of each row), `mask` those whose registers it writes.
    """
    match instruction.opcode:
        case "BSSY":
            masks = frame.masks if lanes is None else pack(np.broadcast_to(lanes, (frame.warps, 32)), frame.warps)
            window.write(_barrier_slot(instruction), masks[:, None], mask)
        case "BREAK":
            _break(batch, frame, window, instruction, lanes)
        case "BMOV":
            _move_barrier(window, instruction, mask)
        case "B2R":
            _read_votes(batch, frame, window, instruction, mask)
        case "LEPC":
            _load_place(window, instruction, mask)
        case _:
            pass


def _barrier_slot(instruction: Instruction) -> int:
    return next(BARRIER + operand.index for operand in instruction.operands if isinstance(operand, ConvergenceBarrier))


def _break(batch: Batch, frame: Frame, window: Window, instruction: Instruction, lanes: Lanes | None) -> None:
    """Takes lanes out of a barrier: those that wait there wait for them no more."""
    slot = _barrier_slot(instruction)
    leaving = frame.masks if lanes is None else pack(np.broadcast_to(lanes, (frame.warps, 32)), frame.warps)
    # The leaving lanes' own register names the barrier's lanes; all of these learn of it.
    members = of_group(frame, window.read(slot)).astype(np.uint32)
    touched = unpack(np.where(leaving != 0, members, np.uint32(0)))
    old = np.broadcast_to(window.read(slot), (frame.warps, 32)).astype(np.uint32)
    window.write(slot, old & ~leaving[:, None], touched)
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    gone = np.zeros(len(batch.live), np.uint32)
    gone[warps] = leaving
    member_of = np.zeros(len(batch.live), np.uint32)
    member_of[warps] = members
    groups = batch.groups
    waits = (groups.state == State.MEETS) & (groups.key == slot - BARRIER)
    waits &= (groups.mask & member_of[groups.warp]) != 0
    groups.awaited[waits] &= ~gone[groups.warp[waits]]
    batch.unsettled = True


def _move_barrier(window: Window, instruction: Instruction, mask: Lanes | None) -> None:
    """BMOV.32[.CLEAR] R, B saves a barrier register, BMOV.32 B, R restores it."""
    target, source = instruction.operands[0], instruction.operands[-1]
    if isinstance(target, ConvergenceBarrier):
        if isinstance(source, Register):
            value = np.zeros((1, 1), np.uint32) if source.index == ZERO_REGISTER else window.read(register_slot(source))
            window.write(BARRIER + target.index, value, mask)
    elif isinstance(source, ConvergenceBarrier):
        slot = BARRIER + source.index
        if isinstance(target, Register) and target.index != ZERO_REGISTER:
            window.write(register_slot(target), window.read(slot), mask)
        if instruction.has("CLEAR"):
            window.write(slot, np.zeros((1, 1), np.uint32), mask)


def _load_place(window: Window, instruction: Instruction, mask: Lanes | None) -> None:
    """LEPC R, target: the address of a place in the code, here its offset."""
    register = next(operand for operand in instruction.operands if isinstance(operand, Register))
    offset = next((operand.offset for operand in instruction.operands if isinstance(operand, Target)), None)
    place = instruction.offset if offset is None else offset
    if register.index != ZERO_REGISTER:
        window.write(register_slot(register), np.full((1, 1), place, np.uint32), mask)
        window.write(register_slot(register) + 1, np.zeros((1, 1), np.uint32), mask)


def arrive_at_barrier(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int | None:
    """BAR.SYNC, BAR.RED and BAR.ARV: groups wait for their block, or are counted and go on."""
    behind = instruction.index + 1
    operands = [o for o in instruction.operands if not isinstance(o, Predicate)]
    number = _numbers(frame, window, operands[0]) & 15 if operands else np.zeros(frame.warps, np.int64)
    count = _numbers(frame, window, operands[1]) if len(operands) > 1 else np.zeros(frame.warps, np.int64)
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    if instruction.has("RED"):
        _gather_votes(batch, frame, window, instruction, taken, number)
    if instruction.has("ARV"):
        threads = np.where((taken != 0) & (taken == live_lanes(batch, frame)), 32, 0)
        np.add.at(batch.arrived, (warps // batch.warps_per_block, number), threads)
        batch.unsettled = True
        if not (batch.groups.state == State.BARRIER).any():
            return behind
        batch.groups.pc[frame.chosen] = behind
        return None
    if not count.any() and _everyone_is_here(batch, frame, taken, number):
        return behind
    park(batch, frame, taken, instruction.index, State.BARRIER, number, count.astype(np.uint32))
    return None


def _everyone_is_here(batch: Batch, frame: Frame, taken: Masks, number: npt.NDArray[np.int64]) -> bool:
    """Whether all lanes alive in the batch arrive at one barrier at once: then nobody needs to wait."""
    return bool(
        frame.rows is None and (taken == batch.live).all() and (number == number[0]).all() and not batch.arrived.any()
    )


def _numbers(frame: Frame, window: Window, operand: Operand) -> npt.NDArray[np.int64]:
    match operand:
        case Immediate():
            return np.full(frame.warps, operand.value, np.int64)
        case Register() if operand.index != ZERO_REGISTER:
            return of_group(frame, window.read(register_slot(operand))).astype(np.int64)
        case _:
            return np.zeros(frame.warps, np.int64)


# Last axis of `Batch.votes`: lanes that said yes, and lanes asked, since the barrier was last complete.
_YES, _ASKED = 0, 1


def _gather_votes(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks, number: npt.NDArray[np.int64]
) -> None:
    """BAR.RED: adds these lanes' votes; the first of a new vote starts from nothing."""
    question = next((o for o in reversed(instruction.operands) if isinstance(o, Predicate)), None)
    yes = taken
    if question is not None and question.index == TRUE_PREDICATE:
        yes = np.zeros_like(taken) if question.negate else taken
    elif question is not None:
        lanes = pack(window.read_predicate(predicate_slot(question)), frame.warps)
        yes = taken & (~lanes if question.negate else lanes)
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    blocks = warps // batch.warps_per_block
    waiting = batch.groups.state == State.BARRIER
    waits = np.zeros((batch.blocks, 16), np.bool_)
    waits[batch.groups.warp[waiting] // batch.warps_per_block, batch.groups.key[waiting]] = True
    fresh = (taken != 0) & ~waits[blocks, number]
    batch.votes[blocks[fresh], number[fresh]] = 0
    np.add.at(batch.votes, (blocks, number, np.full(frame.warps, _YES)), np.bitwise_count(yes).astype(np.int64))
    np.add.at(batch.votes, (blocks, number, np.full(frame.warps, _ASKED)), np.bitwise_count(taken).astype(np.int64))
    yes_count, asked = batch.votes[blocks, number, _YES], batch.votes[blocks, number, _ASKED]
    if instruction.has("POPC"):
        result = yes_count
    elif instruction.has("AND"):
        result = (yes_count == asked).astype(np.int64)
    else:
        result = (yes_count > 0).astype(np.int64)
    batch.last_vote[blocks[taken != 0]] = result[taken != 0]


def _read_votes(batch: Batch, frame: Frame, window: Window, instruction: Instruction, mask: Lanes | None) -> None:
    """B2R.RESULT [R], [P]: what the block's last BAR.RED gave."""
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    result = batch.last_vote[warps // batch.warps_per_block][:, None]
    for operand in instruction.operands:
        match operand:
            case Register() if operand.index != ZERO_REGISTER:
                window.write(register_slot(operand), result.astype(np.uint32), mask)
            case Predicate() if operand.index != TRUE_PREDICATE:
                window.write(predicate_slot(operand), result != 0, mask)
            case _:
                pass
