"""Turns what nothing has stored to into doubt about what is read of it: shared and local memory begin as anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import ZERO_REGISTER, Address, Register
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.registers import STACK_POINTER
from sectorwise.machine.storage import everywhere
from sectorwise.machine.taint import INEXACT, KNOWN

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.counting.request import Access
    from sectorwise.machine.storage import Lanes, Piece
    from sectorwise.machine.taint import Levels

_SPACES = frozenset({Space.SHARED, Space.LOCAL, Space.GENERIC})
_READING = frozenset({Operation.LOAD, Operation.MATRIX_LOAD, Operation.ATOMIC})


def may_read_unwritten(instruction: Instruction, access: Access) -> bool:
    """Whether a load is worth asking. What the compiler places by the stack pointer alone it writes before it reads.

    Atomics are asked where a register keeps what they found; an exchange is not, as what it leaves there is its own.
    """
    if access.operation not in _READING or access.space not in _SPACES:
        return False
    if access.operation is Operation.ATOMIC and ("EXCH" in access.modifiers or not _keeps_result(instruction)):
        return False
    if access.space is not Space.LOCAL:
        return True
    places = [operand for operand in instruction.operands if isinstance(operand, Address)]
    return any(not _is_stack(place) for place in places)


def _keeps_result(instruction: Instruction) -> bool:
    """Whether an atomic gives what it found to a register."""
    first = next((operand for operand in instruction.operands if isinstance(operand, Register)), None)
    return first is not None and first.index != ZERO_REGISTER


def _is_stack(place: Address) -> bool:
    base = place.base
    return isinstance(base, Register) and base.index == STACK_POINTER and place.uniform is None


def ask_written(
    instruction: Instruction,
    access: Access,
    pieces: tuple[Piece, ...],
    width_bytes: int,
    active: Lanes | None,
    warps: int,
) -> Levels | None:
    """How sure what an instruction reads there is, where that is worth asking; None where it is sure."""
    asked = may_read_unwritten(instruction, access)
    return judge_unwritten(pieces, width_bytes, active, warps) if asked else None


def judge_unwritten(pieces: tuple[Piece, ...], width_bytes: int, active: Lanes | None, warps: int) -> Levels | None:
    """How sure what active lanes read is: of bytes that nothing has stored to not at all; None where there are none."""
    found: Lanes | None = None
    for piece in pieces:
        written = piece.storage.written
        if written is None:
            continue
        span = min(width_bytes, 4)
        cells = written.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[span])
        whole = cells.dtype.type(((1 << 8 * span) - 1) & 0x01010101)
        first = piece.index // span
        open_lanes = np.zeros((1, 1), np.bool_)
        for k in range(max(1, width_bytes >> 2)):
            open_lanes = open_lanes | (cells.take(first + k * (piece.stride_bytes // span)) != whole)
        if not open_lanes.any():
            continue
        lanes = np.broadcast_to(open_lanes, (warps, 32)) & everywhere(active, piece.where, warps)
        if lanes.any():
            found = lanes if found is None else found | lanes
    return None if found is None else np.where(found, np.uint8(INEXACT), np.uint8(KNOWN))
