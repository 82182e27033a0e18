"""Turns requests, as they are issued, into whatever an observer keeps of them: addresses for caches, races, tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.counting.request import Access


class Observer(Protocol):
    """Sees each memory instruction when some warps issue it together."""

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: npt.NDArray[np.int64],
        active: npt.NDArray[np.bool_],
    ) -> None:
        """`warps` [n]: linear block x warps a block + warp; `addresses` [n, 32]; `active` [n, 32]."""
        ...


def tell_request(
    observers: tuple[Observer, ...],
    instruction: int,
    access: Access,
    warps: npt.NDArray[np.int64],
    addresses: npt.NDArray[np.int64],
    active: npt.NDArray[np.bool_] | None,
) -> None:
    """Shows a request of some warps to all observers; `addresses` and `active` (None: all) broadcast to [warps, 32]."""
    shape = (len(warps), 32)
    lanes = np.ones(shape, np.bool_) if active is None else active
    for observer in observers:
        observer.on_request(instruction, access, warps, np.broadcast_to(addresses, shape), lanes)
