"""Turns the sums of bulk copies into their entries of the analysis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sectorwise.analysis.instructions import BulkCopyUse, RingUse
from sectorwise.model.latency import describe_memory
from sectorwise.model.rings import NEARLY_FULL, find_ring

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Location
    from sectorwise.machine.execution import BulkCopies
    from sectorwise.model.kernel_model import KernelModel


class _Places(Protocol):
    """Where an instruction stands."""

    def instruction(self, index: int) -> Instruction: ...

    def offset(self, index: int) -> str: ...

    def location(self, index: int) -> Location | None: ...


def describe_copies(copies: BulkCopies, places: _Places) -> BulkCopyUse:
    """The entry of one instruction."""
    known = copies.unknown_because is None
    return BulkCopyUse(
        offset=places.offset(copies.instruction),
        sass=places.instruction(copies.instruction).text,
        location=places.location(copies.instruction),
        operation=copies.form.operation,
        shape=copies.form.shape,
        source=copies.form.source,
        target=copies.form.target,
        multicast=copies.form.multicast,
        executed=copies.executed,
        copies=copies.copies if known else None,
        targets=copies.targets if known else None,
        asked_bytes=copies.asked_bytes if known else None,
        outside_bytes=copies.outside_bytes if known else None,
        written_bytes=copies.written_bytes if known else None,
        row_bytes=copies.row_bytes if known else None,
        sectors=copies.sectors if known else None,
        sectors_ideal=copies.sectors_ideal if known else None,
        sectors_l2=copies.sectors_l2 if known else None,
        certainty=copies.certainty if known else None,
        unknown_because=copies.unknown_because,
    )


def describe_ring(model: KernelModel) -> RingUse | None:
    """The ring that the bulk loads of a launch fill; None without one."""
    ring = find_ring(model.bound, model.execution.bulk, model.occupancy)
    if ring is None:
        return None
    needed_bytes = describe_memory(model.bound.device).needed_bytes(NEARLY_FULL) / model.bound.device.sm_count
    return RingUse(ring.window_bytes, ring.stages, ring.passes, ring.in_flight_bytes_per_sm, needed_bytes)
