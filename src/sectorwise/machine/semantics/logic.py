"""Turns bit logic (LOP3, PLOP3, SHF, PRMT, masks and fields) into lane operations, truth tables simplified first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sectorwise.binary.ir import Immediate, Predicate
from sectorwise.machine.operands import (
    is_zero,
    predicate_value,
    read_predicate,
    read_word,
    split_predicates,
    unsupported,
    write_predicate,
    write_word,
)

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Writer
    from sectorwise.machine.port import Port

Table = tuple[bool, ...]
"""Outcomes by inputs, the first input the most significant bit of the index."""

Expression = Callable[["Algebra[Value]", "tuple[Value, ...]"], "Value"]


def simplify(table: Table, inputs: tuple[int, ...]) -> Expression:
    """A short expression for a truth table, not constant, over the values at these places."""
    place, rest = inputs[0], inputs[1:]
    half = len(table) // 2
    without, given = table[:half], table[half:]
    if without == given:
        return simplify(given, rest)
    if without == tuple(not outcome for outcome in given):
        return _exclusive(place, without, rest)
    if all(given) or not any(given):
        return _decided(place, simplify(without, rest), value_decides=all(given))
    if all(without) or not any(without):
        return _decided_inverse(place, simplify(given, rest), value_decides=all(without))
    no, yes = simplify(without, rest), simplify(given, rest)

    def multiplex(algebra: Algebra[Value], values: tuple[Value, ...]) -> Value:
        first = no(algebra, values)
        return algebra.bit_xor(first, algebra.bit_and(values[place], algebra.bit_xor(first, yes(algebra, values))))

    return multiplex


def _exclusive(place: int, without: Table, rest: tuple[int, ...]) -> Expression:
    """The value at a place flips the outcome of the others."""
    if not any(without):
        return lambda _algebra, values: values[place]
    if all(without):
        return lambda algebra, values: algebra.invert(values[place])
    other = simplify(without, rest)
    return lambda algebra, values: algebra.bit_xor(values[place], other(algebra, values))


def _decided(place: int, other: Expression, *, value_decides: bool) -> Expression:
    """Where the value at a place is set, the outcome is `value_decides`; elsewhere that of the others."""
    if value_decides:
        return lambda algebra, values: algebra.bit_or(values[place], other(algebra, values))
    return lambda algebra, values: algebra.bit_and(algebra.invert(values[place]), other(algebra, values))


def _decided_inverse(place: int, other: Expression, *, value_decides: bool) -> Expression:
    """Where the value at a place is clear, the outcome is `value_decides`; elsewhere that of the others."""
    if value_decides:
        return lambda algebra, values: algebra.bit_or(algebra.invert(values[place]), other(algebra, values))
    return lambda algebra, values: algebra.bit_and(values[place], other(algebra, values))


def table_of(value: int, fixed: tuple[bool | None, bool | None, bool | None]) -> Table:
    """The eight outcomes of a SASS truth table (bit 4a + 2b + c), with inputs that are constant put in."""
    outcomes = []
    for index in range(8):
        place = 0
        for bit, constant in zip((4, 2, 1), fixed, strict=True):
            on = bool(index & bit) if constant is None else constant
            place |= bit if on else 0
        outcomes.append(bool(value >> place & 1))
    return tuple(outcomes)


def evaluate_table(
    value: int, fixed: tuple[bool | None, bool | None, bool | None], constant: Callable[[Algebra[Value], bool], Value]
) -> Expression:
    """An expression for a SASS truth table whose constant inputs are known; `constant` makes a constant outcome."""
    table = table_of(value, fixed)
    if all(table) or not any(table):
        outcome = table[0]
        return lambda algebra, _values: constant(algebra, outcome)
    return simplify(table, (0, 1, 2))


def _word(algebra: Algebra[Value], value: bool) -> Value:  # noqa: FBT001 - a value, not a switch
    return algebra.word(-1 if value else 0)


def _predicate(algebra: Algebra[Value], value: bool) -> Value:  # noqa: FBT001 - a value, not a switch
    return algebra.predicate(value)


def logic3(instruction: Instruction) -> Action:
    """LOP3, ULOP3: any function of three words; the predicate tells whether the result has a bit set."""
    leading = [operand for operand in instruction.operands[:1] if isinstance(operand, Predicate)]
    destination, *values = instruction.operands[len(leading) :]
    a, b, c, lut, *tail = values
    if not isinstance(lut, Immediate):
        raise unsupported(instruction, "the truth table is no immediate")
    zero_a, zero_b, zero_c = (False if is_zero(operand) else None for operand in (a, b, c))
    expression = evaluate_table(lut.value, (zero_a, zero_b, zero_c), _word)
    readers = tuple(read_word(operand) for operand in (a, b, c))
    write, write_any = write_word(destination), write_predicate(leading[0] if leading else None)
    joins_and = instruction.has("PAND")
    joined = tail[0] if tail else None
    other = None if predicate_value(joined) is joins_and else joined
    read_other = read_predicate(other) if other is not None else None

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        result = expression(algebra, tuple(read(port) for read in readers))
        write(port, result)
        if write_any is None:
            return
        found = algebra.invert(algebra.equal(result, algebra.word(0)))
        if read_other is not None:
            combine = algebra.bit_and if joins_and else algebra.bit_or
            found = combine(found, read_other(port))
        write_any(port, found)

    return run


def predicate_logic3(instruction: Instruction) -> Action:
    """PLOP3, UPLOP3: two functions of three predicates."""
    first, second, a, b, c, *tables = instruction.operands
    readers = tuple(read_predicate(operand) for operand in (a, b, c))
    fixed_a, fixed_b, fixed_c = (predicate_value(operand) for operand in (a, b, c))
    outputs: list[tuple[Writer, Expression]] = []
    for destination, table in zip((first, second), tables, strict=True):
        if not isinstance(table, Immediate):
            raise unsupported(instruction, "a truth table is no immediate")
        write = write_predicate(destination)
        if write is not None:
            outputs.append((write, evaluate_table(table.value, (fixed_a, fixed_b, fixed_c), _predicate)))

    def run(port: Port[Value]) -> None:
        values = tuple(read(port) for read in readers)
        for write, expression in outputs:
            write(port, expression(port.algebra, values))

    return run


def funnel_shift(instruction: Instruction) -> Action:
    """SHF, USHF: shifts {c, a} by b; L or R, the upper word with HI, the lower without.

    U32 and S32 clamp the count at 32, U64 and S64 at 64; W wraps it instead. S forms fill with the sign when they
    shift right.
    """
    destination, a, count, c = instruction.operands
    wide = instruction.has("U64") or instruction.has("S64")
    signed = instruction.has("S32") or instruction.has("S64")
    left, upper, wraps = instruction.has("L"), instruction.has("HI"), instruction.has("W")
    if isinstance(count, Immediate):
        places = count.value & (63 if wide else 31) if wraps else min(count.value & 0xFFFFFFFF, 64 if wide else 32)
        if places < 32:
            return _shift_by_constant(destination, (a, c), places, left=left, upper=upper, signed=signed)
    low, high, amount, write = read_word(a), read_word(c), read_word(count), write_word(destination)
    limit = 64 if wide else 32

    def run(port: Port[Value]) -> None:
        algebra, n = port.algebra, amount(port)
        if wraps:
            n = algebra.bit_and(n, algebra.word(limit - 1))
        else:
            n = algebra.select(algebra.less_unsigned(n, algebra.word(limit)), n, algebra.word(limit))
        places = algebra.extend_zero(n)
        pair = algebra.join(low(port), high(port))
        if left:
            moved = algebra.shift_left(pair, places)
        elif signed:
            moved = algebra.shift_right_signed(pair, places)
        else:
            moved = algebra.shift_right(pair, places)
        write(port, algebra.high(moved) if upper else algebra.low(moved))

    return run


def _shift_by_constant(
    destination: Operand, pair: tuple[Operand, Operand], places: int, *, left: bool, upper: bool, signed: bool
) -> Action:
    """A funnel shift by fewer than 32 places, in words."""
    write, low, high = write_word(destination), read_word(pair[0]), read_word(pair[1])
    main, other = (high, low) if upper else (low, high)
    crosses = places > 0 and (left == upper) and not is_zero(pair[0] if upper else pair[1])

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        value, count = main(port), algebra.word(places)
        if left:
            value = algebra.shift_left(value, count)
        elif signed and upper:
            value = algebra.shift_right_signed(value, count)
        else:
            value = algebra.shift_right(value, count)
        if crosses:
            rest = algebra.word(32 - places)
            moved = algebra.shift_right(other(port), rest) if left else algebra.shift_left(other(port), rest)
            value = algebra.bit_or(value, moved)
        write(port, value)

    return run


def shift_word(instruction: Instruction) -> Action:
    """SHL, SHR, USHL, USHR: shifts of one word; the count clamps, or wraps with W."""
    destination, a, count = instruction.operands[:3]
    read, amount, write = read_word(a), read_word(count), write_word(destination)
    left, wraps = instruction.opcode.endswith("SHL"), instruction.has("W")
    signed = not instruction.has("U32")

    def run(port: Port[Value]) -> None:
        algebra, n = port.algebra, amount(port)
        if wraps:
            n = algebra.bit_and(n, algebra.word(31))
        if left:
            write(port, algebra.shift_left(read(port), n))
        elif signed:
            write(port, algebra.shift_right_signed(read(port), n))
        else:
            write(port, algebra.shift_right(read(port), n))

    return run


def reverse(instruction: Instruction) -> Action:
    """BREV: bits in reverse order."""
    read, write = read_word(instruction.operands[-1]), write_word(instruction.operands[0])
    return lambda port: write(port, port.algebra.reverse_bits(read(port)))


def bit_mask(instruction: Instruction) -> Action:
    """BMSK: `b` ones from place `a` up; W wraps both at 32, else they clamp."""
    destination, a, b = instruction.operands
    start, width, write = read_word(a), read_word(b), write_word(destination)
    wraps = instruction.has("W")

    def run(port: Port[Value]) -> None:
        algebra, place, count = port.algebra, start(port), width(port)
        if wraps:
            place, count = algebra.bit_and(place, algebra.word(31)), algebra.bit_and(count, algebra.word(31))
        ones = algebra.invert(algebra.shift_left(algebra.word(-1), count))
        write(port, algebra.shift_left(ones, place))

    return run


def extend_field(instruction: Instruction) -> Action:
    """SGXT: the low `b` bits of `a`, extended with their sign, or with zeros for U32; W wraps `b` at 32."""
    destination, a, b = instruction.operands
    read, width, write = read_word(a), read_word(b), write_word(destination)
    wraps, unsigned = instruction.has("W"), instruction.has("U32")

    def run(port: Port[Value]) -> None:
        algebra, count = port.algebra, width(port)
        if wraps:
            count = algebra.bit_and(count, algebra.word(31))
        full = algebra.word(32)
        count = algebra.select(algebra.less_unsigned(count, full), count, full)
        rest = algebra.subtract(full, count)
        moved = algebra.shift_left(read(port), rest)
        shift = algebra.shift_right if unsigned else algebra.shift_right_signed
        empty = algebra.equal(count, algebra.word(0))
        write(port, algebra.select(empty, algebra.word(0), shift(moved, rest)))

    return run


_BYTE_ORDERS: dict[str, tuple[tuple[int, ...], ...]] = {
    "F4E": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "B4E": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "RC8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ECL": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ECR": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "RC16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}
"""Bytes picked in each mode by the two low bits of the selector, lowest result byte first (PTX ISA, prmt)."""


def permute_bytes(instruction: Instruction) -> Action:
    """PRMT: four bytes picked from {c, a} by the selector b; bit 3 of a pick spreads the byte's sign."""
    _, rest = split_predicates(instruction)
    destination, a, selector, c = rest
    low, high, write = read_word(a), read_word(c), write_word(destination)
    mode = next((modifier for modifier in instruction.modifiers if modifier in _BYTE_ORDERS), None)
    if isinstance(selector, Immediate):
        picks = _picks(selector.value, mode)
        return lambda port: write(port, _gather(port.algebra, (low(port), high(port)), picks))
    choose = read_word(selector)

    def run(port: Port[Value]) -> None:
        algebra, value = port.algebra, choose(port)
        pair = algebra.join(low(port), high(port))
        if mode is None:
            write(port, _gather_variable(algebra, pair, value))
            return
        words = (low(port), high(port))
        results = [_gather(algebra, words, _picks(place, mode)) for place in range(4)]
        place = algebra.bit_and(value, algebra.word(3))
        result = results[3]
        for index in range(3):
            result = algebra.select(algebra.equal(place, algebra.word(index)), results[index], result)
        write(port, result)

    return run


