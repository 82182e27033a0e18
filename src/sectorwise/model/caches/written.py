"""Turns what flowed for a launch into the bytes that it writes to DRAM: what was stored and does not stay in the L2."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.model.caches.lines import LINE_BYTES, SECTOR_BYTES, Role

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binding import BoundLaunch
    from sectorwise.measurements import CacheBehaviour
    from sectorwise.model.caches.flow import Flow
    from sectorwise.model.caches.held import Held
    from sectorwise.model.caches.l2 import L2Result
    from sectorwise.model.caches.window import Window


class Stored(Struct, frozen=True):
    """What stores depend on: the L2, what it held `before` (None: nobody knows), and the bytes of written buffers.

    `whole`: all blocks of the launch were followed; `warm`: the same launch went before.
    """

    l2_bytes: int
    behaviour: CacheBehaviour
    result: L2Result
    before: Held | None
    buffer_bytes: float
    whole: bool
    warm: bool


def count_written(stored: Stored, flow: Flow) -> float:
    """Bytes written to DRAM: what was stored and does not stay, and what the L2 held before.

    The L2 keeps what it saw last. Where the whole launch was followed that is known; else what the first blocks bring
    and later ones use again holds its place, and stores have their share of the rest, as of all that is new.
    """
    size, held_before = stored.l2_bytes, stored.before
    kept = (sum(flow.kept_reads.values()) + flow.kept_writes) * SECTOR_BYTES
    # What lay there before is as likely young as old: none of it goes while half of the L2 is free.
    before = stored.behaviour.dirty_before_bytes * min(1.0, max(0.0, 2 * kept / size - 1))
    if held_before is not None:
        held = max(1, held_before.count_sectors() * SECTOR_BYTES)
        before = held_before.count_dirty() * SECTOR_BYTES * min(1.0, max(0.0, (kept + held - size) / held))
    most_dirty = stored.behaviour.l2_dirty_share * size
    if stored.whole:
        written = max(flow.dram_written, flow.dirtied - most_dirty / SECTOR_BYTES)
        return written * SECTOR_BYTES + (0.0 if stored.warm or held_before is not None else before)
    if stored.warm:
        # Launch after launch, what is stored is written sooner or later, unless all of it stays where it is.
        return max(flow.filled_up, flow.dirtied if kept > size else 0.0) * SECTOR_BYTES
    # What was fetched since it was stored in part is whole from then on.
    filled_up = min(flow.filled_up * SECTOR_BYTES, stored.buffer_bytes)
    left = min(max(0.0, flow.dirtied * SECTOR_BYTES - filled_up), stored.buffer_bytes)
    if kept <= size:
        return before + filled_up + max(0.0, left - most_dirty)
    first, second = stored.result.first, stored.result.second
    new = sum(second.kept_reads.values()) + second.kept_writes
    reused = max(0.0, sum(first.kept_reads.values()) + first.kept_writes - new) * SECTOR_BYTES
    stays = max(0.0, size - reused) * min(1.0, second.dirtied / new) if new else 0.0
    return filled_up + max(0.0, left - min(stays, most_dirty)) + before


def size_written(bound: BoundLaunch, window: Window, roles: Mapping[int, Role]) -> float:
    """Bytes of the buffers that the window's blocks write, without which it is not known what they leave dirty."""
    writers = [index for index, role in roles.items() if role is Role.STORE or role is Role.ATOMIC]
    lines = window.lines
    written = lines.line[np.isin(lines.instruction, writers)]
    owners = [
        each
        for each in bound.allocations
        if ((written >= each.base // LINE_BYTES) & (written <= (each.base + each.size_bytes) // LINE_BYTES)).any()
    ]
    return float(sum(each.own_bytes for each in owners)) if owners else float("inf")
