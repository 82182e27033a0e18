"""Turns lane operations into how their results differ between blocks: linear forms, and conditions for these to hold.

A value is the same in all blocks, up to a linear form: what each axis of the grid adds to it, a step at a time. A
result is linear only under conditions (no overflow, no comparison that comes out otherwise); each is a `Condition` on
the values of one block, from which follows for which other blocks it holds too. What is not linear is spoiled: then
blocks that differ along its axes are not alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.machine.numpy_algebra import NumpyAlgebra

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

Form = tuple[int, int, int]
"""What a step along each axis of the grid adds to a value."""

SAME: Form = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How a value of `bits` bits (1 for predicates) differs between blocks.

    `known` is its number where that is one for all lanes and blocks. Of a value that is `spoiled` nothing is known; the
    axes are those to blame (0 to 2).
    """

    form: Form = SAME
    bits: int = 32
    known: int | None = None
    spoiled: frozenset[int] = frozenset()

    @property
    def is_same(self) -> bool:
        """Whether the value is the same in all blocks."""
        return self.form == SAME and not self.spoiled

    @property
    def axes(self) -> frozenset[int]:
        """Axes along which the value differs, or may."""
        return self.spoiled | {axis for axis, step in enumerate(self.form) if step}


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


@dataclass(frozen=True, slots=True)
class Condition:
    """A rule for some operands of an operation, by place."""

    rule: Rule
    operands: tuple[int, ...]
    form: Form
    limit: int = 0


Outcome = tuple[Likeness, tuple[Condition, ...]]

_ALGEBRA = NumpyAlgebra()

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
_FOLDABLE = frozenset(
    {
        *("add", "subtract", "multiply", "multiply_wide", "bit_and", "bit_or", "bit_xor", "invert", "join"),
        *("low", "high", "shift_left", "shift_right", "shift_right_signed", "extend_zero", "extend_sign"),
    }
)


def add_forms(a: Form, b: Form, bits: int, factor: int = 1) -> Form:
    """The form of a + factor * b, steps modulo the size, as the signed numbers nearest to zero."""
    x, y, z = (_wrap(p + factor * q, bits) for p, q in zip(a, b, strict=True))
    return x, y, z


def _wrap(step: int, bits: int) -> int:
    step &= (1 << bits) - 1
    return step - (step >> (bits - 1) << bits)


def _scale(form: Form, factor: int, bits: int) -> Form:
    return add_forms(SAME, form, bits, factor)


def spoil(operands: Sequence[Likeness], bits: int) -> Likeness:
    """A result of which nothing is known: because of axes that have spoiled an operand, else of those that move one."""
    spoiled: frozenset[int] = frozenset().union(*(operand.spoiled for operand in operands))
    return Likeness(bits=bits, spoiled=spoiled or frozenset().union(*(operand.axes for operand in operands)))


def relate(operation: str, operands: Sequence[Likeness], options: Mapping[str, Any]) -> Outcome:
    """How the result of an operation of the algebra differs between blocks, and under which conditions."""
    bits = _BITS_OF_RESULT.get(operation) or max(operand.bits for operand in operands)
    if operation == "select":
        bits = operands[1].bits
    if all(operand.is_same for operand in operands):
        return Likeness(bits=bits, known=_fold(operation, operands, options)), ()
    if any(operand.spoiled for operand in operands):
        return spoil(operands, bits), ()
    return _relate_linear(operation, operands, bits, options) or (spoil(operands, bits), ())


def _fold(operation: str, operands: Sequence[Likeness], options: Mapping[str, Any]) -> int | None:
    if operation not in _FOLDABLE or any(operand.known is None or operand.bits == 1 for operand in operands):
        return None
    arrays = [np.full((1, 1), operand.known, np.uint64 if operand.bits == 64 else np.uint32) for operand in operands]
    with np.errstate(all="ignore"):
        return int(getattr(_ALGEBRA, operation)(*arrays, **options)[0, 0])


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
        case "permute" | "first_active":
            return (Likeness(a.form, bits), ()) if operands[1].is_same else None
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
            x, y, z = ((step - part) >> 32 for step, part in zip(a.form, low, strict=True))
            return Likeness((x, y, z), 32), _stays((0,), low)
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
    if bits != 32 or count >= bits or any(step % (1 << count) for step in a.form):
        return None
    x, y, z = (step >> count for step in a.form)
    rule = Rule.UNSIGNED if operation == "shift_right" else Rule.SIGNED
    return Likeness((x, y, z), bits), (Condition(rule, (0,), a.form),)


def _mask(operation: str, operands: Sequence[Likeness], bits: int) -> Outcome | None:
    """Bits below those that move are the same in all blocks, and may be set as if they were added."""
    for place in (0, 1):
        moving, other = operands[place], operands[1 - place]
        if not other.is_same:
            continue
        free = min((step & -step for step in moving.form if step), default=1 << bits)
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
    x, y, z = (p - q for p, q in zip(a.form, b.form, strict=True))
    fit = Rule.UNSIGNED if operation == "less_unsigned" else Rule.SIGNED
    fits = [Condition(fit, (place,), each.form) for place, each in enumerate(operands) if not each.is_same]
    return Likeness(bits=1), (*fits, Condition(Rule(operation), (0, 1), (x, y, z)))


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
    extents: Sequence[Extent], origin: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Which blocks, at `places` [n, 3], are like the one at `origin` [3]: bool [n]."""
    steps = places - origin
    rooms: dict[Form, tuple[int, int]] = {}
    for extent in extents:
        down, up = rooms.get(extent.form, (-(1 << 62), 1 << 62))
        rooms[extent.form] = max(down, extent.low - extent.least), min(up, extent.high - extent.greatest)
    alike = np.ones(len(places), np.bool_)
    for form, (down, up) in rooms.items():
        moved = steps @ np.asarray(form, np.int64)
        alike &= (moved >= down) & (moved <= up)
    return alike
