"""Turns requests into the sets of bytes of each buffer that a launch loads and stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access

    Bytes = npt.NDArray[np.bool_]

_LOADS = frozenset((Operation.LOAD, Operation.ASYNC_COPY, Operation.ATOMIC, Operation.REDUCTION))
_STORES = frozenset((Operation.STORE, Operation.ATOMIC, Operation.REDUCTION))


@dataclass(frozen=True, slots=True)
class Touched:
    """An observer of global memory: `loaded` and `stored` have, for each allocation in order, a bool for each byte.

    Accesses outside of every buffer are left out: they are faults.
    """

    bound: BoundLaunch
    loaded: tuple[Bytes, ...]
    stored: tuple[Bytes, ...]

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: npt.NDArray[np.int64],
        active: npt.NDArray[np.bool_],
    ) -> None:
        """Marks what the lanes reach in global memory."""
        del instruction, warps
        if access.space not in (Space.GLOBAL, Space.GENERIC):
            return
        reached = addresses[active]
        for allocation, loaded, stored in zip(self.bound.allocations, self.loaded, self.stored, strict=True):
            first = reached - allocation.base
            first = first[(first >= 0) & (first <= allocation.size_bytes - access.width_bytes)]
            every = (first[:, None] + np.arange(access.width_bytes)).reshape(-1)
            if access.operation in _LOADS:
                loaded[every] = True
            if access.operation in _STORES:
                stored[every] = True


def watch_bytes(bound: BoundLaunch) -> Touched:
    """An observer for one launch that has seen nothing yet."""
    sizes = [allocation.size_bytes for allocation in bound.allocations]
    loaded, stored = (tuple(np.zeros(size, np.bool_) for size in sizes) for _ in range(2))
    return Touched(bound, loaded, stored)
