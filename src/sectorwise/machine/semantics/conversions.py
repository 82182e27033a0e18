"""Turns conversions between integers and floats, in every format and rounding, into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sectorwise.binary.ir import Constant, Immediate, Register
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import (
    is_zero,
    read_long,
    read_word,
    unsupported,
    write_long,
    write_word,
)
from sectorwise.machine.semantics.floats import (
    drop_negative,
    finish_single,
    read_double,
    read_single,
    rounding_of,
    saturate,
)
from sectorwise.machine.semantics.half import half_bits, read_half
from sectorwise.machine.semantics.packed import clamp, pack_bytes, round_to_tf32, unpack_bytes

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader, Writer
    from sectorwise.machine.port import Port

_FLOATS = {"F16": Float.F16, "BF16": Float.BF16, "F32": Float.F32, "F64": Float.F64}
_INTEGERS = ("U8", "S8", "U16", "S16", "U32", "S32", "U64", "S64")


def _floats(instruction: Instruction) -> list[Float]:
    return [_FLOATS[name] for name in instruction.modifiers if name in _FLOATS]


def _integer(instruction: Instruction) -> tuple[int, bool]:
    """Bits and signedness of the integer side; S32 is not printed."""
    name = next((name for name in instruction.modifiers if name in _INTEGERS), "S32")
    return int(name[1:]), name[0] == "S"


def read_float(operand: Operand, kind: Float, instruction: Instruction) -> Reader:
    """A reader of a float operand of any format; a half is the one that the operand selects, the low one if none."""
    match kind:
        case Float.F64:
            return read_double(operand, instruction)
        case Float.F32:
            read = read_single(operand, instruction)
            return _keep_nan(operand, instruction, read) if instruction.has("F64") else read
        case _:
            return read_half(operand, kind, instruction)


def _keep_nan(operand: Operand, instruction: Instruction, read: Reader) -> Reader:
    """Sign modifiers leave a NaN's sign alone on its way to a double, as they do for doubles."""
    if not isinstance(operand, Register | Constant) or not (operand.negate or operand.absolute):
        return read
    plain = read_single(replace(operand, negate=False, absolute=False), instruction)

    def run(port: Port[Value]) -> Value:
        raw = plain(port)
        return port.algebra.select(port.algebra.is_nan(raw), raw, read(port))

    return run


def write_float(operand: Operand, kind: Float) -> Writer:
    """A writer of a float of any format; a half fills the low 16 bits and clears the rest."""
    if kind is Float.F64:
        write_pair = write_long(operand)
        return lambda port, value: write_pair(port, port.algebra.view_bits(value))
    write = write_word(operand)
    if kind is Float.F32:
        return lambda port, value: write(port, port.algebra.view_bits(value))
    return lambda port, value: write(port, half_bits(port.algebra, value, kind))


def integer_to_float(instruction: Instruction) -> Action:
    """I2F, I2FP: integers of 8 to 64 bits to a float."""
    destination, source = instruction.operands[:2]
    kind = next(iter(_floats(instruction)), Float.F32)
    bits, signed = _integer(instruction)
    rounding = rounding_of(instruction)
    if bits == 64 and isinstance(source, Immediate):
        # As with doubles, the number in the instruction is the upper word.
        long = source.value << 32
        read: Reader = lambda port: port.algebra.long(long)  # noqa: E731 - one of three readers
    else:
        read = read_long(source) if bits == 64 else _field(read_word(source), bits, signed=signed)
    write = write_float(destination, kind)

    def run(port: Port[Value]) -> None:
        write(port, port.algebra.float_from_integer(read(port), kind, rounding, signed=signed))

    return run


def _field(read: Reader, bits: int, *, signed: bool) -> Reader:
    """The low bits of a word, extended."""
    if bits == 32:
        return read

    def run(port: Port[Value]) -> Value:
        algebra = port.algebra
        rest = algebra.word(32 - bits)
        top = algebra.shift_left(read(port), rest)
        return algebra.shift_right_signed(top, rest) if signed else algebra.shift_right(top, rest)

    return run


