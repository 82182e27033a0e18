"""Turns single-precision opcodes (FADD, FMUL, FFMA, FSETP, FMNMX, MUFU, FCHK) into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import FloatImmediate, Immediate, Predicate
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import (
    SIGN_WORD,
    float_bits,
    raw_word,
    read_predicate,
    split_predicates,
    unsupported,
    write_predicate,
    write_word,
)
from sectorwise.machine.semantics.floats import (
    FLOAT_COMPARISONS,
    compare_floats,
    extreme_bits,
    finish_single,
    read_single,
    read_single_bits,
    rounding_of,
)
from sectorwise.machine.semantics.half import half_bits, read_half
from sectorwise.machine.semantics.predicates import pick, write_comparison

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port

CANONICAL_NAN = 0x7FFFFFFF

_SCALES = {"D2": 0.5, "D4": 0.25, "D8": 0.125, "M2": 2.0, "M4": 4.0, "M8": 8.0}

_MUFU = ("RCP", "RSQ", "SQRT", "SIN", "COS", "EX2", "LG2", "TANH")


def add(instruction: Instruction) -> Action:
    """FADD."""
    destination, a, b = instruction.operands
    first, second = read_single(a, instruction), read_single(b, instruction)
    write, finish, rounding = write_word(destination), finish_single(instruction), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, finish(algebra, algebra.float_add(first(port), second(port), rounding)))

    return run


def multiply(instruction: Instruction) -> Action:
    """FMUL."""
    scale = next((_SCALES[name] for name in instruction.modifiers if name in _SCALES), None)
    destination, a, b = instruction.operands
    first, second = read_single(a, instruction), read_single(b, instruction)
    write, finish, rounding = write_word(destination), finish_single(instruction), rounding_of(instruction)
    flushes = instruction.has("FTZ")

    def multiply_and_scale(port: Port[Value]) -> None:
        # Exact in a double, so that the scaled product is rounded once.
        algebra = port.algebra
        x, y = (algebra.convert_float(read(port), Float.F64, Rounding.NEAREST) for read in (first, second))
        product = algebra.float_multiply(x, y, Rounding.NEAREST)
        scaled = algebra.float_multiply(product, algebra.number(scale or 1.0, Float.F64), Rounding.NEAREST)
        result = algebra.convert_float(scaled, Float.F32, rounding)
        nan = algebra.view_float(algebra.word(CANONICAL_NAN), Float.F32)
        write(port, finish(algebra, algebra.select(algebra.is_nan(scaled), nan, result)))

    if scale is not None:
        return multiply_and_scale

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, finish(algebra, algebra.float_multiply(first(port), second(port), rounding, flush=flushes)))

    return run


def multiply_add(instruction: Instruction) -> Action:
    """FFMA."""
    destination, *values = instruction.operands
    a, b, c = (read_single(operand, instruction) for operand in values)
    write, finish, rounding = write_word(destination), finish_single(instruction), rounding_of(instruction)
    flushes = instruction.has("FTZ")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, finish(algebra, algebra.float_fma(a(port), b(port), c(port), rounding, flush=flushes)))

    return run


def set_predicate(instruction: Instruction) -> Action:
    """FSETP."""
    values = [operand for operand in instruction.operands[2:] if not isinstance(operand, Predicate)]
    trailing = [operand for operand in instruction.operands[2:] if isinstance(operand, Predicate)]
    a, b = (read_single(operand, instruction) for operand in values)
    comparison = pick(instruction.modifiers, FLOAT_COMPARISONS, "F")

    def compare(port: Port[Value]) -> Value:
        return compare_floats(port.algebra, comparison, a(port), b(port))

    return write_comparison(instruction, compare, trailing[0] if trailing else None)


def set_register(instruction: Instruction) -> Action:
    """FSET: a comparison as a word, all ones, or 1.0 with BF."""
    destination, a, b, *tail = instruction.operands
    first, second = read_single(a, instruction), read_single(b, instruction)
    comparison, write = pick(instruction.modifiers, FLOAT_COMPARISONS, "F"), write_word(destination)
    true = 0x3F800000 if instruction.has("BF") else 0xFFFFFFFF
    joined = read_predicate(tail[0]) if tail else None
    operation = pick(instruction.modifiers, ("AND", "OR", "XOR"), "AND")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        outcome = compare_floats(algebra, comparison, first(port), second(port))
        if joined is not None:
            join = {"AND": algebra.bit_and, "OR": algebra.bit_or, "XOR": algebra.bit_xor}[operation]
            outcome = join(outcome, joined(port))
        write(port, algebra.select(outcome, algebra.word(true), algebra.word(0)))

    return run


def minimum_maximum(instruction: Instruction) -> Action:
    """FMNMX, FMNMX3: a NaN loses against a number, or wins with NAN."""
    values = [operand for operand in instruction.operands[1:] if not isinstance(operand, Predicate)]
    choice = [operand for operand in instruction.operands[1:] if isinstance(operand, Predicate)][-1]
    readers, minimum = [read_single(operand, instruction) for operand in values], read_predicate(choice)
    write, keeps_nan = write_word(instruction.operands[0]), instruction.has("NAN")
    signs = [raw_word(operand) for operand in values] if instruction.has("XORSIGN") else []

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        numbers = [read(port) for read in readers]
        result, wrong = numbers[0], algebra.is_nan(numbers[0])
        for number in numbers[1:]:
            result = algebra.view_float(extreme_bits(algebra, result, number, minimum(port)), Float.F32)
            if keeps_nan:
                wrong = algebra.bit_or(wrong, algebra.is_nan(number))
        lost = wrong if keeps_nan else algebra.is_nan(result)
        bits = algebra.view_bits(result)
        if signs:
            sign = algebra.bit_and(algebra.bit_xor(signs[0](port), signs[1](port)), algebra.word(SIGN_WORD))
            bits = algebra.bit_or(algebra.bit_and(bits, algebra.word(~SIGN_WORD)), sign)
        write(port, algebra.select(lost, algebra.word(CANONICAL_NAN), bits))

    return run


def choose(instruction: Instruction) -> Action:
    """FSEL: the first operand where the predicate holds, else the second, with their signs."""
    destination, a, b, predicate = instruction.operands
    first, second = read_single_bits(a, instruction), read_single_bits(b, instruction)
    condition, write, flushes = read_predicate(predicate), write_word(destination), instruction.has("FTZ")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        bits = algebra.select(condition(port), first(port), second(port))
        if flushes:
            bits = algebra.view_bits(algebra.flush_denormals(algebra.view_float(bits, Float.F32)))
        write(port, bits)

    return run


def approximate(instruction: Instruction) -> Action:
    """MUFU: a function to about 22 bits; the best value stands for it, marked inexact."""
    destination, source = instruction.operands[:2]
    for name in ("RCP64H", "RSQ64H"):
        if instruction.has(name):
            return _approximate_upper(instruction, name[:3])
    function = next((name for name in instruction.modifiers if name in _MUFU), None)
    if function is None:
        raise unsupported(instruction, "the function is not known")
    for kind in (Float.F16, Float.BF16):
        if instruction.has(kind):
            return _approximate_half(instruction, function, kind)
    read, write = read_single(source, instruction), write_word(destination)

    def run(port: Port[Value]) -> None:
        port.mark_inexact()
        algebra = port.algebra
        # The unit takes denormals as zeros and gives none (RCP keeps them only where it is scaled around).
        value = algebra.approximate(function, algebra.flush_denormals(read(port)))
        write(port, algebra.view_bits(algebra.flush_denormals(value)))

    return run


def _approximate_half(instruction: Instruction, function: str, kind: Float) -> Action:
    """MUFU on a half or a bfloat16, through singles."""
    destination, source = instruction.operands[:2]
    read, write = read_half(source, kind, instruction), write_word(destination)

    def run(port: Port[Value]) -> None:
        port.mark_inexact()
        algebra = port.algebra
        single = algebra.convert_float(read(port), Float.F32, Rounding.NEAREST)
        value = algebra.convert_float(algebra.approximate(function, single), kind, Rounding.NEAREST)
        write(port, half_bits(algebra, value, kind))

    return run


def _approximate_upper(instruction: Instruction, function: str) -> Action:
    """RCP64H, RSQ64H: the upper word of a double's function, from its upper word."""
    destination, source = instruction.operands[:2]
    if isinstance(source, FloatImmediate | Immediate):
        # The encoding holds the upper word of a double, printed as that double: `MUFU.RCP64H R3, 3`.
        source = Immediate(float_bits(source, Float.F64, instruction.encoding) >> 32)
    read, write = raw_word(source), write_word(destination)

    def run(port: Port[Value]) -> None:
        port.mark_inexact()
        algebra = port.algebra
        value = algebra.view_float(algebra.join(algebra.word(0), read(port)), Float.F64)
        result = algebra.flush_denormals(algebra.approximate(function, algebra.flush_denormals(value)))
        upper = algebra.high(algebra.view_bits(result))
        write(port, algebra.select(algebra.is_nan(result), algebra.word(CANONICAL_NAN), upper))

    return run


