"""Turns warp requests (rows of 32 addresses) of one instruction into arrays of counts, one entry a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Space(StrEnum):
    """The address space that an instruction accesses."""

    GLOBAL = "global"
    SHARED = "shared"
    LOCAL = "local"
    GENERIC = "generic"
    TEXTURE = "texture"
    SURFACE = "surface"


class Operation(StrEnum):
    """What a memory instruction does."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"
    ASYNC_COPY = "async_copy"
    MATRIX_LOAD = "matrix_load"
    MATRIX_STORE = "matrix_store"


@dataclass(frozen=True, slots=True)
class Access:
    """The form of a memory instruction: everything that its counts depend on besides addresses and mask."""

    space: Space
    operation: Operation
    width_bytes: int
    opcode: str
    modifiers: tuple[str, ...] = ()
    matrices: int = 0
    """Number of 8x8 matrices of a matrix load or store: 1, 2 or 4."""
    guard_negated: bool | None = None
    """Whether the guard `P0` is negated (`@!P0`); None without it. Only copies around L1 look at it."""
    taken_to_read: bool | None = None
    """What the source view takes all lanes of a copy around L1 to do: read, or fill zeros; None: what they do do."""

    @property
    def counts_stopped_lanes(self) -> bool:
        """Whether the source view also counts lanes that the guard stops: of copies around L1 under `@!P0`."""
        return self.operation is Operation.ASYNC_COPY and "BYPASS" in self.modifiers and self.guard_negated is True


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests of one access form.

    `addresses` int64 [n, 32] bytes (for async copies the global source; for shared, the offset in the shared window;
    for local, the offset in the thread's local memory), `mask` bool [n, 32] the lanes that access,
    `shared_addresses` int64 [n, 32] the destination of async copies, `source_bytes` int64 [n, 32] their source size,
    `generic_spaces` for generic accesses: per lane 0 global, 1 shared, 2 local,
    3 another block's shared memory.
    `issued` bool [n, 32] the lanes that issue the instruction, also those whose guard predicate is false; their
    addresses are then what the registers hold. Needed where `Access.counts_stopped_lanes`.
    """

    access: Access
    addresses: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]
    shared_addresses: npt.NDArray[np.int64] | None = None
    source_bytes: npt.NDArray[np.int64] | None = None
    generic_spaces: npt.NDArray[np.int8] | None = None
    issued: npt.NDArray[np.bool_] | None = None


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of n requests, int64 [n] each, in the words of the profiler's source view.

    `wavefronts_hardware` and `sectors_hardware` are what the L1 pipe counters count: passes over shared memory, and
    sectors of global memory. `exact` is False where a rule is a model.
    """

    sectors: npt.NDArray[np.int64]
    sectors_ideal: npt.NDArray[np.int64]
    tag_requests: npt.NDArray[np.int64]
    wavefronts: npt.NDArray[np.int64]
    wavefronts_ideal: npt.NDArray[np.int64]
    wavefronts_hardware: npt.NDArray[np.int64]
    sectors_local: npt.NDArray[np.int64]
    sectors_hardware: npt.NDArray[np.int64]
    exact: bool = True