def _picks(selector: int, mode: str | None) -> tuple[int, ...]:
    if mode is not None:
        return _BYTE_ORDERS[mode][selector & 3]
    return tuple(selector >> 4 * place & 15 for place in range(4))


def _gather(algebra: Algebra[Value], words: tuple[Value, Value], picks: tuple[int, ...]) -> Value:
    """Bytes at places known before; bytes that move alike move together."""
    moves: dict[tuple[int, int], int] = {}
    result: Value | None = None
    for place, pick in enumerate(picks):
        if pick & 8:
            word = words[pick >> 2 & 1]
            top = algebra.shift_left(word, algebra.word(24 - 8 * (pick & 3)))
            sign = algebra.shift_right_signed(top, algebra.word(31))
            part = algebra.bit_and(sign, algebra.word(0xFF << 8 * place))
            result = part if result is None else algebra.bit_or(result, part)
        else:
            key = (pick >> 2 & 1, place - (pick & 3))
            moves[key] = moves.get(key, 0) | 0xFF << 8 * place
    for (which, distance), mask in moves.items():
        part = words[which]
        if distance > 0:
            part = algebra.shift_left(part, algebra.word(8 * distance))
        elif distance < 0:
            part = algebra.shift_right(part, algebra.word(-8 * distance))
        part = algebra.bit_and(part, algebra.word(mask))
        result = part if result is None else algebra.bit_or(result, part)
    return algebra.word(0) if result is None else result


def _gather_variable(algebra: Algebra[Value], pair: Value, selector: Value) -> Value:
    result = algebra.word(0)
    for place in range(4):
        pick = algebra.shift_right(selector, algebra.word(4 * place))
        count = algebra.shift_left(algebra.bit_and(pick, algebra.word(7)), algebra.word(3))
        byte = algebra.low(algebra.shift_right(pair, algebra.extend_zero(count)))
        moved = algebra.shift_left(byte, algebra.word(24))
        sign = algebra.shift_right_signed(moved, algebra.word(31))
        spread = algebra.equal(algebra.bit_and(pick, algebra.word(8)), algebra.word(0))
        chosen = algebra.bit_and(algebra.select(spread, byte, sign), algebra.word(0xFF))
        result = algebra.bit_or(result, algebra.shift_left(chosen, algebra.word(8 * place)))
    return result
