"""Turns requests, as they are issued, into whatever an observer keeps of them: addresses for caches, races, tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
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
