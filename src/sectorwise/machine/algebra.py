"""Turns an opcode's meaning into about fifty lane operations that every engine provides: computed, or emitted as code.

A value is opaque. It stands for one number a lane (or one a warp, which broadcasts) and has one of these kinds:
predicate (1 bit), word (32 bits), long (64 bits), single (float32), double (float64), half (float16). A bfloat16 is
carried as the single of the same value. Integers carry no sign; the operation says how they are read.

Arithmetic on floats keeps denormals. A single or half result that is not a number is the canonical one, 0x7fffffff or
0x7fff; doubles keep an operand that is not a number, made quiet: of several b, else c, else a.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

V = TypeVar("V")


class Value:
    """One number a lane, as an opcode sees it: opcodes are written for `Port[Value]` and never look inside."""


class Rounding(StrEnum):
    """IEEE rounding directions, by the letters that SASS uses: RN nearest even, RZ zero, RM down, RP up.

    ODD (truncate, then set the last bit if anything was cut off) makes a later rounding to a shorter format exact.
    """

    NEAREST = "RN"
    ZERO = "RZ"
    DOWN = "RM"
    UP = "RP"
    ODD = "odd"


class Float(StrEnum):
    """Floating-point formats."""

    F16 = "F16"
    BF16 = "BF16"
    F32 = "F32"
    F64 = "F64"


class MatrixForm(Struct, frozen=True):
    """Formats of a tensor-core product: F16, BF16, TF32, S8, U8 or F64 in, F16, F32, S32 or F64 out."""

    a: str
    b: str
    accumulator: str
    saturates: bool = False


class Algebra(Protocol[V]):
    """Lane operations on opaque values; integer operands of one call have the same size."""

    # Constants.
    def word(self, value: int) -> V: ...
    def long(self, value: int) -> V: ...
    def predicate(self, value: bool) -> V: ...  # noqa: FBT001 - a value, not a switch
    def number(self, value: float, kind: Float) -> V: ...

    # Integers and, for the logical four, predicates.
    def add(self, a: V, b: V) -> V: ...
    def subtract(self, a: V, b: V) -> V: ...
    def multiply(self, a: V, b: V) -> V: ...
    def bit_and(self, a: V, b: V) -> V: ...
    def bit_or(self, a: V, b: V) -> V: ...
    def bit_xor(self, a: V, b: V) -> V: ...
    def invert(self, a: V) -> V: ...
    def shift_left(self, a: V, count: V) -> V:
        """Shift with zeros; a count at or above the size gives zero. `count` has the size of `a`."""
        ...

    def shift_right(self, a: V, count: V) -> V:
        """Shift with zeros; a count at or above the size gives zero."""
        ...

    def shift_right_signed(self, a: V, count: V) -> V:
        """Shift with the sign; a count at or above the size gives the sign everywhere."""
        ...

    def equal(self, a: V, b: V) -> V: ...
    def less_unsigned(self, a: V, b: V) -> V: ...
    def less_signed(self, a: V, b: V) -> V: ...
    def select(self, condition: V, a: V, b: V) -> V:
        """`a` where the predicate holds, else `b`; any kind."""
        ...

    def extend_zero(self, a: V) -> V:
        """Word to long."""
        ...

    def extend_sign(self, a: V) -> V:
        """Word to long."""
        ...

    def low(self, a: V) -> V:
        """Low word of a long."""
        ...

    def high(self, a: V) -> V:
        """High word of a long."""
        ...

    def join(self, low: V, high: V) -> V:
        """Long from two words."""
        ...

    def multiply_wide(self, a: V, b: V, *, signed: bool) -> V:
        """Long product of two words."""
        ...

    def multiply_high_unsigned(self, a: V, b: V) -> V:
        """High half of the product; words and longs."""
        ...

    def multiply_high_signed(self, a: V, b: V) -> V: ...
    def population_count(self, a: V) -> V: ...
    def leading_zeros(self, a: V) -> V:
        """Number of leading zero bits of a word, 32 for zero."""
        ...

    def reverse_bits(self, a: V) -> V: ...
    def from_predicate(self, a: V) -> V:
        """Word 1 or 0."""
        ...

    # Floats: `view` reinterprets bits; words hold F16 and BF16 in their low 16 bits (what is above is ignored).
    def view_float(self, bits: V, kind: Float) -> V: ...
    def view_bits(self, value: V) -> V:
        """Bits of a float: word for F32 (a bfloat16's are its upper 16), long for F64, word with 16 bits for F16."""
        ...

    def float_add(self, a: V, b: V, rounding: Rounding) -> V: ...
    def float_multiply(self, a: V, b: V, rounding: Rounding, *, flush: bool = False) -> V:
        """The product of singles, doubles or halves.

        With `flush` a single that is tiny after rounding becomes zero of its sign (tiny as IEEE 754, 7.5 has it: by
        what rounding gives if exponents had no end).
        """
        ...

    def float_fma(self, a: V, b: V, c: V, rounding: Rounding, *, flush: bool = False) -> V:
        """The value of a * b + c, rounded once; `flush` as for products."""
        ...

    def float_less(self, a: V, b: V) -> V:
        """False where either is NaN."""
        ...

    def float_equal(self, a: V, b: V) -> V:
        """False where either is NaN."""
        ...

    def is_nan(self, a: V) -> V: ...
    def flush_denormals(self, a: V) -> V:
        """Denormals become zero of the same sign."""
        ...

    def convert_float(self, a: V, kind: Float, rounding: Rounding) -> V:
        """To another format; to BF16 rounds a single to a bfloat16's precision."""
        ...

    def float_from_integer(self, a: V, kind: Float, rounding: Rounding, *, signed: bool) -> V:
        """Word or long to a float."""
        ...

    def integer_from_float(self, a: V, bits: int, rounding: Rounding, *, signed: bool) -> V:
        """Float to an integer of 32 or 64 bits, saturating; NaN gives zero (the opcode mends what differs)."""
        ...

    def round_integral(self, a: V, rounding: Rounding) -> V:
        """Float to the nearest integral float."""
        ...

    def approximate(self, function: str, a: V) -> V:
        """MUFU functions on F32 or F64 by the library's best value: RCP, RSQ, SQRT, SIN, COS, EX2, LG2, TANH."""
        ...

    def multiply_matrices(self, a: Sequence[V], b: Sequence[V], c: Sequence[V], form: MatrixForm) -> Sequence[V]:
        """Words of the product of two matrices plus a third, each spread over the warp as `mma` has it."""
        ...

    # Lanes.
    def lane(self) -> V:
        """Word: the lane's index, 0 to 31."""
        ...

    def permute(self, a: V, source_lane: V) -> V:
        """The value of `a` in another lane of the warp; `source_lane` in 0 to 31."""
        ...

    def ballot(self, a: V) -> V:
        """Word, one a warp: bit i is lane i's predicate."""
        ...

    def first_active(self, a: V, active: V) -> V:
        """One a warp: `a` in the lowest lane where the predicate holds; lane 0's where it holds nowhere."""
        ...
