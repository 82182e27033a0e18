"""Turns what bulk copies move into running sums of one instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from sectorwise.machine.taint import KNOWN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MOST_LANDINGS: Final = 1 << 14
"""Places in shared memory that are told apart; of more, those that overlap or follow each other become one. So copies,
which are aligned to 16 bytes, always find room: 228 KiB have half as many places with gaps between them."""

_SUMS: Final = (
    "copies",
    "targets",
    "asked_bytes",
    "outside_bytes",
    "sectors",
    "sectors_ideal",
    "sectors_l2",
    "written_bytes",
)


class Moved(Struct, frozen=True):
    """What one copy, or several together, move: see `execution.BulkCopies`."""

    copies: int
    targets: int
    asked_bytes: int
    outside_bytes: int
    sectors: int
    sectors_ideal: int
    sectors_l2: int
    written_bytes: int
    row_bytes: int
    exact: bool = True


class CopyCounter(Struct):
    """Running sums of one instruction; as in `execution.BulkCopies`.

    `shortest_row_bytes` is 0 as long as nothing was copied. `landings` are places in a block's shared memory, first
    byte and the one behind the last; `barriers` the mbarriers that are told. `doubts` is all that was uncertain about
    places, sizes and the way there; `unknown` says why some copies are not in the sums; `modelled`, that a rule is a
    model.
    """

    copies: int = 0
    targets: int = 0
    asked_bytes: int = 0
    outside_bytes: int = 0
    sectors: int = 0
    sectors_ideal: int = 0
    sectors_l2: int = 0
    written_bytes: int = 0
    shortest_row_bytes: int = 0
    landings: set[tuple[int, int]] = field(default_factory=set)
    barriers: set[int] = field(default_factory=set)
    doubts: int = KNOWN
    unknown: str | None = None
    modelled: bool = False


def add_moved(counter: CopyCounter, moved: Moved, times: int = 1) -> None:
    """Adds what was moved, so many times."""
    counter.copies += times * moved.copies
    counter.targets += times * moved.targets
    counter.asked_bytes += times * moved.asked_bytes
    counter.outside_bytes += times * moved.outside_bytes
    counter.sectors += times * moved.sectors
    counter.sectors_ideal += times * moved.sectors_ideal
    counter.sectors_l2 += times * moved.sectors_l2
    counter.written_bytes += times * moved.written_bytes
    counter.modelled |= not moved.exact
    if moved.row_bytes:
        counter.shortest_row_bytes = min(counter.shortest_row_bytes or moved.row_bytes, moved.row_bytes)


def merge_copies(counter: CopyCounter, other: CopyCounter) -> None:
    """Adds what another counter of the same instruction has summed up."""
    for name in _SUMS:
        setattr(counter, name, getattr(counter, name) + getattr(other, name))
    rows = [each.shortest_row_bytes for each in (counter, other) if each.shortest_row_bytes]
    counter.shortest_row_bytes = min(rows, default=0)
    for start, stop in other.landings:
        note_landings(counter, [start], stop - start, [])
    counter.barriers |= other.barriers
    counter.doubts |= other.doubts
    counter.unknown = counter.unknown or other.unknown
    counter.modelled |= other.modelled


def scale_copies(counter: CopyCounter, of: int, run: int) -> CopyCounter:
    """What `of` blocks sum up where `run` of them have summed up this: rounded to the nearest."""
    scaled = replace(counter, landings=set(counter.landings), barriers=set(counter.barriers))
    for name in _SUMS:
        setattr(scaled, name, (2 * getattr(counter, name) * of + run) // (2 * run))
    return scaled


def note_landings(counter: CopyCounter, starts: Sequence[int], size_bytes: int, barriers: Sequence[int]) -> None:
    """Adds places in a block's own shared memory, and its barriers that are told of what comes there."""
    if not size_bytes:
        return
    counter.landings.update((start, start + size_bytes) for start in starts)
    counter.barriers.update(barriers)
    if len(counter.landings) > _MOST_LANDINGS:
        counter.landings = set(unite_places(counter.landings))


def unite_places(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as places that neither overlap nor follow each other, in their order."""
    united: list[tuple[int, int]] = []
    for first, behind in sorted(places):
        if united and first <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], behind)
        else:
            united.append((first, behind))
    return united
