"""Turns integer arithmetic (IADD3, IMAD, LEA, minima, bit counts) into lane operations, carries included."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from sectorwise.binary.ir import Constant, Immediate, Predicate, Register
from sectorwise.machine.operands import (
    is_zero,
    predicate_value,
    raw_word,
    read_long,
    read_predicate,
    read_word,
    split_predicates,
    unsupported,
    write_long,
    write_predicate,
    write_word,
)

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action, Reader, Writer
    from sectorwise.machine.port import Port


def _take_apart(instruction: Instruction) -> tuple[Operand, list[Operand], list[Writer | None], list[Reader]]:
    """Destination, value operands, writers of carries out, readers of carries in (those that can be true)."""
    leading, rest = split_predicates(instruction)
    values: list[Operand] = [operand for operand in rest[1:] if not isinstance(operand, Predicate)]
    carries_in: list[Reader] = []
    if instruction.has("X"):
        trailing = [operand for operand in rest[1:] if isinstance(operand, Predicate)]
        carries_in = [read_predicate(operand) for operand in trailing if predicate_value(operand) is not False]
    return rest[0], values, [write_predicate(predicate) for predicate in leading], carries_in


def _negates(operand: Operand) -> bool:
    return isinstance(operand, Register | Constant) and operand.negate


def _wide_term(operand: Operand) -> Reader:
    """A word as a long with what it adds to a carry chain: `-x` is `~x + 1`, carried past bit 31 where x is zero."""
    if _negates(operand):
        return _complemented(read_word(_unsigned_form(operand)))
    return _extended(read_word(operand))


def add3(instruction: Instruction) -> Action:
    """IADD3, UIADD3, VIADD, IADD: the sum of up to three words, with up to two carries in and two out."""
    destination, values, carries_out, carries_in = _take_apart(instruction)
    if instruction.has("64"):
        return _add_long(instruction, destination, values, carries_out, carries_in)
    write = write_word(destination)
    if any(carries_out):
        # A negated zero is ~0 + 1 there: it carries.
        terms = [operand for operand in values if not is_zero(operand) or _negates(operand)]
        if len(terms) == 2 and not carries_in and not any(_negates(term) for term in terms):
            return _add_two(write, terms, carries_out)
        return _add_carrying(write, terms, carries_in, carries_out)
    readers = [read_word(operand) for operand in values if not is_zero(operand)]

    def run(port: Port[Value]) -> None:
        write(port, _total(port, readers, carries_in))

    return run


def _total(port: Port[Value], readers: list[Reader], carries_in: list[Reader]) -> Value:
    algebra = port.algebra
    total = readers[0](port) if readers else algebra.word(0)
    for read in readers[1:]:
        total = algebra.add(total, read(port))
    for carry in carries_in:
        total = algebra.add(total, algebra.from_predicate(carry(port)))
    return total


def _add_two(write: Writer, terms: list[Operand], carries_out: list[Writer | None]) -> Action:
    """The common low half of a 64-bit sum."""
    first, second = read_word(terms[0]), read_word(terms[1])
    carry, never = [*carries_out, None][:2]

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        a = first(port)
        total = algebra.add(a, second(port))
        write(port, total)
        if carry:
            carry(port, algebra.less_unsigned(total, a))
        if never:
            never(port, algebra.predicate(False))  # noqa: FBT003 - a value

    return run


def _add_carrying(
    write: Writer, terms: list[Operand], carries_in: list[Reader], carries_out: list[Writer | None]
) -> Action:
    readers = [_wide_term(term) for term in terms]

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        total = readers[0](port) if readers else algebra.long(0)
        for read in readers[1:]:
            total = algebra.add(total, read(port))
        for carry in carries_in:
            total = algebra.add(total, algebra.extend_zero(algebra.from_predicate(carry(port))))
        write(port, algebra.low(total))
        over = algebra.high(total)
        for count, out in enumerate(carries_out):
            if out:
                out(port, algebra.less_unsigned(algebra.word(count), over))

    return run


def _add_long(
    instruction: Instruction,
    destination: Operand,
    values: list[Operand],
    carries_out: list[Writer | None],
    carries_in: list[Reader],
) -> Action:
    if any(carries_out) or carries_in:
        raise unsupported(instruction, "carries of 64-bit sums are not known")
    readers = [read_long(operand, signed=True) for operand in values if not is_zero(operand)]
    write = write_long(destination)

    def run(port: Port[Value]) -> None:
        total = readers[0](port) if readers else port.algebra.long(0)
        for read in readers[1:]:
            total = port.algebra.add(total, read(port))
        write(port, total)

    return run


def multiply_add(instruction: Instruction) -> Action:
    """IMAD, UIMAD in all forms: low, WIDE (a long), HI (upper word of the long), each with carries."""
    if instruction.has("WIDE") or instruction.has("HI"):
        return _multiply_add_wide(instruction)
    destination, values, carries_out, carries_in = _take_apart(instruction)
    if any(carries_out):
        raise unsupported(instruction, "the carry out of a 32-bit multiply-add is not known")
    if instruction.has("MOV"):
        values = values[-1:]
    write = write_word(destination)
    factor, scale, addend = values if len(values) == 3 else (Immediate(0), Immediate(0), values[-1])
    readers = [] if is_zero(addend) else [read_word(addend)]
    if not (is_zero(factor) or is_zero(scale)):
        readers.insert(0, _product(factor, scale))

    def run(port: Port[Value]) -> None:
        write(port, _total(port, readers, carries_in))

    return run


def _product(factor: Operand, scale: Operand) -> Reader:
    a, b = read_word(factor), read_word(scale)
    if isinstance(scale, Immediate):
        value = scale.value & 0xFFFFFFFF
        if value == 1:
            return a
        if value & (value - 1) == 0:
            count = value.bit_length() - 1
            return lambda port: port.algebra.shift_left(a(port), port.algebra.word(count))
    return lambda port: port.algebra.multiply(a(port), b(port))


def _unsigned_form(operand: Operand) -> Operand:
    return replace(operand, negate=False) if isinstance(operand, Register | Constant) else operand


def _complement_form(operand: Operand) -> Operand:
    return replace(operand, negate=False, invert=True) if isinstance(operand, Register | Constant) else operand


def _multiply_add_wide(instruction: Instruction) -> Action:
    """The value of a * b + c in 64 bits; HI keeps the upper word, and its c is a pair too.

    Integer division relies on that pair: its lower word is zero there, its upper word the estimate to correct.
    """
    destination, values, carries_out, carries_in = _take_apart(instruction)
    signed = not instruction.has("U32")
    negative = _negates(values[0]) != _negates(values[1])
    a, b = raw_word(_unsigned_form(values[0])), raw_word(_unsigned_form(values[1]))
    # A negated addend enters a carry chain as ~c, then 1.
    complements = any(carries_out) and _negates(values[2])
    addend = _complement_form(values[2]) if complements else values[2]
    c = None if is_zero(addend) else read_long(addend, signed=signed)
    write_pair = None if instruction.has("HI") else write_long(destination)
    write_high = write_word(destination) if instruction.has("HI") else None

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        total = algebra.multiply_wide(a(port), b(port), signed=signed)
        if negative:
            total = algebra.subtract(algebra.long(0), total)
        over = None
        ones = [algebra.long(1)] if complements else []
        for term in _long_terms(port, c, carries_in) + ones:
            product, total = total, algebra.add(total, term)
            carry = algebra.less_unsigned(total, product)
            over = carry if over is None else algebra.bit_or(over, carry)
        if write_pair:
            write_pair(port, total)
        if write_high:
            write_high(port, algebra.high(total))
        for out in carries_out:
            if out:
                out(port, algebra.predicate(False) if over is None else over)  # noqa: FBT003 - a value

    return run


def _long_terms(port: Port[Value], addend: Reader | None, carries_in: list[Reader]) -> list[Value]:
    algebra = port.algebra
    terms = [] if addend is None else [addend(port)]
    return terms + [algebra.extend_zero(algebra.from_predicate(carry(port))) for carry in carries_in]


def shift_add(instruction: Instruction) -> Action:
    """LEA, ULEA: (a << n) + b; HI takes the upper word of ({c, a} << n), SX32 makes c the sign of a."""
    destination, values, carries_out, carries_in = _take_apart(instruction)
    shift_operand = values[-1]
    if not isinstance(shift_operand, Immediate):
        raise unsupported(instruction, "the shift is no immediate")
    count = shift_operand.value & 31
    write = write_word(destination)
    carry_out = carries_out[0] if carries_out else None
    if instruction.has("HI") and _negates(values[0]):
        raise unsupported(instruction, "a negated 64-bit shift is not known")
    if carry_out and (_negates(values[0]) or _negates(values[1])):
        shifted = _shifted(instruction, [_unsigned_form(values[0]), *values[1:]], count)
        terms = [_complemented(shifted) if _negates(values[0]) else _extended(shifted), _wide_term(values[1])]
        return _add_long_terms(write, carry_out, terms, carries_in)
    shifted = _shifted(instruction, values, count)
    base = None if is_zero(values[1]) else read_word(values[1])

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        total, over = shifted(port), None
        terms = [] if base is None else [base(port)]
        terms += [algebra.from_predicate(carry(port)) for carry in carries_in]
        for term in terms:
            before, total = total, algebra.add(total, term)
            if carry_out:
                carry = algebra.less_unsigned(total, before)
                over = carry if over is None else algebra.bit_or(over, carry)
        write(port, total)
        if carry_out:
            carry_out(port, algebra.predicate(False) if over is None else over)  # noqa: FBT003 - a value

    return run


def _extended(read: Reader) -> Reader:
    return lambda port: port.algebra.extend_zero(read(port))


def _complemented(read: Reader) -> Reader:
    """A word's negative as it enters a carry chain: `~x + 1`, in 33 bits."""

    def run(port: Port[Value]) -> Value:
        algebra = port.algebra
        return algebra.add(algebra.extend_zero(algebra.invert(read(port))), algebra.long(1))

    return run


