"""Turns the sets of an L2 into what lies in them, plain data, and that into the sets of another launch's L2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from sectorwise.model.caches.lines import COUNT_OF_BITS, hash_lines
from sectorwise.model.caches.sets import spread_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.model.caches.sets import CacheSet

_HOME_SALT: Final = 0x5555


class HeldLine(Struct, frozen=True):
    """A line that lies in a set of an L2: `line` below 0 where nobody knows whose it is.

    `sectors` are there and `dirty` ones differ from DRAM, a bit each; `age` is how many lines of its set were used
    after it.
    """

    place: int
    line: int
    sectors: int
    dirty: int
    age: int


class Held(Struct, frozen=True):
    """What lies in an L2, half by half, of the lines that are sampled as one of `parts`."""

    parts: int
    halves: tuple[tuple[HeldLine, ...], ...]

    def count_sectors(self) -> int:
        """Sectors of known lines that are there, scaled up to all lines."""
        return self.parts * sum(COUNT_OF_BITS[each.sectors] for half in self.halves for each in half)

    def count_dirty(self) -> int:
        """Sectors that differ from DRAM, scaled up to all lines."""
        return self.parts * sum(COUNT_OF_BITS[each.dirty] for half in self.halves for each in half)


def hash_homes(line: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Numbers that say to which half and set lines belong."""
    return hash_lines(line ^ _HOME_SALT)


def hash_home(line: int) -> int:
    """The same of one line."""
    return int(hash_homes(np.array([line], np.int64))[0])


def is_sampled(line: npt.NDArray[np.int64], parts: int, *, pairs: bool = True) -> npt.NDArray[np.bool_]:
    """Which lines stand for so many times as many; where a hint may bring a neighbour too, both or none of `pairs`."""
    sampled: npt.NDArray[np.bool_] = hash_lines(line >> 1 if pairs else line) % parts == 0
    return sampled


def take_stock(halves: Sequence[Sequence[CacheSet]], parts: int) -> Held:
    """What the sets have."""
    return Held(parts, tuple(tuple(_list_lines(half)) for half in halves))


def _list_lines(half: Sequence[CacheSet]) -> list[HeldLine]:
    lines: list[HeldLine] = []
    for place, each in enumerate(half):
        entries = [*each.fresh.items(), *each.proven.items()]
        last = len(entries) - 1
        lines += [HeldLine(place, line, e.sectors, e.dirty, last - n) for n, (line, e) in enumerate(entries)]
    return lines


def put_back(halves: Sequence[Sequence[CacheSet]], held: Held, parts: int) -> None:
    """Fill empty sets with what was held, as far as those lines are followed now: of every set the oldest first.

    `parts` is a multiple of `held.parts`. Lines of two sets that are one now come by their age.
    """
    thinner = parts // held.parts
    for half, lines in zip(halves, held.halves, strict=True):
        if not lines:
            continue
        number = np.array([each.line for each in lines], np.int64)
        unknown = number < 0
        kept = np.where(unknown, np.arange(number.size) % thinner == 0, is_sampled(number, parts))
        places = np.where(unknown, [each.place for each in lines], hash_homes(number) >> 8) % len(half)
        order = np.argsort([-each.age for each in lines], kind="stable")
        for chosen in order[kept[order]].tolist():
            each, target = lines[chosen], half[places[chosen]]
            # Nobody's lines are numbered anew, below those that a launch pushes in: of one set no two may be alike.
            entry, _ = target.add(each.line if each.line >= 0 else -1 - chosen - target.ways)
            entry.sectors, entry.dirty, entry.words = each.sectors, each.dirty, spread_words(each.dirty)
