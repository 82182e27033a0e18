"""Turns opcodes on packed bytes and halves (dot products, packed minima, saturating packs, 8-bit floats) into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sectorwise.binary.ir import FloatImmediate, Immediate, Predicate, Register
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import is_zero, read_predicate, read_word, unsupported, write_word
from sectorwise.machine.semantics.floats import drop_negative, read_single, rounding_of
from sectorwise.machine.semantics.minima import less

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port


def field(algebra: Algebra[Value], word: Value, start: int, bits: int, *, signed: bool) -> Value:
    """Some bits of a word, extended to a word."""
    top = algebra.shift_left(word, algebra.word(32 - bits - start))
    rest = algebra.word(32 - bits)
    return algebra.shift_right_signed(top, rest) if signed else algebra.shift_right(top, rest)


def clamp(algebra: Algebra[Value], value: Value, bits: int, *, signed: bool, signed_source: bool) -> Value:
    """A word held inside the range of an integer of fewer bits."""
    if not signed:
        top = algebra.word((1 << bits) - 1)
        held = algebra.select(algebra.less_unsigned(top, value), top, value)
        if not signed_source:
            return held
        zero = algebra.word(0)
        return algebra.select(algebra.less_signed(value, zero), zero, held)
    top, bottom = algebra.word((1 << bits - 1) - 1), algebra.word(-(1 << bits - 1))
    if not signed_source:
        return algebra.select(algebra.less_unsigned(top, value), top, value)
    held = algebra.select(algebra.less_signed(top, value), top, value)
    return algebra.select(algebra.less_signed(held, bottom), bottom, held)


def dot_product(instruction: Instruction) -> Action:
    """IDP: four products of bytes (4A), or two of a half and a byte (2A, LO or HI bytes), plus c."""
    destination, *values = instruction.operands
    a, b, c = (read_word(operand) for operand in values)
    types = [name for name in instruction.modifiers if name in ("S8", "U8", "S16", "U16")]
    if len(types) != 2:
        raise unsupported(instruction, "two types are expected")
    signed_a, signed_b = types[0][0] == "S", types[1][0] == "S"
    bits = int(types[0][1:])
    first = 16 if instruction.has("HI") else 0
    write = write_word(destination)

    def run(port: Port[Value]) -> None:
        algebra, x, y, total = port.algebra, a(port), b(port), c(port)
        for place in range(32 // bits):
            left = field(algebra, x, bits * place, bits, signed=signed_a)
            right = field(algebra, y, first + 8 * place, 8, signed=signed_b)
            total = algebra.add(total, algebra.multiply(left, right))
        write(port, total)

    return run


def minimum_maximum(instruction: Instruction) -> Action:
    """VIMNMX, VIMNMX3, VIADDMNMX on the parts of a word: two halves (S16x2, U16x2), four bytes (S8x4, U8x4)."""
    signed, bits = _packing(instruction)
    adds, relu = "ADD" in instruction.opcode, instruction.has("RELU")
    values = [operand for operand in instruction.operands[1:] if not isinstance(operand, Predicate)]
    choice = [operand for operand in instruction.operands[1:] if isinstance(operand, Predicate)][-1]
    readers, takes_minimum = [read_word(operand) for operand in values], read_predicate(choice)
    write = write_word(instruction.operands[0])

    def part_of(algebra: Algebra[Value], words: list[Value], start: int, minimum: Value) -> Value:
        parts = [field(algebra, word, start, bits, signed=signed) for word in words]
        if adds:
            total = algebra.add(parts[0], parts[1])
            parts = [field(algebra, total, 0, bits, signed=signed), *parts[2:]]
        result = parts[0]
        for part in parts[1:]:
            takes_first = algebra.bit_xor(less(algebra, part, result, signed=signed), minimum)
            result = algebra.select(takes_first, result, part)
        if relu:
            zero = algebra.word(0)
            result = algebra.select(algebra.less_signed(result, zero), zero, result)
        return result

    def run(port: Port[Value]) -> None:
        algebra, words, minimum = port.algebra, [read(port) for read in readers], takes_minimum(port)
        results = [part_of(algebra, words, start, minimum) for start in range(0, 32, bits)]
        write(port, _together(algebra, results, bits))

    return run


def _packing(instruction: Instruction) -> tuple[bool, int]:
    """Signedness and bits of the parts."""
    for name, bits in (("16x2", 16), ("8x4", 8)):
        for modifier in instruction.modifiers:
            if modifier.endswith(name):
                return modifier.startswith("S"), bits
    raise unsupported(instruction, "the packing is not known")


def _together(algebra: Algebra[Value], parts: list[Value], bits: int) -> Value:
    """A word from the low bits of words, the first lowest."""
    mask = algebra.word((1 << bits) - 1)
    result = algebra.bit_and(parts[0], mask)
    for place, part in enumerate(parts[1:], 1):
        moved = algebra.shift_left(algebra.bit_and(part, mask), algebra.word(bits * place))
        result = algebra.bit_or(result, moved)
    return result


def add(instruction: Instruction) -> Action:
    """VIADD on the parts of a word; each wraps around."""
    _, bits = _packing(instruction)
    if any("SAT" in name for name in instruction.modifiers):
        raise unsupported(instruction, "saturation of packed sums is not known")
    destination, a, b = instruction.operands
    negates = isinstance(b, Register) and b.negate
    first, second = read_word(a), read_word(replace(b, negate=False) if isinstance(b, Register) else b)
    write = write_word(destination)

    def run(port: Port[Value]) -> None:
        algebra, x, y = port.algebra, first(port), second(port)
        combine = algebra.subtract if negates else algebra.add
        parts = [
            combine(algebra.shift_right(x, algebra.word(start)), algebra.shift_right(y, algebra.word(start)))
            for start in range(0, 32, bits)
        ]
        write(port, _together(algebra, parts, bits))

    return run


def absolute_difference_bytes(instruction: Instruction) -> Action:
    """VABSDIFF4: |a - b| of each byte; with ACC their sum, plus c."""
    destination, a, b, c = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    first, second, third, write = read_word(a), read_word(b), read_word(c), write_word(destination)
    signed, sums = instruction.has("S8"), instruction.has("ACC")
    if not sums and not is_zero(c):
        raise unsupported(instruction, "a third operand is not known without a sum")

    def run(port: Port[Value]) -> None:
        algebra, x, y, total = port.algebra, first(port), second(port), third(port)
        for place in range(4):
            left = field(algebra, x, 8 * place, 8, signed=signed)
            right = field(algebra, y, 8 * place, 8, signed=signed)
            difference = algebra.subtract(left, right)
            opposite = algebra.subtract(right, left)
            size = algebra.select(algebra.less_signed(difference, algebra.word(0)), opposite, difference)
            if sums:
                total = algebra.add(total, size)
            else:
                total = algebra.bit_or(total, algebra.shift_left(size, algebra.word(8 * place)))
        write(port, total)

    return run


def pack_integers(instruction: Instruction) -> Action:
    """I2IP: a and b saturated side by side, b lowest; bytes push the low half of c up."""
    name = next((name for name in instruction.modifiers if name in ("S8", "U8", "S16", "U16")), None)
    if name is None or not instruction.has("SAT"):
        raise unsupported(instruction, "a saturating form is expected")
    bits, signed = int(name[1:]), name[0] == "S"
    destination, *values = instruction.operands
    a, b, c = (read_word(operand) for operand in values)
    write = write_word(destination)

    def part(port: Port[Value], read: Reader) -> Value:
        algebra = port.algebra
        held = clamp(algebra, read(port), bits, signed=signed, signed_source=True)
        return algebra.bit_and(held, algebra.word((1 << bits) - 1))

    def run(port: Port[Value]) -> None:
        write(port, _side_by_side(port, part(port, a), part(port, b), c(port), bits))

    return run


def _side_by_side(port: Port[Value], upper: Value, lower: Value, rest: Value, bits: int) -> Value:
    algebra = port.algebra
    packed = algebra.bit_or(algebra.shift_left(upper, algebra.word(bits)), lower)
    return algebra.bit_or(packed, algebra.shift_left(rest, algebra.word(2 * bits)))


def pack_floats_as_integers(instruction: Instruction) -> Action:
    """F2IP: two singles as saturated bytes side by side, b lowest; they push the low half of c up."""
    name = next((name for name in instruction.modifiers if name in ("S8", "U8")), None)
    if name is None or not instruction.has("NTZ"):
        raise unsupported(instruction, "a form with bytes and NTZ is expected")
    signed, rounding = name[0] == "S", rounding_of(instruction)
    destination, a, b, c = instruction.operands
    first, second, third = read_single(a, instruction), read_single(b, instruction), read_word(c)
    write = write_word(destination)

    def part(port: Port[Value], read: Reader) -> Value:
        algebra = port.algebra
        whole = algebra.integer_from_float(read(port), 32, rounding, signed=signed)
        held = clamp(algebra, whole, 8, signed=signed, signed_source=signed)
        return algebra.bit_and(held, algebra.word(0xFF))

    def run(port: Port[Value]) -> None:
        write(port, _side_by_side(port, part(port, first), part(port, second), third(port), 8))

    return run


def round_to_tf32(instruction: Instruction) -> Action:
    """F2FP.TF32.F32: a single rounded to ten fraction bits."""
    if instruction.has("SATFINITE"):
        raise unsupported(instruction, "saturation is not known here")
    destination, source = instruction.operands[:2]
    read, write = read_single(source, instruction), write_word(destination)
    nearest, relu = rounding_of(instruction) is Rounding.NEAREST, instruction.has("RELU")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        value = read(port)
        if relu:
            value = drop_negative(algebra, value, Float.F32)
        bits = algebra.view_bits(value)
        if nearest:
            odd = algebra.bit_and(algebra.shift_right(bits, algebra.word(13)), algebra.word(1))
            rounded = algebra.add(algebra.add(bits, algebra.word(0xFFF)), odd)
        else:
            rounded = bits
        cut = algebra.bit_and(rounded, algebra.word(0xFFFFE000))
        write(port, algebra.select(algebra.is_nan(value), algebra.word(0x7FFFE000), cut))

    return run


def pack_bytes(instruction: Instruction) -> Action:
    """F2FP to E4M3 or E5M2: two singles or halves to 8-bit floats, saturated, the second below the low half of c."""
    small = instruction.has("E4M3")
    if not instruction.has("SATFINITE") or rounding_of(instruction) is not Rounding.NEAREST:
        raise unsupported(instruction, "only saturated rounding to nearest is known")
    destination, *values, c = instruction.operands
    if instruction.has("F32") and len(values) == 2:
        first, second = (read_single(value, instruction) for value in values)
    elif instruction.has("F16") and len(values) == 1:
        pair = values[0]
        if isinstance(pair, FloatImmediate | Immediate):
            # Printed as one single, though it is two halves.
            pair = Immediate(instruction.encoding >> 32 & 0xFFFFFFFF)
        first, second = _read_half(pair, 16), _read_half(pair, 0)
    else:
        raise unsupported(instruction, "two singles or a pair of halves is expected")
    third = read_word(c)
    write, relu = write_word(destination), instruction.has("RELU")

    def byte(algebra: Algebra[Value], value: Value) -> Value:
        if relu:
            value = drop_negative(algebra, value, Float.F32)
        # E5M2 is a half cut short. E4M3 has the exponent range of a half that is 2**-8 as large.
        scaled = algebra.float_multiply(value, algebra.number(2.0**-8 if small else 1.0, Float.F32), Rounding.ODD)
        half = algebra.view_bits(algebra.convert_float(scaled, Float.F16, Rounding.ODD))
        cut = 7 if small else 8
        size = algebra.bit_and(half, algebra.word(0x7FFF))
        odd = algebra.bit_and(algebra.shift_right(size, algebra.word(cut)), algebra.word(1))
        rounded = algebra.add(algebra.add(size, algebra.word((1 << cut - 1) - 1)), odd)
        result = algebra.shift_right(rounded, algebra.word(cut))
        largest = algebra.word(0x7E if small else 0x7B)
        result = algebra.select(algebra.less_unsigned(largest, result), largest, result)
        sign = algebra.bit_and(algebra.shift_right(half, algebra.word(8)), algebra.word(0x80))
        return algebra.select(algebra.is_nan(value), algebra.word(0x7F), algebra.bit_or(result, sign))

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, _side_by_side(port, byte(algebra, first(port)), byte(algebra, second(port)), third(port), 8))

    return run


def _read_half(operand: Operand, start: int) -> Reader:
    """A reader of one f16 of a pair, as a single."""
    read = read_word(operand)

    def run(port: Port[Value]) -> Value:
        algebra = port.algebra
        half = algebra.view_float(algebra.shift_right(read(port), algebra.word(start)), Float.F16)
        return algebra.convert_float(half, Float.F32, Rounding.NEAREST)

    return run


def unpack_bytes(instruction: Instruction) -> Action:
    """F2FP.F16.E4M3 or E5M2.UNPACK_B: two 8-bit floats, exactly as halves."""
    if not instruction.has("F16"):
        raise unsupported(instruction, "only halves are known")
    destination, source = instruction.operands[:2]
    read, write, small = read_word(source), write_word(destination), instruction.has("E4M3")
    relu = instruction.has("RELU")

    def kept(algebra: Algebra[Value], bits: Value) -> Value:
        if not relu:
            return bits
        return algebra.view_bits(drop_negative(algebra, algebra.view_float(bits, Float.F16), Float.F16))

    def half(algebra: Algebra[Value], word: Value, place: int) -> Value:
        byte = field(algebra, word, 8 * place, 8, signed=False)
        if not small:
            bits = algebra.shift_left(byte, algebra.word(8))
            nan = algebra.is_nan(algebra.view_float(bits, Float.F16))
            return algebra.select(nan, algebra.word(0x7FFF), bits)
        size, sign = algebra.bit_and(byte, algebra.word(0x7F)), algebra.bit_and(byte, algebra.word(0x80))
        bits = algebra.bit_or(algebra.shift_left(size, algebra.word(7)), algebra.shift_left(sign, algebra.word(8)))
        value = algebra.view_float(bits, Float.F16)
        value = algebra.float_multiply(value, algebra.number(2.0**8, Float.F16), Rounding.NEAREST)
        return algebra.select(algebra.equal(size, algebra.word(0x7F)), algebra.word(0x7FFF), algebra.view_bits(value))

    def run(port: Port[Value]) -> None:
        algebra, word = port.algebra, read(port)
        low, high = (kept(algebra, half(algebra, word, place)) for place in (0, 1))
        write(port, algebra.bit_or(low, algebra.shift_left(high, algebra.word(16))))

    return run
