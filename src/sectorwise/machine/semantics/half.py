"""Turns packed half-precision opcodes (HADD2, HMUL2, HFMA2, HSETP2, HMNMX2) into operations on two floats a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sectorwise.binary.ir import Constant, FloatImmediate, Immediate, Predicate, Register
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import (
    float_bits,
    raw_word,
    read_predicate,
    unsupported,
    write_predicate,
    write_word,
)
from sectorwise.machine.semantics.floats import FLOAT_COMPARISONS, compare_floats, drop_negative, extreme_bits, saturate
from sectorwise.machine.semantics.predicates import COMBINATIONS, combine, pick

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port

Pair = tuple["Value", "Value"]
PairReader = Callable[["Port[Value]"], Pair]

# The upper half's choice is named first: H0_NH1 swaps the halves and negates what becomes the lower one.
_SELECTIONS = {"H0_H0": (0, 0), "H1_H1": (16, 16), "H0_H1": (16, 0), "H1_H0": (0, 16), "H0_NH1": (16, 0)}


def format_of(instruction: Instruction) -> Float:
    """F16, or BF16 for the `BF16_V2` forms."""
    return Float.BF16 if any(name.startswith("BF16") for name in instruction.modifiers) else Float.F16


def values_of(instruction: Instruction, operands: tuple[Operand, ...], kind: Float) -> list[PairReader]:
    """Readers of packed operands; two numbers in a row are one operand, the upper half first."""
    readers: list[PairReader] = []
    place = 0
    while place < len(operands):
        operand = operands[place]
        if isinstance(operand, FloatImmediate | Immediate):
            upper = operand
            lower = operands[place + 1] if place + 1 < len(operands) else operand
            place += 2 if place + 1 < len(operands) and isinstance(lower, FloatImmediate | Immediate) else 1
            if not isinstance(lower, FloatImmediate | Immediate):
                lower = upper
            bits = float_bits(upper, kind, 0) << 16 | float_bits(lower, kind, 0)
            readers.append(_read_bits(bits, kind, flushes=instruction.has("FTZ")))
            continue
        place += 1
        readers.append(_read_packed(instruction, operand, kind))
    return readers


def _read_bits(bits: int, kind: Float, *, flushes: bool) -> PairReader:
    def run(port: Port[Value]) -> Pair:
        algebra = port.algebra
        low, high = (algebra.view_float(algebra.word(half), kind) for half in (bits & 0xFFFF, bits >> 16))
        return (algebra.flush_denormals(low), algebra.flush_denormals(high)) if flushes else (low, high)

    return run


def _read_packed(instruction: Instruction, operand: Operand, kind: Float) -> PairReader:
    if not isinstance(operand, Register | Constant):
        raise unsupported(instruction, f"operand {operand} is no packed value")
    read, flushes = raw_word(operand), instruction.has("FTZ")
    suffixes = operand.suffixes
    shifts = next((_SELECTIONS[name] for name in suffixes if name in _SELECTIONS), (0, 16))
    if any(name == "F32" for name in suffixes):
        raise unsupported(instruction, "a single among packed operands is not known")
    clears, flips = (0x7FFF7FFF if operand.absolute else None), (0x80008000 if operand.negate else None)
    if "H0_NH1" in suffixes:
        flips = (flips or 0) ^ 0x80000000

    def half(algebra: Algebra[Value], word: Value, shift: int) -> Value:
        bits = algebra.shift_right(word, algebra.word(shift)) if shift else word
        value = algebra.view_float(bits, kind)
        return algebra.flush_denormals(value) if flushes else value

    def run(port: Port[Value]) -> Pair:
        algebra, word = port.algebra, read(port)
        if clears is not None:
            word = algebra.bit_and(word, algebra.word(clears))
        if flips is not None:
            word = algebra.bit_xor(word, algebra.word(flips))
        return half(algebra, word, shifts[0]), half(algebra, word, shifts[1])

    return run


def read_half(operand: Operand, kind: Float, instruction: Instruction) -> Reader:
    """A reader of one half with its sign modifiers: the one that the operand selects, the low one if none."""
    if isinstance(operand, FloatImmediate | Immediate):
        number = float_bits(operand, kind, 0)
        return lambda port: port.algebra.view_float(port.algebra.word(number), kind)
    if not isinstance(operand, Register | Constant):
        raise unsupported(instruction, "a half is expected")
    read = raw_word(operand)
    shift = 16 if any(name.startswith("H1") for name in operand.suffixes) else 0
    clears, flips = operand.absolute, operand.negate

    def run(port: Port[Value]) -> Value:
        algebra, bits = port.algebra, read(port)
        if shift:
            bits = algebra.shift_right(bits, algebra.word(shift))
        if clears:
            bits = algebra.bit_and(bits, algebra.word(0x7FFF))
        if flips:
            bits = algebra.bit_xor(bits, algebra.word(0x8000))
        return algebra.view_float(bits, kind)

    return run


def half_bits(algebra: Algebra[Value], value: Value, kind: Float) -> Value:
    """The 16 bits of a half or of a bfloat16 that is carried as a single."""
    bits = algebra.view_bits(value)
    return algebra.shift_right(bits, algebra.word(16)) if kind is Float.BF16 else bits


def pack(algebra: Algebra[Value], low: Value, high: Value, kind: Float) -> Value:
    """A word from two halves."""
    upper = algebra.shift_left(half_bits(algebra, high, kind), algebra.word(16))
    return algebra.bit_or(half_bits(algebra, low, kind), upper)


def fma_half(algebra: Algebra[Value], a: Value, b: Value, c: Value, kind: Float, *, flushes: bool = False) -> Value:
    """The value of a * b + c, rounded once to the format."""
    if kind is Float.F16 and not flushes:
        return algebra.float_fma(a, b, c, Rounding.NEAREST)
    first, second, third = (_widen(algebra, value, kind) for value in (a, b, c))
    return _narrow(algebra, algebra.float_fma(first, second, third, Rounding.ODD), kind)


def add_half(algebra: Algebra[Value], a: Value, b: Value, kind: Float, *, flushes: bool = False) -> Value:
    """The sum a + b, rounded once to the format."""
    if kind is Float.F16 and not flushes:
        return algebra.float_add(a, b, Rounding.NEAREST)
    return _narrow(algebra, algebra.float_add(_widen(algebra, a, kind), _widen(algebra, b, kind), Rounding.ODD), kind)


def multiply_half(algebra: Algebra[Value], a: Value, b: Value, kind: Float, *, flushes: bool = False) -> Value:
    """The product a * b, rounded once to the format."""
    if kind is Float.F16 and not flushes:
        return algebra.float_multiply(a, b, Rounding.NEAREST)
    product = algebra.float_multiply(_widen(algebra, a, kind), _widen(algebra, b, kind), Rounding.ODD)
    return _narrow(algebra, product, kind)


_TINY_HALF = 2.0**-14 - 2.0**-26
"""Below this, rounding to the eleven bits of a half stays below the smallest normal one, if exponents had no end."""


def _widen(algebra: Algebra[Value], value: Value, kind: Float) -> Value:
    return algebra.convert_float(value, Float.F32, Rounding.NEAREST) if kind is Float.F16 else value


def _narrow(algebra: Algebra[Value], odd: Value, kind: Float) -> Value:
    """A single that is rounded to odd, as a half whose tiny values are flushed, or as a bfloat16."""
    rounded = algebra.convert_float(odd, kind, Rounding.NEAREST)
    if kind is not Float.F16:
        return rounded
    size = algebra.view_float(algebra.bit_and(algebra.view_bits(odd), algebra.word(0x7FFFFFFF)), Float.F32)
    is_tiny = algebra.float_less(size, algebra.number(_TINY_HALF, Float.F32))
    zero = algebra.bit_and(algebra.view_bits(rounded), algebra.word(0x8000))
    return algebra.select(is_tiny, algebra.view_float(zero, Float.F16), rounded)


def add_packed(algebra: Algebra[Value], a: Value, b: Value, kind: Float) -> Value:
    """The sums of two packed words, as atomics make them."""
    sixteen = algebra.word(16)
    low = add_half(algebra, algebra.view_float(a, kind), algebra.view_float(b, kind), kind)
    upper_a, upper_b = algebra.shift_right(a, sixteen), algebra.shift_right(b, sixteen)
    high = add_half(algebra, algebra.view_float(upper_a, kind), algebra.view_float(upper_b, kind), kind)
    return pack(algebra, low, high, kind)


def _finish(instruction: Instruction, kind: Float) -> Callable[[Algebra[Value], Value], Value]:
    relu, saturates, flushes = instruction.has("RELU"), instruction.has("SAT"), instruction.has("FTZ")

    def run(algebra: Algebra[Value], value: Value) -> Value:
        if flushes:
            value = algebra.flush_denormals(value)
        if saturates:
            value = saturate(algebra, value, kind)
        if relu:
            value = drop_negative(algebra, value, kind)
        return value

    return run


def multiply_add(instruction: Instruction) -> Action:
    """HFMA2, HFMA2.MMA: two fused multiply-adds."""
    if instruction.has("OOB"):
        raise unsupported(instruction, "operands out of bounds are not known")
    kind = format_of(instruction)
    flushes = instruction.has("FTZ")
    a, b, c = values_of(instruction, instruction.operands[1:], kind)[:3]
    write, finish = write_word(instruction.operands[0]), _finish(instruction, kind)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        triples = zip(a(port), b(port), c(port), strict=True)
        halves = [finish(algebra, fma_half(algebra, x, y, z, kind, flushes=flushes)) for x, y, z in triples]
        write(port, pack(algebra, halves[0], halves[1], kind))

    return run


def add(instruction: Instruction) -> Action:
    """HADD2: two sums; HADD2.F32 widens the low halves and adds as singles."""
    kind = format_of(instruction)
    flushes = instruction.has("FTZ")
    a, b = values_of(instruction, instruction.operands[1:], kind)[:2]
    write, finish = write_word(instruction.operands[0]), _finish(instruction, kind)
    if instruction.has("F32"):

        def widen(port: Port[Value]) -> None:
            algebra = port.algebra
            x, y = (algebra.convert_float(read(port)[0], Float.F32, Rounding.NEAREST) for read in (a, b))
            write(port, algebra.view_bits(algebra.float_add(x, y, Rounding.NEAREST)))

        return widen

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        pairs = zip(a(port), b(port), strict=True)
        halves = [finish(algebra, add_half(algebra, x, y, kind, flushes=flushes)) for x, y in pairs]
        write(port, pack(algebra, halves[0], halves[1], kind))

    return run


def multiply(instruction: Instruction) -> Action:
    """HMUL2: two products."""
    kind = format_of(instruction)
    flushes = instruction.has("FTZ")
    a, b = values_of(instruction, instruction.operands[1:], kind)[:2]
    write, finish = write_word(instruction.operands[0]), _finish(instruction, kind)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        pairs = zip(a(port), b(port), strict=True)
        halves = [finish(algebra, multiply_half(algebra, x, y, kind, flushes=flushes)) for x, y in pairs]
        write(port, pack(algebra, halves[0], halves[1], kind))

    return run


def set_predicate(instruction: Instruction) -> Action:
    """HSETP2: compares both halves into two predicates; H_AND joins both into the first."""
    kind = format_of(instruction)
    values = tuple(operand for operand in instruction.operands[2:] if not isinstance(operand, Predicate))
    trailing = [operand for operand in instruction.operands[2:] if isinstance(operand, Predicate)]
    a, b = values_of(instruction, values, kind)[:2]
    comparison = pick(instruction.modifiers, FLOAT_COMPARISONS, "F")
    first, second = (write_predicate(operand) for operand in instruction.operands[:2])
    other = read_predicate(trailing[0]) if trailing else None
    operation = pick(instruction.modifiers, COMBINATIONS, "AND")
    joins = instruction.has("H_AND")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        pairs = zip(a(port), b(port), strict=True)
        low, high = (compare_floats(algebra, comparison, x, y) for x, y in pairs)
        if joins:
            low = algebra.bit_and(low, high)
            high = algebra.invert(low)
        if other is not None:
            join, value = combine(operation, algebra), other(port)
            low, high = join(low, value), join(high, value)
        if first:
            first(port, low)
        if second:
            second(port, high)

    return run


def set_register(instruction: Instruction) -> Action:
    """HSET2: compares both halves into all ones, or 1.0 with BF, in each half."""
    kind = format_of(instruction)
    values = tuple(operand for operand in instruction.operands[1:] if not isinstance(operand, Predicate))
    trailing = [operand for operand in instruction.operands[1:] if isinstance(operand, Predicate)]
    a, b = values_of(instruction, values, kind)[:2]
    comparison, write = pick(instruction.modifiers, FLOAT_COMPARISONS, "F"), write_word(instruction.operands[0])
    other = read_predicate(trailing[0]) if trailing else None
    operation = pick(instruction.modifiers, COMBINATIONS, "AND")
    one = 0x3F80 if kind is Float.BF16 else 0x3C00
    true = one if instruction.has("BF") else 0xFFFF

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        pairs = zip(a(port), b(port), strict=True)
        low, high = (compare_floats(algebra, comparison, x, y) for x, y in pairs)
        if other is not None:
            join, value = combine(operation, algebra), other(port)
            low, high = join(low, value), join(high, value)
        zero = algebra.word(0)
        lower = algebra.select(low, algebra.word(true), zero)
        write(port, algebra.bit_or(lower, algebra.select(high, algebra.word(true << 16), zero)))

    return run


def minimum_maximum(instruction: Instruction) -> Action:
    """HMNMX2, VHMNMX: the smallest of two or three where the predicate holds, else the largest.

    With XORSIGN the sign is the product of both signs, and NaN is written as it always is.
    """
    kind = format_of(instruction)
    values = tuple(operand for operand in instruction.operands[1:] if not isinstance(operand, Predicate))
    choice = [operand for operand in instruction.operands[1:] if isinstance(operand, Predicate)][-1]
    readers = values_of(instruction, values, kind)
    minimum, write, keeps_nan = read_predicate(choice), write_word(instruction.operands[0]), instruction.has("NAN")
    takes_signs = instruction.has("XORSIGN")
    signs = values_of(instruction, tuple(_without_sign(value) for value in values), kind)[:2] if takes_signs else []

    def extreme(algebra: Algebra[Value], x: Value, y: Value, smaller: Value, sign: Value | None) -> Value:
        bits = extreme_bits(algebra, x, y, smaller)
        bits = algebra.shift_right(bits, algebra.word(16)) if kind is Float.BF16 else bits
        if sign is not None:
            bits = algebra.bit_or(algebra.bit_and(bits, algebra.word(0x7FFF)), sign)
        nan_x, nan_y = algebra.is_nan(x), algebra.is_nan(y)
        lost = algebra.bit_or(nan_x, nan_y) if keeps_nan else algebra.bit_and(nan_x, nan_y)
        return algebra.view_float(algebra.select(lost, algebra.word(0x7FFF), bits), kind)

    def run(port: Port[Value]) -> None:
        algebra, smaller = port.algebra, minimum(port)
        first, *others = (read(port) for read in readers)
        halves, products = list(first), [None, None] if not takes_signs else _multiply_signs(port, signs, kind)
        for other in others:
            halves = [extreme(algebra, x, y, smaller, sign) for x, y, sign in zip(halves, other, products, strict=True)]
        write(port, pack(algebra, halves[0], halves[1], kind))

    return run


def _without_sign(operand: Operand) -> Operand:
    """The operand as it lies in the register."""
    return replace(operand, absolute=False, negate=False) if isinstance(operand, Register | Constant) else operand


def _multiply_signs(port: Port[Value], readers: list[PairReader], kind: Float) -> list[Value | None]:
    algebra, (a, b) = port.algebra, (read(port) for read in readers)
    differs = [
        algebra.bit_xor(half_bits(algebra, x, kind), half_bits(algebra, y, kind)) for x, y in zip(a, b, strict=True)
    ]
    return [algebra.bit_and(bits, algebra.word(0x8000)) for bits in differs]
