"""Turns a kernel model into whether its loads are slow for want of bytes in flight, which several rules ask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.copy_forms import CopyOperation
from sectorwise.model.concurrency import Bound
from sectorwise.model.latency import describe_memory
from sectorwise.model.rings import NEARLY_FULL, find_ring
from sectorwise.model.roofline import Level
from sectorwise.rules.shapes import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.machine.execution import BulkCopies, Site
    from sectorwise.model.concurrency import Concurrency
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.model.rings import Ring

_LEAST_BYTES: Final = 4 << 20
"""Launches that load less are over before a memory's latency and a launch's own can be told apart."""

_IDLE_ENOUGH: Final = 0.7
"""A memory that is busier than this leaves little to gain."""

_FEWEST_PASSES: Final = 4
"""A ring that is filled fewer times is mostly filling up, or running empty."""

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


def find_starved(model: KernelModel) -> Concurrency | None:
    """The concurrency of a launch that reads much and leaves the memory idle waiting for it; None for any other.

    Nor is one starved whose arithmetic, shared memory or L2 takes longer than DRAM does at its full rate.
    """
    found = model.pace.concurrency
    copied = sum(copies.sectors_l2 for copies in list_bulk_loads(model))
    if copied > sum(site.sectors for site in list_global_loads(model)):
        # What keeps the memory busy are bulk copies, which no scoreboard waits for: see `find_shallow_ring`.
        return None
    if found is None or found.bound is not Bound.LATENCY or found.memory_busy >= _IDLE_ENOUGH:
        return None
    return found if _waits_for_dram(model) else None


def find_shallow_ring(model: KernelModel) -> tuple[Ring, float] | None:
    """The ring of a launch that reads much through it and in which too little can be in flight, with what is needed.

    None for any other, as for `find_starved`; a place that is filled once is no ring.
    """
    ring = find_ring(model.bound, model.execution.bulk, model.occupancy)
    if ring is None or ring.passes < _FEWEST_PASSES:
        return None
    needed_bytes = describe_memory(model.bound.device).needed_bytes(NEARLY_FULL) / model.bound.device.sm_count
    if ring.in_flight_bytes_per_sm >= needed_bytes or not _waits_for_dram(model):
        return None
    return ring, needed_bytes


def _waits_for_dram(model: KernelModel) -> bool:
    """Whether a launch reads much, and nothing else takes longer than DRAM does at its full rate."""
    read_bytes = _count_dram_bytes(model)
    dram_ns = read_bytes / model.pace.roofline.ceiling(Level.DRAM).per_ns
    others = [place.least_ns for place in model.pace.kernel_roofline.places if place.level is not Level.DRAM]
    return read_bytes >= _LEAST_BYTES and 2 * dram_ns >= max(model.pace.kernel_roofline.compute_ns, *others)


def _count_dram_bytes(model: KernelModel) -> int:
    """Bytes that loads take from DRAM: followed through the caches, or else each buffer read once at most."""
    if model.traffic is not None:
        return model.traffic.dram_bytes_read
    asked_bytes = sum(site.sectors * SECTOR_BYTES for site in list_global_loads(model))
    asked_bytes += sum(copies.sectors_l2 * SECTOR_BYTES for copies in list_bulk_loads(model))
    return min(asked_bytes, sum(allocation.size_bytes for allocation in model.bound.allocations))


def list_global_loads(model: KernelModel) -> Iterator[Site]:
    """Sites that load from global memory and whose addresses are known."""
    for site in model.execution.sites:
        known = site.unknown_because is None and site.access.space in {Space.GLOBAL, Space.GENERIC}
        if known and site.access.operation in _LOADS:
            yield site


def list_bulk_loads(model: KernelModel) -> Iterator[BulkCopies]:
    """Bulk copies from global to shared memory of which all is known."""
    for copies in model.execution.bulk:
        if copies.unknown_because is None and copies.form.operation is CopyOperation.LOAD:
            yield copies
