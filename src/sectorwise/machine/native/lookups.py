"""Turns what hangs on the block alone into tables: its place in the grid, and what it loads from an address of its own.

So a row that a block looks up, or how long it is, tells blocks apart without running them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.launch.contents import materialise, needs_whole
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.machine.likeness import Likeness
from sectorwise.machine.native.trace import BLOCK_SPECIALS, LANE_SPECIALS, VECTOR_SPECIALS
from sectorwise.machine.places import place_blocks
from sectorwise.machine.special import special_registers
from sectorwise.machine.tables import MOST_BLOCKS, extend, read_table, tabulate

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.machine.tables import Table

MOST_BYTES = 1 << 26
"""Of a buffer no more than this is made for a table."""

_WORD_BYTES = 4
_ROUND_BYTES = 16


def look_up(bound: BoundLaunch, address: Table, width_bytes: int) -> tuple[int, tuple[Table, ...]] | None:
    """The buffer, by number, that all blocks load from, and a table for each word that they find.

    None where blocks load from several, or from outside, or where it takes more than it is worth.
    """
    places = read_table(address)
    if width_bytes % _WORD_BYTES or places.dtype != np.uint64 or len(places) != bound.launch.blocks_total:
        return None
    first, last = int(places.min()), int(places.max())
    for number, allocation in enumerate(bound.allocations):
        if not allocation.base <= first <= last <= allocation.base + allocation.size_bytes - width_bytes:
            continue
        offsets = (places - np.uint64(allocation.base)).astype(np.int64)
        if (offsets % width_bytes).any():
            return None
        start, stop = first - allocation.base, last - allocation.base + width_bytes
        words = _read_words(allocation, start // _ROUND_BYTES * _ROUND_BYTES, stop)
        if words is None:
            return None
        at = (offsets - start // _ROUND_BYTES * _ROUND_BYTES) // _WORD_BYTES
        count = width_bytes // _WORD_BYTES
        return number, tuple(extend(address, f"word {word} at", words[at + word]) for word in range(count))
    return None


def _read_words(allocation: Allocation, start: int, stop: int) -> npt.NDArray[np.uint32] | None:
    """Bytes `start` to `stop` of what a buffer holds at first, as words; None where they are too many."""
    buffer = allocation.buffer
    size = ELEMENT_TYPES[buffer.dtype].size_bytes
    made = allocation.size_bytes if needs_whole(buffer) else stop - start
    if made > MOST_BYTES:
        return None
    elements = materialise(buffer, start // size, min(-(-stop // size), buffer.count))
    octets = np.ascontiguousarray(elements).view(np.uint8)
    padded = np.zeros(-(-octets.size // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: octets.size] = octets
    return padded.view(np.uint32)


def know_specials(bound: BoundLaunch) -> dict[str, Likeness]:
    """Special registers that are one number for the launch, or one for the block."""
    known: dict[str, Likeness] = {}
    for name, value in special_registers(bound, np.arange(1)).items():
        if name not in BLOCK_SPECIALS and name not in LANE_SPECIALS and name not in VECTOR_SPECIALS:
            known[name] = Likeness(known=int(np.asarray(value)[0, 0]))
    if bound.launch.blocks_total <= MOST_BLOCKS:
        places = place_blocks(bound.launch.grid, np.arange(bound.launch.blocks_total)).astype(np.uint32)
        for axis, name in enumerate(BLOCK_SPECIALS):
            known[name] = Likeness(table=tabulate(name, places[:, axis : axis + 1]))
    return known
