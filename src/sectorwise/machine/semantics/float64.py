"""Turns double-precision opcodes (DADD, DMUL, DFMA, DSETP) into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Predicate
from sectorwise.machine.operands import read_predicate, write_long, write_predicate
from sectorwise.machine.semantics.floats import (
    FLOAT_COMPARISONS,
    compare_floats,
    extreme_bits,
    read_double,
    rounding_of,
)
from sectorwise.machine.semantics.predicates import pick, write_comparison

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port


def add(instruction: Instruction) -> Action:
    """DADD."""
    destination, a, b = instruction.operands
    first, second = read_double(a, instruction), read_double(b, instruction)
    write, rounding = write_long(destination), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, algebra.view_bits(algebra.float_add(first(port), second(port), rounding)))

    return run


def multiply(instruction: Instruction) -> Action:
    """DMUL."""
    destination, a, b = instruction.operands
    first, second = read_double(a, instruction), read_double(b, instruction)
    write, rounding = write_long(destination), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, algebra.view_bits(algebra.float_multiply(first(port), second(port), rounding)))

    return run


def multiply_add(instruction: Instruction) -> Action:
    """DFMA."""
    destination, *values = instruction.operands
    a, b, c = (read_double(operand, instruction) for operand in values)
    write, rounding = write_long(destination), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, algebra.view_bits(algebra.float_fma(a(port), b(port), c(port), rounding)))

    return run


def set_predicate(instruction: Instruction) -> Action:
    """DSETP."""
    values = [operand for operand in instruction.operands[2:] if not isinstance(operand, Predicate)]
    trailing = [operand for operand in instruction.operands[2:] if isinstance(operand, Predicate)]
    a, b = (read_double(operand, instruction) for operand in values)
    for name in ("MIN", "MAX"):
        if instruction.has(name):
            return _choose_extreme(instruction, a, b, largest=name == "MAX")
    comparison = pick(instruction.modifiers, FLOAT_COMPARISONS, "F")

    def compare(port: Port[Value]) -> Value:
        return compare_floats(port.algebra, comparison, a(port), b(port))

    return write_comparison(instruction, compare, trailing[0] if trailing else None)


def _choose_extreme(instruction: Instruction, a: Reader, b: Reader, *, largest: bool) -> Action:
    """DSETP.MIN, DSETP.MAX: whether the first operand is the result, and whether both are NaN."""
    first, second = (write_predicate(operand) for operand in instruction.operands[:2])

    def run(port: Port[Value]) -> None:
        algebra, x, y = port.algebra, a(port), b(port)
        nan_x, nan_y = algebra.is_nan(x), algebra.is_nan(y)
        # Of two zeros the negative one is the smaller.
        negative = algebra.less_signed(algebra.view_bits(x), algebra.long(0))
        favoured = algebra.invert(negative) if largest else negative
        below = algebra.float_less(y, x) if largest else algebra.float_less(x, y)
        below = algebra.bit_or(below, algebra.bit_and(algebra.float_equal(x, y), favoured))
        if first:
            first(port, algebra.bit_or(below, algebra.bit_and(nan_y, algebra.invert(nan_x))))
        if second:
            second(port, algebra.bit_and(nan_x, nan_y))

    return run


def minimum_maximum(instruction: Instruction) -> Action:
    """DMNMX."""
    destination, a, b, choice = [*instruction.operands]
    first, second = read_double(a, instruction), read_double(b, instruction)
    write, minimum = write_long(destination), read_predicate(choice)

    def run(port: Port[Value]) -> None:
        write(port, extreme_bits(port.algebra, first(port), second(port), minimum(port)))

    return run
