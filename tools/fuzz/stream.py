"""Turns a seed into the same random numbers everywhere: recorded results must fit the kernels of another machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

T = TypeVar("T")

_STEP = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_MASK = (1 << 64) - 1


def mix(number: int) -> int:
    """One 64-bit word from another: the output function of SplitMix64 (Steele, Lea, Flood, 2014)."""
    number = (number ^ (number >> 30)) * _FIRST & _MASK
    number = (number ^ (number >> 27)) * _SECOND & _MASK
    return number ^ (number >> 31)


def mix_many(seed: int, count: int) -> npt.NDArray[np.uint64]:
    """The first `count` words that a stream of this seed draws."""
    words = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_STEP) + np.uint64(mix(seed))
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_FIRST)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_SECOND)
    return words ^ (words >> np.uint64(31))


@dataclass(slots=True)
class Stream:
    """Random numbers of one seed, drawn one after the other."""

    seed: int
    drawn: int = 0

    def word(self) -> int:
        """64 random bits."""
        self.drawn += 1
        return mix((mix(self.seed) + self.drawn * _STEP) & _MASK)

    def below(self, bound: int) -> int:
        """A whole number from 0 to `bound - 1`."""
        return (self.word() >> 32) * bound >> 32

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True so often of a hundred times."""
        return self.below(100) < percent

    def pick(self, choices: Sequence[T]) -> T:
        """One of these."""
        return choices[self.below(len(choices))]
