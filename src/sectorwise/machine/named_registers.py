"""Turns instructions on barriers and whole ranges of memory into the registers that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.binary.ir import ZERO_REGISTER, Address, Register

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction

FIRST_CORNER: Final = {"UTMALDG": 2, "UTMAPF": 0}
"""Registers before those of a tile's corner: 1 where that is a place in shared memory alone."""


def name_places(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that name target and source."""
    named = [operand.base or operand.uniform for operand in instruction.operands if isinstance(operand, Address)]
    return tuple(register for register in named if register is not None)


def following(register: Register) -> Register:
    """The register behind a target in shared memory: its mbarrier."""
    return Register(register.index + 1, register.uniform)


def last_register(instruction: Instruction) -> Register:
    """The last register that an instruction names; RZ where there is none."""
    none = Register(ZERO_REGISTER)
    return next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), none)


def count_axes(instruction: Instruction) -> int:
    """How many coordinates the corner of a tile has; 0 where the instruction does not say so."""
    return next((int(name[0]) for name in instruction.modifiers if name.endswith("D") and name[:-1].isdigit()), 0)
