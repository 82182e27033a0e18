"""Turns the arithmetic of launch text (`1 << 20`, `(n + 255) / 256`, `4K`, `0.5`) into numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sectorwise.launch.dtypes import ELEMENT_TYPES, LONG_NAMES
from sectorwise.tokens import DEEPEST

if TYPE_CHECKING:
    from sectorwise.tokens import Cursor, Token

LARGEST = (1 << 64) - 1
"""No size, address or argument of a launch has more than 64 bits."""

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_WHOLE = re.compile(r"0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<binary>[01]+)|(?P<decimal>0|[1-9]\d*)(?P<suffix>[KMG]?)")
_FLOAT = re.compile(r"(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+")
_LEVELS = (("<<", ">>"), ("+", "-"), ("*", "/", "//", "%"))
"""Binary operators, loosest first, as in C."""

_WORDS: dict[str, int | float] = {"true": 1, "false": 0, "inf": float("inf"), "nan": float("nan")}


@dataclass(frozen=True, slots=True)
class Scope:
    """The named scalars of a launch, which sizes may mention: where each is defined, and what was found so far."""

    definitions: dict[str, int]
    """From a name to the index of the token at which its value begins."""

    found: dict[str, int | float] = field(default_factory=dict)
    open_names: tuple[str, ...] = ()
    depth: int = 0

    def deeper(self, cursor: Cursor, name: str | None = None) -> Scope:
        """Return the scope one bracket further in, or inside the definition of `name`."""
        if self.depth >= DEEPEST:
            raise cursor.error(f"more than {DEEPEST} brackets or definitions inside one another")
        names = (*self.open_names, name) if name is not None else self.open_names
        return Scope(self.definitions, self.found, names, self.depth + 1)


def parse_whole(cursor: Cursor, scope: Scope, wanted: str) -> int:
    """Return the whole number written at the cursor; errors say that `wanted` was expected.

    Operators are those of C: `+ - * / % << >>` and brackets; `/` rounds towards zero as in C, `//` down as in Python.
    """
    return _parse_level(cursor, scope, wanted, 0)


def parse_number(cursor: Cursor, scope: Scope, wanted: str = "a number") -> int | float:
    """Return the number written at the cursor: a float (`-0.5`, `1e-3`, `inf`, `nan`) or whole-number arithmetic."""
    sign = cursor.token if cursor.at("-", "+") else None
    literal = cursor.following if sign else cursor.token
    if literal.kind == "name" and literal.text in _WORDS and literal.text not in scope.definitions:
        value: int | float | None = _WORDS[literal.text]
    else:
        value = read_float(literal)
        if value is None and literal.kind == "name" and isinstance(_value_if_named(cursor, literal, scope), float):
            value = _value_if_named(cursor, literal, scope)
    if value is None:
        return parse_whole(cursor, scope, wanted)
    cursor.index += 2 if sign else 1
    return -value if sign and sign.text == "-" else value


def read_float(token: Token) -> float | None:
    """Return the value of a number that is written as a float (`0.5`, `1e3`, `2.f`), None for any other token."""
    text = token.text.replace("'", "").replace("_", "")
    if token.kind != "number":
        return None
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text[:-1]) if text.endswith(("f", "F")) and _FLOAT.fullmatch(text[:-1]) else None


def find_definitions(cursor: Cursor) -> dict[str, int]:
    """Return where the named scalars of the argument list begin; the cursor stands at its opening parenthesis."""
    definitions: dict[str, int] = {}
    depth = 0
    for index, token in enumerate(cursor.tokens[cursor.index :], cursor.index):
        if token.kind != "symbol":
            continue
        depth += (token.text in "([{") - (token.text in ")]}")
        if depth == 0:
            break
        if depth == 1 and token.text in "(,":
            # The token list ends with an `end`, which no index passes.
            name, equals, first, second = (cursor.tokens[min(index + n, len(cursor.tokens) - 1)] for n in range(1, 5))
            if name.kind == "name" and equals.text == "=" and _begins_scalar(first, second):
                definitions.setdefault(name.text, index + 3)
    return definitions


def _begins_scalar(first: Token, second: Token) -> bool:
    if first.kind == "name" and (first.text in ELEMENT_TYPES or first.text in LONG_NAMES):
        return second.text == "("
    return (first.kind in {"number", "name"} and second.text not in {"(", "["}) or first.text in {"-", "+", "("}


def _parse_level(cursor: Cursor, scope: Scope, wanted: str, level: int) -> int:
    """Return the value of a chain of binary operators of this level, left to right."""
    if level == len(_LEVELS):
        return _parse_unary(cursor, scope, wanted)
    value = _parse_level(cursor, scope, wanted, level + 1)
    while cursor.at(*_LEVELS[level]):
        operator = cursor.take()
        right_token = cursor.token
        right = _parse_level(cursor, scope, wanted, level + 1)
        value = _apply(cursor, operator, right_token, value, right)
    return value


def _parse_unary(cursor: Cursor, scope: Scope, wanted: str) -> int:
    negative = False
    while cursor.at("-", "+"):
        negative ^= cursor.take().text == "-"
    value = _parse_primary(cursor, scope, wanted)
    return -value if negative else value


def _parse_primary(cursor: Cursor, scope: Scope, wanted: str) -> int:
    token = cursor.token
    if cursor.accept("("):
        value = parse_whole(cursor, scope.deeper(cursor), wanted)
        cursor.expect(")")
        return value
    if token.kind == "number":
        cursor.take()
        return _read_whole(cursor, token, wanted)
    named = _value_if_named(cursor, token, scope) if token.kind == "name" else None
    if named is None:
        raise cursor.error(f"expected {wanted}, got {token}")
    if isinstance(named, float):
        raise cursor.error(f"expected {wanted}, got '{token.text}', which is {named}")
    cursor.take()
    return named


def _value_if_named(cursor: Cursor, token: Token, scope: Scope) -> int | float | None:
    """Return the value of the scalar argument that a token names, None where no argument has that name."""
    name = token.text
    if name not in scope.definitions:
        return None
    if name in scope.open_names:
        raise cursor.error(f"'{name}' is defined by itself", token)
    if name not in scope.found:
        inside = cursor.at_index(scope.definitions[name])
        if inside.token.kind == "name" and inside.following.text == "(":
            inside.index += 2
        scope.found[name] = parse_number(inside, scope.deeper(cursor, name))
    return scope.found[name]


def _read_whole(cursor: Cursor, token: Token, wanted: str) -> int:
    match = _WHOLE.fullmatch(token.text.replace("'", "").replace("_", ""))
    if match is None:
        hint = ""
        if re.fullmatch(r"0\d+", token.text):
            hint = " (a leading zero: octal in C, decimal elsewhere; write it without)"
        elif read_float(token) is not None:
            hint = ", which is no whole number"
        raise cursor.error(f"expected {wanted}, got {token}{hint}", token)
    digits = match["hex"] or match["binary"] or match["decimal"]
    if len(digits) > 64:
        raise cursor.error("the number has more than 64 bits", token)
    base = 16 if match["hex"] else 2 if match["binary"] else 10
    return _within(cursor, token, int(digits, base) * _SUFFIXES[match["suffix"] or ""])


def _apply(cursor: Cursor, operator: Token, right_token: Token, left: int, right: int) -> int:
    match operator.text:
        case "+":
            value = left + right
        case "-":
            value = left - right
        case "*":
            value = left * right
        case "<<" | ">>":
            if not 0 <= right < 64:
                raise cursor.error(f"expected a shift of 0 to 63, got {right}", right_token)
            value = left << right if operator.text == "<<" else left >> right
        case _:
            if right == 0:
                raise cursor.error("division by zero", right_token)
            value = _divide(operator.text, left, right)
    return _within(cursor, operator, value)


def _divide(operator: str, left: int, right: int) -> int:
    if operator == "//":
        return left // right
    towards_zero = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return towards_zero if operator == "/" else left - right * towards_zero


def _within(cursor: Cursor, token: Token, value: int) -> int:
    if abs(value) > LARGEST:
        raise cursor.error("the number has more than 64 bits", token)
    return value