def float_to_integer(instruction: Instruction) -> Action:
    """F2I: saturates; NaN becomes zero with NTZ, else the sign bit alone."""
    destination, source = instruction.operands[:2]
    kind = next(iter(_floats(instruction)), Float.F32)
    bits, signed = _integer(instruction)
    read, rounding = read_float(source, kind, instruction), rounding_of(instruction)
    size = max(bits, 32)
    write = write_long(destination) if size == 64 else write_word(destination)
    nan_is_zero = instruction.has("NTZ")

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        result = algebra.integer_from_float(value, size, rounding, signed=signed)
        if bits < size:
            result = clamp(algebra, result, bits, signed=signed, signed_source=signed)
        if not nan_is_zero:
            # The sign bit of the integer, which fills the rest of the register where the integer has a sign.
            top = -(1 << bits - 1) if signed else 1 << bits - 1
            lost = algebra.long(top) if size == 64 else algebra.word(top)
            result = algebra.select(algebra.is_nan(value), lost, result)
        write(port, result)

    return run


def float_to_float(instruction: Instruction) -> Action:
    """F2F: destination format first, then the source's."""
    destination, source = instruction.operands[:2]
    kinds = _floats(instruction)
    if len(kinds) < 2:
        raise unsupported(instruction, "two formats are expected")
    target, origin = kinds[:2]
    read, write = read_float(source, origin, instruction), write_float(destination, target)
    rounding = rounding_of(instruction)
    integral = origin is target
    saturates, flushes = instruction.has("SAT"), instruction.has("FTZ") and target is Float.F32

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        converted = algebra.convert_float(value, target, rounding)
        value = algebra.round_integral(value, rounding) if integral else converted
        if flushes:
            value = algebra.flush_denormals(value)
        write(port, saturate(algebra, value, target) if saturates else value)

    return run


def pack_floats(instruction: Instruction) -> Action:
    """F2FP.PACK_AB: two singles rounded to halves, the second operand in the low half; other formats elsewhere."""
    if instruction.has("TF32"):
        return round_to_tf32(instruction)
    if instruction.has("E4M3") or instruction.has("E5M2"):
        return unpack_bytes(instruction) if instruction.has("UNPACK_B") else pack_bytes(instruction)
    if any(name in ("E2M1", "UE8M0", "E8M0", "E3M2", "E2M3") for name in instruction.modifiers):
        raise unsupported(instruction, "floats of 4 and 6 bits are not known")
    kind = Float.BF16 if instruction.has("BF16") else Float.F16
    destination, a, b = instruction.operands[:3]
    if instruction.has("MERGE_C"):
        # One single, into the low half; what the other half would be is not known, as no compiler asks for it.
        if not is_zero(b):
            raise unsupported(instruction, "a zero is expected behind the number")
        a, b = b, a
    upper, lower = read_single(a, instruction), read_single(b, instruction)
    write, rounding, relu = write_word(destination), rounding_of(instruction), instruction.has("RELU")

    def half(algebra: Algebra[Value], value: Value) -> Value:
        if relu:
            value = drop_negative(algebra, value, Float.F32)
        converted = algebra.convert_float(value, kind, rounding)
        return half_bits(algebra, converted, kind)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        high = algebra.shift_left(half(algebra, upper(port)), algebra.word(16))
        write(port, algebra.bit_or(half(algebra, lower(port)), high))

    return run


def round_integral(instruction: Instruction) -> Action:
    """FRND: a float to the integral float in a direction."""
    destination, source = instruction.operands[:2]
    kind = next(iter(_floats(instruction)), Float.F32)
    read, rounding = read_float(source, kind, instruction), rounding_of(instruction)
    if kind is Float.F32:
        write, finish = write_word(destination), finish_single(instruction)
        return lambda port: write(port, finish(port.algebra, _integral(port, read(port), rounding)))
    write_value = write_float(destination, kind)
    return lambda port: write_value(port, _integral(port, read(port), rounding))


def _integral(port: Port[Value], value: Value, rounding: Rounding) -> Value:
    return port.algebra.round_integral(value, rounding)


def integer_to_integer(instruction: Instruction) -> Action:
    """I2I: the word saturated to a narrower integer."""
    destination, source = instruction.operands[:2]
    read, write = read_word(source), write_word(destination)
    types = [name for name in instruction.modifiers if name in _INTEGERS]
    if len(types) != 2 or types[1] not in ("U32", "S32") or not instruction.has("SAT"):
        raise unsupported(instruction, "only saturation from words is known")
    bits, signed, signed_source = int(types[0][1:]), types[0][0] == "S", types[1] == "S32"

    def run(port: Port[Value]) -> None:
        write(port, clamp(port.algebra, read(port), bits, signed=signed, signed_source=signed_source))

    return run
