"""Turns lane operations into how their results differ between blocks: linear forms, and conditions for these to hold.

A value is the same in all blocks, up to a linear form: what each axis of the grid adds to it, a step at a time. A
result is linear only under conditions (no overflow, no comparison that comes out otherwise); each is a `Condition` on
the values of one block, from which follows for which other blocks it holds too. What is not linear is spoiled: then
blocks that differ along its axes are not alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.machine.tables import Table, combine, read_known, read_table, tabulate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

ALL_AXES = frozenset({0, 1, 2})
_FAR = 1 << 62
_FAR_BITS = 24

Axis = int | Table
"""What blocks may differ along: an axis of the grid (0 to 2), or a number that each has in a table."""

Form = tuple[tuple[Axis, int], ...]
"""What a step along each axis adds to a value; axes along which nothing is added are left out."""

SAME: Form = ()


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a value of `bits` bits (1 for predicates) differs between blocks.

    `known` is its number where that is one for all lanes and blocks. Of a value that is `spoiled` no form is known; the
    axes are those to blame (0 to 2). A value that hangs on the block alone, and is one for all its lanes, may have a
    `table`.
    """

    form: Form = SAME
    bits: int = 32
    known: int | None = None
    spoiled: frozenset[int] = frozenset()
    table: Table | None = None

    @property
    def is_same(self) -> bool:
        """Whether the value is the same in all blocks."""
        return self.form == SAME and not self.spoiled

    @property
    def axes(self) -> frozenset[int]:
        """Axes along which the value differs, or may."""
        return self.spoiled.union(*({axis} if isinstance(axis, int) else ALL_AXES for axis, _ in self.form))


class Rule(StrEnum):
    """What a condition asks of the values of an operation's operands, in all active lanes."""

    UNSIGNED = "unsigned"
    """The operand's low word, unsigned, moves by the form without overflow."""
    SIGNED = "signed"
    """The same of a signed word."""
    SIGN = "sign"
    """The operand, a signed word, moves by the form and keeps its sign."""
    BELOW = "below"
    """The operand, which is the same in all blocks, is below the limit."""
    LESS_UNSIGNED = "less_unsigned"
    """The comparison of two words, whose difference moves by the form, comes out the same."""
    LESS_SIGNED = "less_signed"
    EQUAL = "equal"
    QUOTIENT = "quotient"
    """The operand, an unsigned word, divided by two to the power of the limit, gives the same."""
    TABULATED = "tabulated"
    """The operand is what its table says."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A rule for some operands of an operation, by place."""

    rule: Rule
    operands: tuple[int, ...]
    form: Form
    limit: int = 0


Outcome = tuple[Likeness, tuple[Condition, ...]]

_BITS_OF_RESULT = {
    "extend_zero": 64,
    "extend_sign": 64,
    "join": 64,
    "multiply_wide": 64,
    "low": 32,
    "high": 32,
    "from_predicate": 32,
    "ballot": 32,
    "population_count": 32,
    "leading_zeros": 32,
    "equal": 1,
    "less_unsigned": 1,
    "less_signed": 1,
    "float_less": 1,
    "float_equal": 1,
    "is_nan": 1,
}


def add_forms(a: Form, b: Form, bits: int, factor: int = 1) -> Form:
    """The form of a + factor * b, steps modulo the size, as the signed numbers nearest to zero."""
    steps = dict(a)
    for axis, step in b:
        steps[axis] = steps.get(axis, 0) + factor * step
    return _make_form({axis: _wrap(step, bits) for axis, step in steps.items()})


def _make_form(steps: Mapping[Axis, int]) -> Form:
    moving = [(axis, step) for axis, step in steps.items() if step]
    return tuple(sorted(moving, key=lambda pair: str(pair[0] if isinstance(pair[0], int) else pair[0].name)))


def _wrap(step: int, bits: int) -> int:
    step &= (1 << bits) - 1
    return step - (step >> (bits - 1) << bits)


def _scale(form: Form, factor: int, bits: int) -> Form:
    return add_forms(SAME, form, bits, factor)


def spoil(operands: Sequence[Likeness], bits: int, table: Table | None = None) -> Likeness:
    """A result without a form: because of axes that have spoiled an operand, else of those that move one."""
    spoiled: frozenset[int] = frozenset().union(*(operand.spoiled for operand in operands))
    blamed = spoiled or frozenset().union(*(operand.axes for operand in operands))
    return Likeness(bits=bits, spoiled=blamed, table=table)


