"""Turns an index expression (`(i / 8) * 4096 + i % 8 * 16`) into a number for each lane, without running any Python.

The operators are C's, with C's precedence and rounding, and `//`, which rounds down. Names are given by the caller.
`min(a, b)`, `max(a, b)`, a swizzle `Swizzle<3,4,3>(x)` and a layout `[(32,4):(4,128)](x)` are functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.layout.notation import at_swizzle, read_layout, read_swizzle
from sectorwise.layout.reader import LARGEST_NUMBER, open_reader, read_number, suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from sectorwise.tokens import Cursor, Token

    Lanes = npt.NDArray[np.int64]
    Names = Mapping[str, Lanes]

_LEVELS: Final = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "//", "%"),
)
"""Binary operators, loosest first, as in C."""

_FUNCTIONS: Final[Mapping[str, Callable[[Lanes, Lanes], Lanes]]] = {"min": np.minimum, "max": np.maximum}
_WIDEST_SHIFT: Final = 47


def evaluate(text: str, names: Names, what: str = "expression") -> Lanes:
    """The value of the expression for each lane, an int64 array of the names' common shape.

    Raises `ArgumentError` with a caret: an unknown name (the nearest is named), a division by zero, a value of more
    than 48 bits, or what does not parse.
    """
    reader = open_reader(text, what)
    value = _read_choice(reader, names)
    reader.expect_end()
    shape = np.broadcast_shapes(*(array.shape for array in names.values()))
    return np.broadcast_to(value, shape).astype(np.int64)


def _read_choice(reader: Cursor, names: Names) -> Lanes:
    condition = _read_level(reader, names, 0)
    if not reader.accept("?"):
        return condition
    reader.enter()
    chosen = _read_choice(reader, names)
    reader.expect(":", "':' of the choice")
    other = _read_choice(reader, names)
    reader.leave()
    return np.where(condition != 0, chosen, other)


def _read_level(reader: Cursor, names: Names, level: int) -> Lanes:
    if level == len(_LEVELS):
        return _read_unary(reader, names)
    value = _read_level(reader, names, level + 1)
    while reader.at(*_LEVELS[level]):
        operator = reader.take()
        right_token = reader.token
        right = _read_level(reader, names, level + 1)
        value = _bounded(reader, operator, _apply(reader, operator, right_token, value, right))
    return value


def _read_unary(reader: Cursor, names: Names) -> Lanes:
    if reader.at("-", "~", "!", "+"):
        operator = reader.take()
        reader.enter()
        value = _read_unary(reader, names)
        reader.leave()
        match operator.text:
            case "-":
                return -value
            case "~":
                return np.asarray(~value, dtype=np.int64)
            case "!":
                return np.equal(value, 0).astype(np.int64)
            case _:
                return value
    return _read_primary(reader, names)


def _read_primary(reader: Cursor, names: Names) -> Lanes:
    token = reader.token
    if at_swizzle(reader):
        swizzle = read_swizzle(reader)
        return swizzle.offsets(_read_argument(reader, names, str(swizzle)))
    if token.kind == "number":
        return np.asarray(read_number(reader), dtype=np.int64)
    if reader.accept("["):
        layout = read_layout(reader)
        reader.expect("]")
        index_token = reader.token
        index = _read_argument(reader, names, "the layout")
        outside = index[(index < 0) | (index >= layout.size)]
        if outside.size:
            raise reader.error(
                f"index {int(outside.flat[0])} is outside of {layout}, of size {layout.size}", index_token
            )
        return _bounded(reader, token, layout.offsets(index))
    if reader.accept("("):
        reader.enter()
        value = _read_choice(reader, names)
        reader.expect(")", "')'")
        reader.leave()
        return value
    if token.kind == "name":
        return _read_name(reader, names)
    raise reader.error(f"expected a number, a name or '(', got {token}")


def _read_name(reader: Cursor, names: Names) -> Lanes:
    token = reader.take()
    if reader.at("(") and token.text in _FUNCTIONS:
        reader.take()
        reader.enter()
        first = _read_choice(reader, names)
        reader.expect(",", f"',' and the second argument of {token.text}")
        second = _read_choice(reader, names)
        reader.expect(")", "')'")
        reader.leave()
        return _FUNCTIONS[token.text](first, second)
    if token.text not in names:
        raise reader.error(f"there is no name {token}{suggest(token.text, [*names, *_FUNCTIONS])}", token)
    return names[token.text]


def _read_argument(reader: Cursor, names: Names, of: str) -> Lanes:
    reader.expect("(", f"'(' and what {of} is applied to")
    reader.enter()
    value = _read_choice(reader, names)
    reader.expect(")", "')'")
    reader.leave()
    return value


def _apply(reader: Cursor, operator: Token, right_token: Token, left: Lanes, right: Lanes) -> Lanes:
    match operator.text:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return _multiply(reader, operator, left, right)
        case "<<" | ">>":
            if np.any((right < 0) | (right > _WIDEST_SHIFT)):
                raise reader.error(f"expected a shift of 0 to {_WIDEST_SHIFT}, got {_worst(right)}", right_token)
            if operator.text == ">>":
                return left >> right
            return _multiply(reader, operator, left, np.asarray(1, dtype=np.int64) << right)
        case "/" | "//" | "%":
            if np.any(right == 0):
                raise reader.error("division by zero", right_token)
            return _divide(operator.text, left, right)
        case "|":
            return left | right
        case "^":
            return left ^ right
        case "&":
            return left & right
        case _:
            return _compare(operator.text, left, right).astype(np.int64)


def _compare(operator: str, left: Lanes, right: Lanes) -> npt.NDArray[np.bool_]:
    match operator:
        case "<":
            return np.less(left, right)
        case "<=":
            return np.less_equal(left, right)
        case ">":
            return np.greater(left, right)
        case ">=":
            return np.greater_equal(left, right)
        case "==":
            return np.equal(left, right)
        case "!=":
            return np.not_equal(left, right)
        case "&&":
            return np.logical_and(left, right)
        case _:
            return np.logical_or(left, right)


def _divide(operator: str, left: Lanes, right: Lanes) -> Lanes:
    if operator == "//":
        return left // right
    quotient = np.abs(left) // np.abs(right) * (np.sign(left) * np.sign(right))
    return np.asarray(quotient if operator == "/" else left - right * quotient, dtype=np.int64)


def _multiply(reader: Cursor, operator: Token, left: Lanes, right: Lanes) -> Lanes:
    # In floating point first: the product of two numbers of 48 bits does not fit 64.
    if np.any(np.abs(left.astype(np.float64) * right) > LARGEST_NUMBER):
        raise _too_large(reader, operator)
    return left * right


def _bounded(reader: Cursor, token: Token, value: Lanes) -> Lanes:
    if np.any(np.abs(value) > LARGEST_NUMBER):
        raise _too_large(reader, token)
    return value


def _too_large(reader: Cursor, token: Token) -> Exception:
    return reader.error("the result has more than 48 bits, and so is no address", token)


def _worst(values: Lanes) -> int:
    outside = values[(values < 0) | (values > _WIDEST_SHIFT)]
    return int(outside.flat[0])
