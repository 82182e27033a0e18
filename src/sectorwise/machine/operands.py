"""Turns an operand, decoded once, into a function that reads or writes it through a port with all its modifiers."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Constant,
    FloatImmediate,
    Immediate,
    Instruction,
    Operand,
    Predicate,
    Register,
)
from sectorwise.errors import SectorwiseError
from sectorwise.machine.algebra import Float, Value
from sectorwise.machine.port import Port

Action = Callable[[Port[Any]], None]
"""An instruction, decoded: runs once for every issue."""

Reader = Callable[[Port[Value]], Value]
Writer = Callable[[Port[Value], Value], None]

SIGN_WORD = 0x80000000
SIGN_LONG = 0x8000000000000000


class UnsupportedFormError(SectorwiseError):
    """An instruction of a known opcode whose operands or modifiers have no meaning here; the text shows it."""


def unsupported(instruction: Instruction, why: str) -> UnsupportedFormError:
    """The error for a form of a known opcode that cannot be executed."""
    return UnsupportedFormError(f"{instruction.text}: {why}")


def split_predicates(instruction: Instruction) -> tuple[list[Predicate], list[Operand]]:
    """The operands with the predicates that stand before the first other operand, or after it, taken apart.

    Returns the predicates that precede or directly follow the destination, and all other operands in order.
    """
    leading: list[Predicate] = []
    rest: list[Operand] = []
    for operand in instruction.operands:
        if isinstance(operand, Predicate) and len(rest) <= 1:
            leading.append(operand)
        else:
            rest.append(operand)
    return leading, rest


def is_zero(operand: Operand) -> bool:
    """Whether an integer operand is known to read as zero."""
    match operand:
        case Register():
            return operand.index == ZERO_REGISTER and not operand.invert
        case Immediate():
            return operand.value == 0
        case _:
            return False


def float_bits(operand: FloatImmediate | Immediate, kind: Float, encoding: int) -> int:
    """Bits of a number printed in an instruction, in its format.

    What print does not keep, the payload of a NaN and the sign of a zero, comes from bits 32 to 63 of the encoding.
    """
    value = float(operand.value)
    lost = value == 0 or math.isnan(value)
    match kind:
        case Float.F16:
            return int.from_bytes(struct.pack("<e", value), "little")
        case Float.BF16:
            return (_single_bits(value) + 0x8000) >> 16
        case Float.F64:
            if lost and encoding:
                return (encoding >> 32 & 0xFFFFFFFF) << 32
            # The instruction holds the upper half; print rounds it to a decimal.
            bits = int.from_bytes(struct.pack("<d", value), "little")
            return (bits + SIGN_WORD) >> 32 << 32
        case Float.F32:
            if lost and encoding:
                return encoding >> 32 & 0xFFFFFFFF
            return _single_bits(value)


def _single_bits(value: float) -> int:
    return int.from_bytes(struct.pack("<f", value), "little")


def _constant_words(operand: Constant, count: int) -> Callable[[Port[Value]], list[Value]]:
    bank, offset = operand.bank, operand.offset
    if bank is None:

        def unknown(port: Port[Value]) -> list[Value]:
            port.mark_unknown("bindless constant bank")
            return [port.algebra.word(0)] * count

        return unknown
    index = operand.index
    if index is None or index.index == ZERO_REGISTER:

        def fixed(port: Port[Value]) -> list[Value]:
            return [port.read_constant(bank, offset + 4 * i) for i in range(count)]

        return fixed
    register = raw_register(index)

    def indexed(port: Port[Value]) -> list[Value]:
        base = register(port)
        add, word = port.algebra.add, port.algebra.word
        return [port.read_constant(bank, add(base, word(offset + 4 * i))) for i in range(count)]

    return indexed


def raw_register(register: Register, step: int = 0) -> Reader:
    """A reader of the register's word, `step` registers on, without modifiers."""
    index, uniform = register.index, register.uniform
    if index == ZERO_REGISTER:
        return lambda port: port.algebra.word(0)
    index += step
    if uniform:
        return lambda port: port.read_register(index, uniform=True)
    return lambda port: port.read_register(index)


def raw_words(operand: Operand, count: int) -> list[Reader]:
    """Readers of `count` consecutive words, without modifiers; immediates fill the lowest word, zeros the rest."""
    match operand:
        case Register():
            return [raw_register(operand, i) for i in range(count)]
        case Constant():
            words = _constant_words(operand, count)
            return [lambda port, i=i: words(port)[i] for i in range(count)]  # type: ignore[misc]
        case Immediate():
            value = operand.value
            return [lambda port, i=i: port.algebra.word(value >> 32 * i) for i in range(count)]  # type: ignore[misc]
        case FloatImmediate():
            bits = _single_bits(operand.value)
            return [lambda port, i=i: port.algebra.word(bits if i == 0 else 0) for i in range(count)]  # type: ignore[misc]
        case _:
            message = f"operand {operand} is no value"
            raise UnsupportedFormError(message)