def relate(operation: str, values: Sequence[Any], options: Mapping[str, Any]) -> Outcome:
    """How the result of an operation of the algebra differs between blocks, and under which conditions.

    `values` are its arguments in order; those that are no likeness are switches.
    """
    operands = [value for value in values if isinstance(value, Likeness)]
    bits = _BITS_OF_RESULT.get(operation) or max(operand.bits for operand in operands)
    if operation == "select":
        bits = operands[1].bits
    if operation in ("permute", "first_active") and all(operand.is_same for operand in operands[1:]):
        return operands[0], ()
    table = _tabulate(operation, values, options)
    if all(operand.is_same for operand in operands):
        return Likeness(bits=bits, known=None if table is None else read_known(table), table=table), ()
    checks: tuple[Condition, ...] = ()
    if table is None:
        operands, checks = _take_as_axes(operands)
    if any(operand.spoiled for operand in operands):
        return spoil(operands, bits, table), ()
    outcome = _relate_linear(operation, operands, bits, options)
    if outcome is None:
        return spoil(operands, bits, table), ()
    return replace(outcome[0], table=table), (*checks, *outcome[1])


def _tabulate(operation: str, values: Sequence[Any], options: Mapping[str, Any]) -> Table | None:
    """The table of a result whose operands all have one, or are known."""
    tables: list[Any] = []
    for value in values:
        if not isinstance(value, Likeness):
            tables.append(value)
        elif value.table is not None:
            tables.append(value.table)
        elif value.known is not None and value.bits in (32, 64):
            dtype = np.uint64 if value.bits == 64 else np.uint32
            tables.append(tabulate(f"{value.known}:{value.bits}", np.full((1, 1), value.known, dtype)))
        else:
            return None
    return combine(operation, tables, options)


def take_as_axis(value: Likeness) -> Likeness:
    """A number without a form, that has a table, as an axis of its own; others as they are."""
    if not value.spoiled or value.table is None or value.bits not in (32, 64):
        return value
    array = read_table(value.table)
    if (array == array[0]).all():
        return Likeness(SAME, value.bits, int(array[0, 0]), table=value.table)
    return Likeness(((value.table, 1),), value.bits, table=value.table)


def take_along_one_axis(a: Likeness, b: Likeness) -> tuple[Likeness, Likeness]:
    """Two numbers as axes of their own, or along the first's where they are equally far apart in all blocks."""
    a, b = take_as_axis(a), take_as_axis(b)
    match a.form, b.form:
        case (((Table() as first, 1),), ((Table() as second, 1),)) if a.bits == b.bits and first != second:
            apart = read_table(first) - read_table(second)
            if (apart == apart[0]).all():
                return a, replace(b, form=a.form)
    return a, b


def _take_as_axes(operands: Sequence[Likeness]) -> tuple[list[Likeness], tuple[Condition, ...]]:
    taken = [take_as_axis(operand) for operand in operands]
    tables = [
        (place, operand.table)
        for place, operand in enumerate(operands)
        if taken[place] is not operand and operand.table is not None
    ]
    return taken, tuple(Condition(Rule.TABULATED, (place,), ((table, 1),)) for place, table in tables)


def _relate_linear(
    operation: str, operands: Sequence[Likeness], bits: int, options: Mapping[str, Any]
) -> Outcome | None:
    """For operands of which some are linear and none is spoiled; None if the result is not linear."""
    a = operands[0]
    match operation:
        case "add" | "subtract":
            factor = 1 if operation == "add" else -1
            return Likeness(add_forms(a.form, operands[1].form, bits, factor), bits), ()
        case "multiply":
            return _multiply(operands, bits)
        case "multiply_wide":
            return _multiply_wide(operands, signed=bool(options["signed"]))
        case "invert":
            return Likeness(_scale(a.form, -1, bits), bits), ()
        case "shift_left" | "shift_right" | "shift_right_signed":
            return _shift(operation, operands, bits)
        case "bit_and" | "bit_or" | "bit_xor":
            return _mask(operation, operands, bits)
        case "equal" | "less_unsigned" | "less_signed":
            return _compare(operation, operands)
        case "select":
            same = operands[0].is_same and operands[1].form == operands[2].form
            return (Likeness(operands[1].form, bits), ()) if same else None
        case _:
            return _resize(operation, operands)


def _resize(operation: str, operands: Sequence[Likeness]) -> Outcome | None:
    """Words to longs and back."""
    a = operands[0]
    match operation:
        case "extend_zero":
            return Likeness(a.form, 64), (Condition(Rule.UNSIGNED, (0,), a.form),)
        case "extend_sign":
            return Likeness(a.form, 64), (Condition(Rule.SIGNED, (0,), a.form),)
        case "low":
            return Likeness(_scale(a.form, 1, 32), 32), ()
        case "high":
            # The upper word moves by whole words only, as long as the lower does not overflow.
            low = _scale(a.form, 1, 32)
            rest = add_forms(a.form, low, 64, -1)
            upper = _make_form({axis: _wrap(step >> 32, 32) for axis, step in rest})
            return Likeness(upper, 32), _stays((0,), low)
        case "join":
            low, high = a.form, operands[1].form
            return Likeness(add_forms(low, high, 64, 1 << 32), 64), _stays((0,), low)
        case _:
            return None


