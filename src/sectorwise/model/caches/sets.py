"""Turns accesses to one set of an L2 into which lines stay: lines that were used again outlive those used once."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct, field

ALL_WORDS: Final = (1 << 32) - 1
"""The words of a line, a bit each."""


class Entry(Struct):
    """Sectors of a line that are there, and those of them that differ from DRAM, a bit each.

    `words` are those of the line that differ from DRAM; `lacking` sectors were stored in part and never fetched.
    """

    sectors: int = 0
    dirty: int = 0
    words: int = 0
    lacking: int = 0


class CacheSet(Struct):
    """A set of at most `ways` lines.

    Lines come in as `fresh`. One that is used again is `proven`, of which there are `proven_ways` at most: the least
    recently used of them falls back. The least recently used fresh line goes first.
    """

    ways: int
    proven_ways: int
    fresh: OrderedDict[int, Entry] = field(default_factory=OrderedDict)
    proven: OrderedDict[int, Entry] = field(default_factory=OrderedDict)

    def find(self, line: int) -> Entry | None:
        """The line, where it is there, unchanged in its place."""
        return self.proven.get(line) or self.fresh.get(line)

    def use(self, line: int) -> Entry | None:
        """The line, where it is there, as the most recently used."""
        entry = self.proven.get(line)
        if entry is not None:
            self.proven.move_to_end(line)
            return entry
        entry = self.fresh.get(line)
        if entry is None:
            return None
        if self.proven_ways:
            del self.fresh[line]
            self.proven[line] = entry
            if len(self.proven) > self.proven_ways:
                old, fallen = self.proven.popitem(last=False)
                self.fresh[old] = fallen
        else:
            self.fresh.move_to_end(line)
        return entry

    def add(self, line: int, *, leaves_first: bool = False) -> tuple[Entry, Entry | None]:
        """A line that was not there, empty, and the line that had to go for it; one that `leaves_first` goes next."""
        full = len(self.fresh) + len(self.proven) >= self.ways
        evicted = self.fresh.popitem(last=False)[1] if full else None
        entry = self.fresh[line] = Entry()
        if leaves_first:
            self.fresh.move_to_end(line, last=False)
        return entry, evicted

    def list_dirty(self) -> list[int]:
        """The dirty sectors of each line."""
        return [entry.dirty for lines in (self.fresh, self.proven) for entry in lines.values()]


def find_whole(words: int) -> int:
    """The sectors of which all eight words are among these, a bit each."""
    if words == ALL_WORDS:
        return 15
    return sum(1 << sector for sector in range(4) if words >> 8 * sector & 0xFF == 0xFF)


def spread_words(sectors: int) -> int:
    """All words of these sectors."""
    return sum(0xFF << 8 * sector for sector in range(4) if sectors >> sector & 1)
