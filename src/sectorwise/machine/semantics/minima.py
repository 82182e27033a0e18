"""Turns integer minima, maxima and absolute values (VIMNMX and its kin, IABS, VABSDIFF) into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Predicate
from sectorwise.machine.operands import (
    read_long,
    read_predicate,
    read_word,
    unsupported,
    write_long,
    write_predicate,
    write_word,
)

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port


def less(algebra: Algebra[Value], a: Value, b: Value, *, signed: bool) -> Value:
    """Whether a < b, read as signed or unsigned."""
    return algebra.less_signed(a, b) if signed else algebra.less_unsigned(a, b)


def minimum_maximum(instruction: Instruction) -> Action:
    """VIMNMX, IMNMX, UIMNMX: the smaller where the predicate holds, else the larger; VIMNMX3 of three."""
    values = [operand for operand in instruction.operands[1:] if not isinstance(operand, Predicate)]
    choice = [operand for operand in instruction.operands[1:] if isinstance(operand, Predicate)][-1]
    readers, takes_minimum = [read_word(operand) for operand in values], read_predicate(choice)
    write, signed = write_word(instruction.operands[0]), not instruction.has("U32")
    relu = instruction.has("RELU")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        result = readers[0](port)
        for read in readers[1:]:
            result = _extreme(port, result, read(port), takes_minimum, signed=signed)
        if relu:
            zero = algebra.word(0)
            result = algebra.select(algebra.less_signed(result, zero), zero, result)
        write(port, result)

    return run


def _extreme(port: Port[Value], a: Value, b: Value, takes_minimum: Reader, *, signed: bool) -> Value:
    algebra = port.algebra
    takes_first = algebra.bit_xor(less(algebra, b, a, signed=signed), takes_minimum(port))
    return algebra.select(takes_first, a, b)


def minimum_maximum_long(instruction: Instruction) -> Action:
    """IMNMX.S64, IMNMX.U64: the smaller long where the first predicate after the operands holds, else the larger."""
    operands = instruction.operands
    values = [operand for operand in operands if not isinstance(operand, Predicate)]
    first = operands.index(values[0])
    choice = operands[first + len(values)]
    if any(write_predicate(operand) for operand in operands[:first]):
        raise unsupported(instruction, "predicates of 64-bit minima are not known")
    signed = instruction.has("S64")
    a, b = read_long(values[1], signed=signed), read_long(values[2], signed=signed)
    takes_minimum, write = read_predicate(choice), write_long(values[0])

    def run(port: Port[Value]) -> None:
        write(port, _extreme(port, a(port), b(port), takes_minimum, signed=signed))

    return run


def add_minimum_maximum(instruction: Instruction) -> Action:
    """VIADDMNMX: the smaller (or larger) of a + b and c."""
    destination, *values = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    choice = [operand for operand in instruction.operands if isinstance(operand, Predicate)][-1]
    a, b, c = (read_word(operand) for operand in values)
    takes_minimum, write, signed = read_predicate(choice), write_word(destination), not instruction.has("U32")
    relu = instruction.has("RELU")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        result = _extreme(port, algebra.add(a(port), b(port)), c(port), takes_minimum, signed=signed)
        if relu:
            zero = algebra.word(0)
            result = algebra.select(algebra.less_signed(result, zero), zero, result)
        write(port, result)

    return run


def absolute(instruction: Instruction) -> Action:
    """IABS: the signed absolute value; the most negative word stays."""
    read, write = read_word(instruction.operands[1]), write_word(instruction.operands[0])

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        zero = algebra.word(0)
        write(port, algebra.select(algebra.less_signed(value, zero), algebra.subtract(zero, value), value))

    return run


def absolute_difference(instruction: Instruction) -> Action:
    """VABSDIFF: |a - b| + c."""
    destination, *values = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    a, b = read_word(values[0]), read_word(values[1])
    c = read_word(values[2]) if len(values) > 2 else None
    write, signed = write_word(destination), not instruction.has("U32")

    def run(port: Port[Value]) -> None:
        algebra, x, y = port.algebra, a(port), b(port)
        smaller = less(algebra, x, y, signed=signed)
        difference = algebra.select(smaller, algebra.subtract(y, x), algebra.subtract(x, y))
        write(port, difference if c is None else algebra.add(difference, c(port)))

    return run