def _stays(operands: tuple[int, ...], form: Form) -> tuple[Condition, ...]:
    return () if form == SAME else (Condition(Rule.UNSIGNED, operands, form),)


def _multiply(operands: Sequence[Likeness], bits: int) -> Outcome | None:
    for one, other in (operands, tuple(reversed(operands))):
        if one.known is not None:
            return Likeness(_scale(other.form, one.known, bits), bits), ()
    return None


def _multiply_wide(operands: Sequence[Likeness], *, signed: bool) -> Outcome | None:
    for place in (0, 1):
        factor, other = operands[1 - place].known, operands[place]
        if factor is not None:
            factor = _wrap(factor, 32) if signed else factor
            rule = Rule.SIGNED if signed else Rule.UNSIGNED
            return Likeness(_scale(other.form, factor, 64), 64), (Condition(rule, (place,), other.form),)
    return None


def _shift(operation: str, operands: Sequence[Likeness], bits: int) -> Outcome | None:
    a, count = operands[0], operands[1].known
    if count is None:
        return None
    if operation == "shift_left":
        return Likeness(_scale(a.form, 1 << count, bits) if count < bits else SAME, bits), ()
    if bits == 32 and count >= 31 and operation == "shift_right_signed":
        return Likeness(bits=bits), (Condition(Rule.SIGN, (0,), a.form),)
    if bits != 32 or count >= bits:
        return None
    if any(step % (1 << count) for _, step in a.form):
        # What is left of the upper bits of an address seldom changes.
        stays = operation == "shift_right" and count >= _FAR_BITS
        return (Likeness(bits=bits), (Condition(Rule.QUOTIENT, (0,), a.form, count),)) if stays else None
    form = _make_form({axis: step >> count for axis, step in a.form})
    rule = Rule.UNSIGNED if operation == "shift_right" else Rule.SIGNED
    return Likeness(form, bits), (Condition(rule, (0,), a.form),)


def _mask(operation: str, operands: Sequence[Likeness], bits: int) -> Outcome | None:
    """Bits below those that move are the same in all blocks, and may be set as if they were added."""
    for place in (0, 1):
        moving, other = operands[place], operands[1 - place]
        if not other.is_same:
            continue
        free = min((step & -step for _, step in moving.form), default=1 << bits)
        if operation != "bit_and":
            if other.known is None:
                return Likeness(moving.form, bits), (Condition(Rule.BELOW, (1 - place,), SAME, free),)
            return (Likeness(moving.form, bits), ()) if other.known < free else None
        if other.known is not None and other.known < free:
            return Likeness(bits=bits), ()
        if other.known is not None and (~other.known & ((1 << bits) - 1)) < free:
            return Likeness(moving.form, bits), ()
    return None


def _compare(operation: str, operands: Sequence[Likeness]) -> Outcome | None:
    a, b = operands
    if a.bits != 32:
        return None
    difference = add_forms(a.form, b.form, 64, -1)
    fit = Rule.UNSIGNED if operation == "less_unsigned" else Rule.SIGNED
    fits = [Condition(fit, (place,), each.form) for place, each in enumerate(operands) if not each.is_same]
    return Likeness(bits=1), (*fits, Condition(Rule(operation), (0, 1), difference))


@dataclass(frozen=True, slots=True)
class Extent:
    """What the run of one block says of a condition: the least and greatest value, and how far these may go.

    A block that lies `steps` away is alike if `least + form * steps >= low` and `greatest + form * steps <= high`.
    """

    form: Form
    least: int
    greatest: int
    low: int
    high: int


def find_alike(
    extents: Sequence[Extent], columns: Mapping[Axis, npt.NDArray[np.int64]], origin: int = 0
) -> npt.NDArray[np.bool_]:
    """Which blocks are like the one at `origin`: bool [n]; `columns` [n] say where each block lies along each axis."""
    rooms: dict[Form, tuple[int, int]] = {}
    for extent in extents:
        down, up = rooms.get(extent.form, (-_FAR, _FAR))
        rooms[extent.form] = max(down, extent.low - extent.least), min(up, extent.high - extent.greatest)
    count = len(next(iter(columns.values())))
    alike = np.ones(count, np.bool_)
    for form, (down, up) in rooms.items():
        moved, size = np.zeros(count, np.int64), np.zeros(count)
        for axis, step in form:
            steps = columns[axis] - columns[axis][origin]
            moved += steps * np.int64(step)
            size += np.abs(steps.astype(np.float64) * step)
        # What does not fit a word of 64 bits proves nothing.
        alike &= (moved >= down) & (moved <= up) & (size < _FAR)
    return alike