def _add_long_terms(write: Writer, carry_out: Writer, terms: list[Reader], carries_in: list[Reader]) -> Action:
    """The low word of a sum of longs, and whether it goes beyond a word."""

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        total = terms[0](port)
        for term in terms[1:]:
            total = algebra.add(total, term(port))
        for carry in carries_in:
            total = algebra.add(total, algebra.extend_zero(algebra.from_predicate(carry(port))))
        write(port, algebra.low(total))
        carry_out(port, algebra.less_unsigned(algebra.word(0), algebra.high(total)))

    return run


def _shifted(instruction: Instruction, values: list[Operand], count: int) -> Reader:
    low = read_word(values[0])
    if not instruction.has("HI"):
        return lambda port: port.algebra.shift_left(low(port), port.algebra.word(count))
    if instruction.has("SX32"):
        # The upper word of a sign-extended word shifted left is the word shifted right with its sign.
        if count == 0:
            return lambda port: port.algebra.shift_right_signed(low(port), port.algebra.word(31))
        return lambda port: port.algebra.shift_right_signed(low(port), port.algebra.word(32 - count))
    if is_zero(values[2]):
        return lambda port: port.algebra.shift_right(low(port), port.algebra.word(32 - count))
    high = read_word(values[2])

    def funnel(port: Port[Value]) -> Value:
        algebra = port.algebra
        upper = algebra.shift_left(high(port), algebra.word(count))
        return algebra.bit_or(upper, algebra.shift_right(low(port), algebra.word(32 - count)))

    return funnel


