"""Turns what a part of a launch read from DRAM, and how often it asks for it, into what is read again of what stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.model.caches.lines import LINE_BYTES, SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sectorwise.binding import BoundLaunch
    from sectorwise.model.caches.window import Window

STAYS: Final = 2 / 3
"""The part of the L2 of which lines stay whatever their order: 32 MiB read twice do, 44 only in part (k_l2_twice_*)."""


def cut_rereads(
    bound: BoundLaunch,
    window: Window,
    switches: Mapping[int, tuple[int, int]],
    dram_read: Mapping[int, float],
    reached: Mapping[int, float],
    stored: float,
) -> dict[int, float]:
    """By how much to cut the sectors that instructions read from DRAM, so that a buffer that stays is read once.

    What the window's last blocks bring from a buffer is taken for what all later ones do; where places are random they
    bring ever less. A buffer stays if it and what else passes between two uses of a sector, in the mean, fill less than
    `STAYS` of the L2. Where SMs of both halves ask for the same lines (`switches`, as in `L2Result`) both halves keep
    them, and of what does not fit then a part is read again at each use. `reached` are sectors asked for at the L2, and
    `stored` those that stores leave there.
    """
    owner = _find_owners(bound, window)
    sectors = {number: each.own_bytes / SECTOR_BYTES for number, each in enumerate(bound.allocations)}
    passing = stored + sum(
        min(sum(value for i, value in dram_read.items() if owner.get(i) == number), size)
        for number, size in sectors.items()
    )
    l2_sectors = bound.device.l2_bytes / SECTOR_BYTES
    cuts: dict[int, float] = {}
    for number, size in sectors.items():
        mine = {i: value for i, value in dram_read.items() if owner.get(i) == number}
        asked = sum(reached.get(i, mine[i]) for i in mine)
        together = sum(mine.values())
        between = size + (passing - min(together, size)) / max(1.0, asked / size)
        if together > size and between < STAYS * l2_sectors:
            copies = _count_copies((switches.get(i, (0, 0)) for i in mine), asked / size, bound.device.l2_partitions)
            again = max(0.0, asked - size) * max(0.0, 1 - l2_sectors / (between * copies))
            cuts |= dict.fromkeys(mine, min(1.0, (size + again) / together))
    return cuts


def _find_owners(bound: BoundLaunch, window: Window) -> dict[int, int]:
    """The number of the buffer that each instruction touches."""
    lines = window.lines
    owner: dict[int, int] = {}
    for number, each in enumerate(bound.allocations):
        first, last = each.base // LINE_BYTES, (each.base + each.size_bytes) // LINE_BYTES
        inside = np.unique(lines.instruction[(lines.line >= first) & (lines.line <= last)]).tolist()
        owner |= dict.fromkeys(inside, number)
    return owner


def _count_copies(switches: Iterable[tuple[int, int]], uses: float, halves: int | None) -> float:
    """Copies that the L2 keeps of a line with so many uses, in the mean: at its home, and where else it is asked for.

    Every second SM is at the half where a line is at home; each further use may come from the other half.
    """
    counts = tuple(switches)
    again, switched = sum(each[0] for each in counts), sum(each[1] for each in counts)
    if halves is None or halves < 2 or not again:
        return 1.0
    elsewhere: float = 1 - (1 - switched / again) ** max(0.0, uses - 1)
    return 1.5 + 0.5 * elsewhere
