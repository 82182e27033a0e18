"""Turns bulk loads into a ring of stages in shared memory: how much of it can be in flight, and how long that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.machine.copy_forms import CopyOperation
from sectorwise.machine.copy_sums import unite_places
from sectorwise.model.latency import describe_memory
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import BulkCopies
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.schedule import Shares

NEARLY_FULL: Final = 0.95
"""The part of its time that a memory is busy when what is in flight is said to fill it."""


class Ring(Struct, frozen=True):
    """Where the bulk loads of a block land, over and over.

    `window_bytes` of its shared memory, in `stages` each of which has an mbarrier of its own, are filled `passes` times
    by each block in the mean. No more than the window is in flight; `in_flight_bytes_per_sm` are those of all blocks
    that are resident beside each other, on `sm_count` SMs.
    """

    window_bytes: int
    stages: int
    passes: float
    blocks_per_sm: int
    sm_count: int

    @property
    def stage_bytes(self) -> float:
        """Bytes that come together."""
        return self.window_bytes / self.stages

    @property
    def in_flight_bytes_per_sm(self) -> int:
        """Bytes that an SM can have in flight at most."""
        return self.blocks_per_sm * self.window_bytes


def find_ring(bound: BoundLaunch, bulk: Sequence[BulkCopies], occupancy: Occupancy) -> Ring | None:
    """The ring of a launch; None where it has no bulk loads, or not all is known of them."""
    loads = [each for each in bulk if each.form.operation is CopyOperation.LOAD and each.executed]
    places = unite_places(each for copies in loads for each in copies.landings)
    window_bytes = sum(behind - first for first, behind in places)
    stages = len({each for copies in loads for each in copies.barriers})
    if not window_bytes or not stages or any(each.unknown_because is not None for each in loads):
        return None
    waves = count_waves(bound.launch.blocks_total, occupancy.blocks_per_sm, bound.device.sm_count)
    landed = sum(each.written_bytes for each in loads)
    return Ring(
        window_bytes=window_bytes,
        stages=stages,
        passes=landed / window_bytes / bound.launch.blocks_total,
        blocks_per_sm=min(occupancy.blocks_per_sm, waves.most_blocks_an_sm),
        sm_count=min(bound.device.sm_count, waves.blocks),
    )


def bound_ring(
    bound: BoundLaunch, ring: Ring, bulk: Sequence[BulkCopies], shares: Mapping[int, Shares], warps_ns: float
) -> float:
    """The ns that a launch takes whose stages are filled, and used, in turn; `warps_ns` is how long they are used.

    A stage is fetched anew when it has been used: a round of a stage is a latency, the time in which what all SMs ask
    for together comes, and the use; as many rounds go on beside each other as there are stages. Of 19 streams of
    ranges through rings of 1 to 8 stages, which an H200 ran, estimates were between 21 % below and 12 % above the time
    (tests/measured/tiles/rings.json).
    """
    memory = describe_memory(bound.device)
    loads = [each for each in bulk if each.form.operation is CopyOperation.LOAD]
    asked = sum(each.sectors_l2 for each in loads)
    from_dram = sum(each.sectors_l2 * shares[each.instruction].dram for each in loads if each.instruction in shares)
    part = from_dram / asked if asked else 1.0
    latency_ns = part * memory.mean_ns + (1 - part) * memory.l2_hit_ns
    burst_ns = part * ring.stage_bytes * ring.blocks_per_sm * ring.sm_count / memory.ceiling_gbs
    rounds = ring.passes * bound.launch.blocks_total / (ring.blocks_per_sm * ring.sm_count)
    return rounds * (latency_ns + burst_ns) + warps_ns / ring.stages
