"""Turns generic addresses of a batch into the memory that each lane reaches, other blocks' shared memory told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.count import GENERIC_ELSEWHERE, GENERIC_SHARED
from sectorwise.machine.memory import WINDOW_BYTES, generic_spaces

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.memory import BatchMemory


def split_spaces(
    memory: BatchMemory, addresses: npt.NDArray[np.int64], rows: npt.NDArray[np.intp] | None
) -> npt.NDArray[np.int8]:
    """The space of each lane of a generic access, as `counting.request.Requests` has it."""
    spaces = generic_spaces(memory.bound, addresses)
    shared, peers = spaces == GENERIC_SHARED, memory.peer_origins
    if peers is None or not shared.any():
        return spaces
    rank = (addresses - memory.bound.shared_window) // WINDOW_BYTES
    own = (peers == memory.shared_origins).argmax(axis=1, keepdims=True)
    away = rank != (own if rows is None else own[rows])
    return np.where(shared & away, np.int8(GENERIC_ELSEWHERE), spaces)
