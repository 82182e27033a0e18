"""Turns what bulk copies move into running sums of one instruction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sectorwise.machine.taint import KNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_LANDINGS: Final = 1024
"""Places in shared memory that are told apart; more than a ring has stages."""


@dataclass(frozen=True, slots=True)
class Moved:
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


@dataclass(slots=True)
class CopyCounter:
    """Running sums of one instruction; as in `execution.BulkCopies`.

    `shortest_row_bytes` is 0 as long as nothing was copied. `landings` are places in a block's shared memory, first
    byte and the one behind the last. `doubts` is all that was uncertain about places, sizes and the way there;
    `unknown` says why some copies are not in the sums; `modelled`, that a rule is a model.
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


def note_landings(counter: CopyCounter, starts: Sequence[int], size_bytes: int) -> None:
    """Adds places in a block's own shared memory."""
    if size_bytes and len(counter.landings) < _MOST_LANDINGS:
        counter.landings.update((start, start + size_bytes) for start in starts)
