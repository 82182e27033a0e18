"""Turns what a person types as an answer into numbers, and says whether one means the number that is wanted."""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PERCENT: Final = "%"
SIZES: Final[Mapping[str, int]] = {
    "B": 1,
    "KB": 10**3,
    "KiB": 2**10,
    "MB": 10**6,
    "MiB": 2**20,
    "GB": 10**9,
    "GiB": 2**30,
}

_CLOSE: Final = 0.02
_LONG: Final = 1e15

_UNITS: Final = {name.lower(): name for name in SIZES} | {"byte": "B", "bytes": "B", "percent": PERCENT, "%": PERCENT}
_WORDS: Final = (
    "(?:bank|block|chunk|column|element|fma|line|lane|load|row|sector|shuffle|thread|time|vector|warp|wavefront|weight)s?",
    "pass|passes|flop/byte|flop/b|tb/s|x",
)
"""Units that are read over: what is asked for says them."""

_NUMBER: Final = r"[+-]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT: Final = f"({'|'.join([*_UNITS, *_WORDS])}|)"
_END: Final = r"(?:(?<=%)|(?=[\s;]|,\s|,$|$)),?[\s;]*"
_ANSWER: Final = re.compile(rf"({_NUMBER})((?:\s*[*/^]\s*{_NUMBER})*)\s*{_UNIT}{_END}", re.IGNORECASE)
_FACTOR: Final = re.compile(rf"\s*([*/^])\s*({_NUMBER})", re.IGNORECASE)
_SKIPPED: Final = re.compile(r"(-|s|skip)(?:[\s;]+|$)", re.IGNORECASE)
_OPERATORS: Final[Mapping[str, Callable[[float, float], float]]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "^": math.pow,
}


@dataclass(frozen=True, slots=True)
class Given:
    """A number that was given, with a unit of `SIZES`, with `%`, or with none."""

    value: float
    unit: str = ""

    def means(self, wanted: float, unit: str) -> bool:
        """Whether it is the wanted number of that unit, to two percent, however it is written: 1/8, 0.125, 12.5 %."""
        return any(abs(value - wanted) <= _CLOSE * abs(wanted) for value in self._list_values(unit))

    def _list_values(self, unit: str) -> tuple[float, ...]:
        if self.unit in SIZES:
            return (self.value * SIZES[self.unit] / SIZES.get(unit, 1),)
        if unit == PERCENT:
            return (self.value,) if self.unit == PERCENT else (self.value, 100 * self.value)
        return (self.value / 100,) if self.unit == PERCENT else (self.value,)

    def __str__(self) -> str:
        """As people write it."""
        return f"{write_number(self.value)} {self.unit}".rstrip()


def write_number(value: float) -> str:
    """Whole where it is whole and can be read, else three digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < _LONG else f"{value:,.3g}"


def read_answers(text: str) -> tuple[Given | None, ...]:
    """Numbers with spaces or semicolons between, with units or not: `32 6.25 %; 1/16 4 KiB`; `-` or `s` skips one.

    Raises `ArgumentError`.
    """
    found: list[Given | None] = []
    at, text = 0, text.strip()
    while at < len(text):
        if skipped := _SKIPPED.match(text, at):
            found.append(None)
            at = skipped.end()
            continue
        match = _ANSWER.match(text, at)
        given = _read_one(*match.groups()) if match else None
        if match is None or given is None or not math.isfinite(given.value):
            raise ArgumentError(f"expected one number or more, such as 32 6.25, got {text[at:]!r}")
        found.append(given)
        at = match.end()
    return tuple(found)


def _read_one(first: str, factors: str, unit: str) -> Given | None:
    """The number of one answer, multiplied out from the left; None where something is no number."""
    try:
        value = float(first.replace(",", ""))
        for sign, factor in _FACTOR.findall(factors):
            value = _OPERATORS[sign](value, float(factor.replace(",", "")))
    except (ValueError, ArithmeticError):
        return None
    return Given(value, _UNITS.get(unit.lower(), ""))