def add_saturated(instruction: Instruction) -> Action:
    """VIADD.ISAT: the signed sum of two words, held at the ends of its range."""
    if instruction.has("U32"):
        raise unsupported(instruction, "unsigned saturation is not known")
    destination, a, b = instruction.operands
    negates = _negates(b)
    first, second = read_word(a), read_word(_unsigned_form(b))
    write = write_word(destination)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        x, y = algebra.extend_sign(first(port)), algebra.extend_sign(second(port))
        total = algebra.subtract(x, y) if negates else algebra.add(x, y)
        top, bottom = algebra.long(0x7FFFFFFF), algebra.long(-0x80000000)
        total = algebra.select(algebra.less_signed(top, total), top, total)
        total = algebra.select(algebra.less_signed(total, bottom), bottom, total)
        write(port, algebra.low(total))

    return run


def count_bits(instruction: Instruction) -> Action:
    """POPC: the number of set bits."""
    read, write = read_word(instruction.operands[-1]), write_word(instruction.operands[0])
    return lambda port: write(port, port.algebra.population_count(read(port)))


def find_leading_one(instruction: Instruction) -> Action:
    """FLO: place of the highest bit that differs from the sign (signed) or is set (U32); SH counts from the top."""
    _, rest = split_predicates(instruction)
    read, write = read_word(rest[-1]), write_word(rest[0])
    signed, from_top = not instruction.has("U32"), instruction.has("SH")

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, read(port)
        if signed:
            value = algebra.bit_xor(value, algebra.shift_right_signed(value, algebra.word(31)))
        zeros = algebra.leading_zeros(value)
        place = zeros if from_top else algebra.subtract(algebra.word(31), zeros)
        none = algebra.equal(value, algebra.word(0))
        write(port, algebra.select(none, algebra.word(0xFFFFFFFF), place))

    return run


def shifted_add(instruction: Instruction) -> Action:
    """ISCADD: (a << n) + b."""
    destination, a, b, shift = instruction.operands
    first, second, count, write = read_word(a), read_word(b), read_word(shift), write_word(destination)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        write(port, algebra.add(algebra.shift_left(first(port), count(port)), second(port)))

    return run
