"""Turns a way of judging a problem of any size into the sizes at which another way than the fastest becomes faster."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isinf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Judge = Callable[[int], Mapping[str, tuple[str, float]]]

_STEP: Final = 4
_STEPS: Final = 3
_HALVINGS: Final = 3


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantity that may change: its value now, what it must be a multiple of, and its bounds."""

    name: str
    value: int
    unit: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Crossover:
    """Where the order reverses as one quantity changes and the others stay.

    At `value` of `quantity` (and beyond, `rises` says in which direction it was looked for) `winner` is faster by
    `times` than what is fastest now; None: nothing overtakes it up to `value`.
    """

    quantity: str
    rises: bool
    value: int
    winner: str | None
    times: float

    def __str__(self) -> str:
        """A sentence of the report."""
        if self.winner is None:
            return f"the order holds for {self.quantity} {'up' if self.rises else 'down'} to {self.value:,}"
        where = f"{self.quantity} {self.value:,} and {'above' if self.rises else 'below'}"
        better = "takes its place" if isinf(self.times) else f"is {self.times:.3g} times faster"
        return f"the order reverses at {where}: {self.winner} {better}"


def find_crossovers(axis: Axis, kind: str, judge: Judge, equal: float) -> tuple[Crossover, ...]:
    """Where another kind of way than `kind` is faster by more than `equal`, as the quantity falls and as it rises.

    `judge` gives, for a value of the quantity, the kinds of ways that there are, each with its name and time. Values
    are tried in steps of four, up to 64 times away; between two that differ the place is found by halving. Directions
    in which the bound is reached already are left out.
    """
    found = (_search(axis, kind, judge, equal, rises=rises) for rises in (False, True))
    return tuple(each for each in found if each is not None)


def _search(axis: Axis, kind: str, judge: Judge, equal: float, *, rises: bool) -> Crossover | None:
    inside = axis.value
    for _ in range(_STEPS):
        beyond = _step(axis, inside, rises=rises)
        if beyond == inside:
            break
        judged = judge(beyond)
        if not judged:
            break
        winner, times = _compare(judged, kind)
        if times > equal:
            return _narrow(axis, kind, judge, equal, (inside, Crossover(axis.name, rises, beyond, winner, times)))
        inside = beyond
    return None if inside == axis.value else Crossover(axis.name, rises, inside, None, 1.0)


def _narrow(axis: Axis, kind: str, judge: Judge, equal: float, found: tuple[int, Crossover]) -> Crossover:
    """The place between a value at which `kind` holds and one at which it was overtaken."""
    inside, last = found
    for _ in range(_HALVINGS):
        middle = round((inside * last.value) ** 0.5) // axis.unit * axis.unit
        if not min(inside, last.value) < middle < max(inside, last.value):
            break
        winner, times = _compare(judge(middle), kind)
        if times > equal:
            last = Crossover(axis.name, last.rises, middle, winner, times)
        else:
            inside = middle
    return last


def _step(axis: Axis, value: int, *, rises: bool) -> int:
    further = value * _STEP if rises else max(axis.unit, value // _STEP // axis.unit * axis.unit)
    # What lies outside of the bounds already does not come nearer to them.
    return max(value, min(further, axis.most)) if rises else min(value, max(further, axis.least))


def _compare(times: Mapping[str, tuple[str, float]], kind: str) -> tuple[str | None, float]:
    """The fastest way, and how many times faster it is than `kind`; infinitely, where there is no such way."""
    name, best = min(times.values(), key=lambda pair: pair[1])
    return name, times[kind][1] / best if kind in times else inf
