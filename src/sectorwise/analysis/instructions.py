"""Turns instructions, the ways in which their requests lie, and what buffers hold into plain data of an analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.binary.ir import Location
    from sectorwise.findings import Picture


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
class Output:
    """Final contents of a buffer: `values` in the buffer's own type (bfloat16 as uint16 bits), shape [count]."""

    argument: str
    values: npt.NDArray[np.generic]