def raw_word(operand: Operand) -> Reader:
    """A reader of the operand's word, without modifiers."""
    return raw_words(operand, 1)[0]


def read_word(operand: Operand) -> Reader:
    """A reader of an integer word: `-` is two's complement, `~` inverts, `|x|` takes the signed absolute value."""
    read = _extracted(operand, raw_word(operand))
    if not isinstance(operand, Register | Constant):
        return read
    if operand.absolute:
        read = _absolute(read)
    if operand.negate:
        return _negated(read)
    if operand.invert:
        return _inverted(read)
    return read


def _extracted(operand: Operand, read: Reader) -> Reader:
    """Applies `.B0` to `.B3` and `.H0`, `.H1` selections, zero-extended."""
    if not isinstance(operand, Register):
        return read
    for suffix in operand.suffixes:
        if suffix in ("B1", "B2", "B3", "H1"):
            shift = 16 if suffix == "H1" else 8 * int(suffix[1])
            return lambda port: port.algebra.shift_right(read(port), port.algebra.word(shift))
    return read


def _negated(read: Reader) -> Reader:
    return lambda port: port.algebra.subtract(port.algebra.word(0), read(port))


def _inverted(read: Reader) -> Reader:
    return lambda port: port.algebra.invert(read(port))


def _absolute(read: Reader) -> Reader:
    def run(port: Port[Value]) -> Value:
        algebra, value = port.algebra, read(port)
        zero = algebra.word(0)
        return algebra.select(algebra.less_signed(value, zero), algebra.subtract(zero, value), value)

    return run


def read_long(operand: Operand, *, signed: bool = False) -> Reader:
    """A reader of an integer long: a register or constant pair; an immediate of 32 bits is extended."""
    match operand:
        case Immediate():
            value = operand.value
            if -SIGN_WORD <= value <= 0xFFFFFFFF:
                value &= 0xFFFFFFFF
                if signed and value & SIGN_WORD:
                    value -= 1 << 32
            return lambda port: port.algebra.long(value)
        case Register() if operand.index == ZERO_REGISTER:
            return (lambda port: port.algebra.long(-1)) if operand.invert else lambda port: port.algebra.long(0)
        case _:
            low, high = raw_words(operand, 2)

    def pair(port: Port[Value]) -> Value:
        return port.algebra.join(low(port), high(port))

    if isinstance(operand, Register | Constant) and operand.negate:
        return lambda port: port.algebra.subtract(port.algebra.long(0), pair(port))
    if isinstance(operand, Register | Constant) and operand.invert:
        return lambda port: port.algebra.invert(pair(port))
    return pair


def read_predicate(operand: Operand) -> Reader:
    """A reader of a predicate with its negation, or of a register's sign (`R4.SIGN`)."""
    if isinstance(operand, Register) and operand.suffixes == ("SIGN",):
        read = raw_register(operand)
        return lambda port: port.algebra.less_signed(read(port), port.algebra.word(0))
    if not isinstance(operand, Predicate):
        message = f"operand {operand} is no predicate"
        raise UnsupportedFormError(message)
    index, uniform = operand.index, operand.uniform
    if index == TRUE_PREDICATE:
        value = not operand.negate
        return lambda port: port.algebra.predicate(value)
    if operand.negate:
        return lambda port: port.algebra.invert(port.read_predicate(index, uniform=uniform))
    return lambda port: port.read_predicate(index, uniform=uniform)


def predicate_value(operand: Operand | None) -> bool | None:
    """The value of PT or !PT, None for any other operand."""
    if isinstance(operand, Predicate) and operand.index == TRUE_PREDICATE:
        return not operand.negate
    return None


def write_word(operand: Operand, step: int = 0) -> Writer:
    """A writer of a register, `step` registers on."""
    if not isinstance(operand, Register):
        message = f"operand {operand} is no register"
        raise UnsupportedFormError(message)
    if operand.index == ZERO_REGISTER:
        return lambda _port, _value: None
    index, uniform = operand.index + step, operand.uniform
    return lambda port, value: port.write_register(index, value, uniform=uniform)


def write_words(operand: Operand, count: int) -> Callable[[Port[Value], list[Value]], None]:
    """A writer of consecutive registers."""
    writers = [write_word(operand, i) for i in range(count)]

    def run(port: Port[Value], values: list[Value]) -> None:
        for write, value in zip(writers, values, strict=True):
            write(port, value)

    return run


def write_long(operand: Operand) -> Writer:
    """A writer of a register pair."""
    low, high = write_word(operand), write_word(operand, 1)

    def run(port: Port[Value], value: Value) -> None:
        low(port, port.algebra.low(value))
        high(port, port.algebra.high(value))

    return run


def write_predicate(operand: Operand | None) -> Writer | None:
    """A writer of a predicate, None for PT or a missing operand: then its value need not be computed."""
    if not isinstance(operand, Predicate) or operand.index == TRUE_PREDICATE:
        return None
    index, uniform = operand.index, operand.uniform
    return lambda port, value: port.write_predicate(index, value, uniform=uniform)