def check_division(instruction: Instruction) -> Action:
    """FCHK.DIVIDE: whether a / b needs the slow path, for exponents far apart or near the ends."""
    predicates, _ = split_predicates(instruction)
    a, b = (raw_word(operand) for operand in instruction.operands[1:3])
    write = write_predicate(predicates[0])

    def run(port: Port[Value]) -> None:
        if write is None:
            return
        algebra = port.algebra
        upper, lower = _exponent(port, a(port)), _exponent(port, b(port))
        # Measured on an H200 over all pairs of exponents: nothing else matters.
        risky = algebra.invert(_between(port, lower, 2, 251))
        difference = algebra.add(algebra.subtract(upper, lower), algebra.word(256))
        risky = algebra.bit_or(risky, algebra.invert(_between(port, difference, 256 - 124, 256 + 126)))
        risky = algebra.bit_or(risky, algebra.invert(_between(port, upper, 25, 254)))
        write(port, risky)

    return run


def _exponent(port: Port[Value], bits: Value) -> Value:
    algebra = port.algebra
    return algebra.bit_and(algebra.shift_right(bits, algebra.word(23)), algebra.word(255))


def _between(port: Port[Value], value: Value, low: int, high: int) -> Value:
    algebra = port.algebra
    distance = algebra.subtract(value, algebra.word(low))
    return algebra.less_unsigned(distance, algebra.word(high - low + 1))
