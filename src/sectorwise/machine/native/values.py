"""Turns numbers of the algebra into typed LLVM operands: one a lane or one a warp, constants written out."""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from sectorwise.machine.likeness import Likeness

if TYPE_CHECKING:
    import numpy.typing as npt

LANES = 32

_SAME = Likeness()


class Kind(StrEnum):
    """Kinds of values, by their LLVM element type; a bfloat16 is a single. A predicate for each lane is an i32 mask."""

    PREDICATE = "i1"
    WORD = "i32"
    LONG = "i64"
    HALF = "half"
    SINGLE = "float"
    DOUBLE = "double"


BITS = {Kind.WORD: 32, Kind.LONG: 64, Kind.HALF: 16, Kind.SINGLE: 32, Kind.DOUBLE: 64}
FLOATS = frozenset({Kind.HALF, Kind.SINGLE, Kind.DOUBLE})

_DTYPES: dict[Kind, npt.DTypeLike] = {
    Kind.PREDICATE: np.bool_,
    Kind.WORD: np.uint32,
    Kind.LONG: np.uint64,
    Kind.HALF: np.float16,
    Kind.SINGLE: np.float32,
    Kind.DOUBLE: np.float64,
}
_KINDS = {np.dtype(dtype): kind for kind, dtype in _DTYPES.items()}


class Operand(Struct, frozen=True):
    """A value: one number a lane (`lanes`) or one for the whole warp.

    `text` is its name; a predicate a lane is named by its mask (i32), or by its booleans (<32 x i1>) if `booleans`.
    `constant` holds a value that is known now, [1, 1] or [1, 32]. What is not written yet has a `recipe` instead of a
    text: `("join", low, high)`, `("bits", single)`. `raw` marks floats whose NaNs are not the hardware's yet; doubles
    of this sort have the operands that their NaN comes from. `likeness` says how the value differs between blocks,
    where that is followed.
    """

    kind: Kind
    lanes: bool
    text: str | None = None
    constant: npt.NDArray[Any] | None = None
    recipe: tuple[Any, ...] | None = None
    booleans: bool = False
    raw: bool = False
    sources: tuple[Operand, ...] = ()
    likeness: Likeness = _SAME


def type_text(kind: Kind, *, lanes: bool) -> str:
    """LLVM type of a value; a predicate a lane is a vector of booleans here."""
    return f"<{LANES} x {kind}>" if lanes else str(kind)


def make_constant(array: npt.NDArray[Any]) -> Operand:
    """The operand for numbers that are known."""
    return Operand(_KINDS[array.dtype], array.shape[1] == LANES, constant=array)


def literal(operand: Operand, *, lanes: bool) -> str:
    """A constant operand, written as one number or as a vector."""
    assert operand.constant is not None  # noqa: S101 - narrows the type
    numbers = [_number_text(operand.kind, number) for number in operand.constant[0]]
    if not lanes:
        return numbers[0]
    if len(numbers) == 1:
        return f"splat ({operand.kind} {numbers[0]})"
    return "<" + ", ".join(f"{operand.kind} {number}" for number in numbers) + ">"


def mask_of(constant: npt.NDArray[Any]) -> int:
    """The i32 mask, signed, of a constant predicate."""
    bits = np.broadcast_to(constant[0], (LANES,))
    word = int(np.packbits(bits, bitorder="little").view("<u4")[0])
    return word - (word >> 31 << 32)


def like(operand: Operand, value: int) -> Operand:
    """A constant of an integer operand's kind."""
    return make_constant(np.full((1, 1), value % (1 << BITS[operand.kind]), _DTYPES[operand.kind]))


def is_number(operand: Operand, value: int) -> bool:
    """Whether an integer or predicate is known to be this number, in all lanes."""
    constant = operand.constant
    if constant is None or constant.shape[1] != 1:
        return False
    number = int(constant[0, 0])
    return number == value or (value < 0 and number == (1 << BITS.get(operand.kind, 1)) + value)


def _number_text(kind: Kind, number: np.generic) -> str:
    match kind:
        case Kind.PREDICATE:
            return "true" if number else "false"
        case Kind.WORD | Kind.LONG:
            return str(int(number))
        case Kind.HALF:
            return f"0xH{int(np.float16(number).view(np.uint16)):04X}"
        case Kind.SINGLE:
            return f"0x{_widen_bits(int(np.float32(number).view(np.uint32))):016X}"
        case Kind.DOUBLE:
            return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def _widen_bits(bits: int) -> int:
    """Bits of the double that LLVM writes a single as; a NaN keeps its payload."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    wide: int = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", bits))[0]))[0]
    return wide
