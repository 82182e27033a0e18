"""Turns integer comparisons and moves between predicates and registers into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Immediate, Predicate, Register
from sectorwise.machine.operands import (
    predicate_value,
    read_long,
    read_predicate,
    read_word,
    unsupported,
    write_predicate,
    write_word,
)
from sectorwise.machine.semantics.minima import less

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port

INTEGER_COMPARISONS = ("F", "LT", "EQ", "LE", "GT", "NE", "GE", "T")
COMBINATIONS = ("AND", "OR", "XOR")

PREDICATES_IN_A_REGISTER = 7


def compare_integers(
    algebra: Algebra[Value], comparison: str, a: Value, b: Value, carried: Value | None, *, signed: bool
) -> Value:
    """A comparison; with `carried`, that of the lower words, the comparison of 64-bit numbers (EX)."""
    match comparison:
        case "F" | "T":
            return algebra.predicate(comparison == "T")
        case "EQ" | "NE":
            same = algebra.equal(a, b)
            if comparison == "EQ":
                return same if carried is None else algebra.bit_and(same, carried)
            return algebra.invert(same) if carried is None else algebra.bit_or(algebra.invert(same), carried)
        case "GT" | "GE":
            a, b = b, a
    below = less(algebra, a, b, signed=signed)
    if carried is not None:
        return algebra.bit_or(below, algebra.bit_and(algebra.equal(a, b), carried))
    if comparison in ("LT", "GT"):
        return below
    return algebra.invert(less(algebra, b, a, signed=signed))


def combine(name: str, algebra: Algebra[Value]) -> Callable[[Value, Value], Value]:
    """The logical operation of a SETP."""
    match name:
        case "OR":
            return algebra.bit_or
        case "XOR":
            return algebra.bit_xor
        case _:
            return algebra.bit_and


def pick(modifiers: tuple[str, ...], choices: tuple[str, ...], otherwise: str) -> str:
    """The first modifier that is one of these."""
    return next((modifier for modifier in modifiers if modifier in choices), otherwise)


def write_comparison(
    instruction: Instruction, compare: Callable[[Port[Value]], Value], joined: Operand | None
) -> Action:
    """The two predicates of a SETP: the outcome, and its inverse, each combined with a third predicate."""
    first, second = (write_predicate(operand) for operand in instruction.operands[:2])
    operation = pick(instruction.modifiers, COMBINATIONS, "AND")
    neutral = predicate_value(joined) is (operation == "AND")
    other = None if joined is None or neutral else read_predicate(joined)

    def run(port: Port[Value]) -> None:
        algebra, outcome = port.algebra, compare(port)
        inverse = algebra.invert(outcome) if second else None
        if other is not None:
            join, value = combine(operation, algebra), other(port)
            outcome = join(outcome, value)
            inverse = join(inverse, value) if inverse is not None else None
        if first:
            first(port, outcome)
        if second and inverse is not None:
            second(port, inverse)

    return run


def set_predicate(instruction: Instruction) -> Action:
    """ISETP, UISETP: compares two words, or two longs piecewise with EX."""
    operands = instruction.operands
    if not all(isinstance(operand, Predicate) for operand in operands[:2]):
        raise unsupported(instruction, "two predicates are expected first")
    values = [operand for operand in operands[2:] if not isinstance(operand, Predicate)]
    trailing = [operand for operand in operands[2:] if isinstance(operand, Predicate)]
    wide = instruction.has("64") or instruction.has("U64") or instruction.has("S64")
    signed = not (instruction.has("U32") or instruction.has("U64"))
    if wide:
        a, b = (read_long(operand, signed=signed) for operand in values)
    else:
        a, b = (read_word(operand) for operand in values)
    comparison = pick(instruction.modifiers, INTEGER_COMPARISONS, "F")
    carry = read_predicate(trailing[1]) if instruction.has("EX") else None

    def compare(port: Port[Value]) -> Value:
        carried = carry(port) if carry else None
        return compare_integers(port.algebra, comparison, a(port), b(port), carried, signed=signed)

    return write_comparison(instruction, compare, trailing[0] if trailing else None)


def predicates_to_register(instruction: Instruction) -> Action:
    """P2R, UP2UR: puts predicates 0 to 6, as far as the mask asks, into a register's byte (B1 to B3) over `a`."""
    uniform = instruction.opcode.startswith("U")
    destination, _, a, mask = instruction.operands
    if not isinstance(mask, Immediate):
        raise unsupported(instruction, "the mask is no immediate")
    shift = _byte(instruction, destination)
    wanted = [bit for bit in range(PREDICATES_IN_A_REGISTER) if mask.value >> bit & 1]
    base, write = read_word(a), write_word(destination)
    kept = 0xFFFFFFFF ^ sum(1 << bit for bit in wanted) << shift

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        result = algebra.bit_and(base(port), algebra.word(kept))
        for bit in wanted:
            value = algebra.from_predicate(port.read_predicate(bit, uniform=uniform))
            result = algebra.bit_or(result, algebra.shift_left(value, algebra.word(bit + shift)))
        write(port, result)

    return run


def register_to_predicates(instruction: Instruction) -> Action:
    """R2P, R2UP: takes predicates 0 to 6, as far as the mask asks, from a register's byte."""
    _, a, mask = instruction.operands
    if not isinstance(mask, Immediate):
        raise unsupported(instruction, "the mask is no immediate")
    read = read_word(a)
    shift = 0 if isinstance(a, Register) and a.suffixes else _byte(instruction, a)
    wanted = [bit for bit in range(PREDICATES_IN_A_REGISTER) if mask.value >> bit & 1]

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        for bit in wanted:
            clear = algebra.equal(algebra.bit_and(value, algebra.word(1 << bit + shift)), algebra.word(0))
            port.write_predicate(bit, algebra.invert(clear))

    return run


def _byte(instruction: Instruction, operand: Operand) -> int:
    suffixes = operand.suffixes if isinstance(operand, Register) else ()
    for name in (*instruction.modifiers, *suffixes):
        if name in ("B1", "B2", "B3"):
            return 8 * int(name[1])
    return 0
