"""Turns float operands, flushing, saturation and comparisons into lane operations, for every float format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Constant, FloatImmediate, Immediate, Register
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import SIGN_LONG, SIGN_WORD, float_bits, raw_word, raw_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Reader
    from sectorwise.machine.port import Port

FLOAT_COMPARISONS = (
    "F",
    "LT",
    "EQ",
    "LE",
    "GT",
    "NE",
    "GE",
    "NUM",
    "NAN",
    "LTU",
    "EQU",
    "LEU",
    "GTU",
    "NEU",
    "GEU",
    "T",
)

_ROUNDINGS = {
    "RN": Rounding.NEAREST,
    "RZ": Rounding.ZERO,
    "RM": Rounding.DOWN,
    "RP": Rounding.UP,
    "TRUNC": Rounding.ZERO,
    "FLOOR": Rounding.DOWN,
    "CEIL": Rounding.UP,
}


def rounding_of(instruction: Instruction) -> Rounding:
    """The rounding direction that an opcode's modifiers name; nearest even when none does."""
    return next((_ROUNDINGS[name] for name in instruction.modifiers if name in _ROUNDINGS), Rounding.NEAREST)


def read_single(operand: Operand, instruction: Instruction) -> Reader:
    """A reader of a float32 operand with its sign modifiers, flushed with FTZ."""
    read = _single_word(operand, instruction.encoding)
    if isinstance(operand, Register | Constant):
        read = _signed_bits(read, operand, SIGN_WORD)
    if instruction.has("FTZ"):
        return lambda port: port.algebra.flush_denormals(port.algebra.view_float(read(port), Float.F32))
    return lambda port: port.algebra.view_float(read(port), Float.F32)


def _single_word(operand: Operand, encoding: int) -> Reader:
    if isinstance(operand, FloatImmediate | Immediate):
        bits = float_bits(operand, Float.F32, encoding)
        return lambda port: port.algebra.word(bits)
    return raw_word(operand)


def read_single_bits(operand: Operand, instruction: Instruction) -> Reader:
    """A reader of a float32 operand's bits with its sign modifiers, never flushed."""
    read = _single_word(operand, instruction.encoding)
    return _signed_bits(read, operand, SIGN_WORD) if isinstance(operand, Register | Constant) else read


def _signed_bits(read: Reader, operand: Register | Constant, sign: int) -> Reader:
    if operand.absolute and operand.negate:
        return lambda port: port.algebra.bit_or(read(port), _sized(port.algebra, sign))
    if operand.absolute:
        return lambda port: port.algebra.bit_and(read(port), _sized(port.algebra, sign, inverted=True))
    if operand.negate:
        return lambda port: port.algebra.bit_xor(read(port), _sized(port.algebra, sign))
    return read


def _sized(algebra: Algebra[Value], sign: int, *, inverted: bool = False) -> Value:
    if sign == SIGN_WORD:
        return algebra.word(~sign if inverted else sign)
    return algebra.long(~sign if inverted else sign)


def read_double(operand: Operand, instruction: Instruction) -> Reader:
    """A reader of a float64 operand with its sign modifiers."""
    if isinstance(operand, FloatImmediate | Immediate):
        bits = float_bits(operand, Float.F64, instruction.encoding)
        return lambda port: port.algebra.view_float(port.algebra.long(bits), Float.F64)
    low, high = raw_words(operand, 2)

    def pair(port: Port[Value]) -> Value:
        return port.algebra.join(low(port), high(port))

    if not isinstance(operand, Register | Constant) or not (operand.negate or operand.absolute):
        return lambda port: port.algebra.view_float(pair(port), Float.F64)
    read = _signed_bits(pair, operand, SIGN_LONG)

    def run(port: Port[Value]) -> Value:
        # Sign modifiers leave a NaN's sign alone: it shows in what the NaN becomes.
        algebra = port.algebra
        raw = algebra.view_float(pair(port), Float.F64)
        return algebra.select(algebra.is_nan(raw), raw, algebra.view_float(read(port), Float.F64))

    return run


def finish_single(instruction: Instruction) -> Callable[[Algebra[Value], Value], Value]:
    """What follows an operation on singles: saturation to [0, 1] and flushing; the result is the word to write."""
    flushes, saturates = instruction.has("FTZ"), instruction.has("SAT")

    def finish(algebra: Algebra[Value], value: Value) -> Value:
        if flushes:
            value = algebra.flush_denormals(value)
        if saturates:
            value = saturate(algebra, value, Float.F32)
        return algebra.view_bits(value)

    return finish


def saturate(algebra: Algebra[Value], value: Value, kind: Float) -> Value:
    """The value clamped to [0, 1]; NaN and negative zero give zero."""
    zero, one = algebra.number(0.0, kind), algebra.number(1.0, kind)
    clamped = algebra.select(algebra.float_less(one, value), one, value)
    return algebra.select(algebra.float_less(zero, value), clamped, zero)


def drop_negative(algebra: Algebra[Value], value: Value, kind: Float) -> Value:
    """RELU: zero for what is below zero or is a negative zero; NaN stays."""
    zero = algebra.number(0.0, kind)
    keeps = algebra.bit_or(algebra.float_less(zero, value), algebra.is_nan(value))
    return algebra.select(keeps, value, zero)


def compare_floats(algebra: Algebra[Value], comparison: str, a: Value, b: Value) -> Value:
    """The sixteen comparisons; those that end in U also hold where either is NaN."""
    match comparison:
        case "F" | "T":
            return algebra.predicate(comparison == "T")
        case "LT":
            return algebra.float_less(a, b)
        case "GT":
            return algebra.float_less(b, a)
        case "EQ":
            return algebra.float_equal(a, b)
        case "NEU":
            return algebra.invert(algebra.float_equal(a, b))
        case "GEU":
            return algebra.invert(algebra.float_less(a, b))
        case "LEU":
            return algebra.invert(algebra.float_less(b, a))
        case "LE":
            return algebra.bit_or(algebra.float_less(a, b), algebra.float_equal(a, b))
        case "GE":
            return algebra.bit_or(algebra.float_less(b, a), algebra.float_equal(a, b))
        case "NE":
            return algebra.bit_or(algebra.float_less(a, b), algebra.float_less(b, a))
        case "NUM":
            return algebra.invert(compare_floats(algebra, "NAN", a, b))
        case "NAN":
            return algebra.bit_or(algebra.is_nan(a), algebra.is_nan(b))
        case _:
            opposite = {"LTU": "GE", "GTU": "LE", "EQU": "NE"}[comparison]
            return algebra.invert(compare_floats(algebra, opposite, a, b))


def extreme_bits(algebra: Algebra[Value], a: Value, b: Value, minimum: Value) -> Value:
    """Bits of the smaller float where `minimum` holds, else of the larger; a NaN loses, -0 is below +0."""
    bits_a, bits_b = algebra.view_bits(a), algebra.view_bits(b)
    # Equal floats differ in nothing but the sign of a zero: a minimum keeps either's, a maximum both's.
    equal = algebra.select(minimum, algebra.bit_or(bits_a, bits_b), algebra.bit_and(bits_a, bits_b))
    a_below, b_below = algebra.float_less(a, b), algebra.float_less(b, a)
    takes_a = algebra.select(minimum, a_below, b_below)
    ordered = algebra.select(algebra.bit_or(a_below, b_below), algebra.select(takes_a, bits_a, bits_b), equal)
    chosen = algebra.select(algebra.is_nan(b), bits_a, ordered)
    return algebra.select(algebra.is_nan(a), bits_b, chosen)
