"""Turns instructions, the ways in which their requests lie, and what buffers hold into plain data of an analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.binary.ir import Location
    from sectorwise.findings import Picture
    from sectorwise.machine.copy_forms import CopyOperation, Place, Shape
    from sectorwise.machine.execution import Certainty, Waiting


@dataclass(frozen=True, slots=True)
class PatternUse:
    """One way in which the lanes of a site's requests lie: what one such request costs, and how many lie so, at least.

    `pictures` show it on the sectors of global memory, on the banks of shared memory, or on both for async copies.
    """

    requests: int
    sectors: int
    sectors_ideal: int
    wavefronts: int
    wavefronts_ideal: int
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class InstructionUse:
    """One instruction of the kernel's code, and by how many warps it was issued over the launch."""

    offset: str
    sass: str
    location: Location | None
    issued: int


@dataclass(frozen=True, slots=True)
class BulkCopyUse:
    """One instruction that copies whole tiles or ranges (TMA), with its sums over the launch.

    As in `machine.execution.BulkCopies`; `written_bytes` are those that arrive in shared memory, of every block that
    gets them, or in global memory. Where a place or size was not known `unknown_because` says why, and every number but
    `executed` is None.
    """

    offset: str
    sass: str
    location: Location | None
    operation: CopyOperation
    shape: Shape
    source: Place
    target: Place
    multicast: bool
    executed: int
    copies: int | None
    targets: int | None
    asked_bytes: int | None
    outside_bytes: int | None
    written_bytes: int | None
    row_bytes: int | None
    sectors: int | None
    sectors_ideal: int | None
    sectors_l2: int | None
    certainty: Certainty | None
    unknown_because: str | None


@dataclass(frozen=True, slots=True)
class RingUse:
    """Where the bulk loads of a block land, over and over; as in `model.rings.Ring`.

    No more than `in_flight_bytes_per_sm` can be in flight, `needed_bytes_per_sm` keep DRAM 95 % busy.
    """

    window_bytes: int
    stages: int
    passes: float
    in_flight_bytes_per_sm: int
    needed_bytes_per_sm: float


@dataclass(frozen=True, slots=True)
class Output:
    """Final contents of a buffer: `values` in the buffer's own type (bfloat16 as uint16 bits), shape [count]."""

    argument: str
    values: npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class HangReport:
    """Warps that wait for ever: nobody of the launch can go on, and its counts are of what ran until then.

    Not `is_certain`: estimates led there, or blocks that find no room beside might end it.
    """

    code: str
    offset: str
    location: Location | None
    waiting: Waiting
    warps: int
    message: str
    is_certain: bool
