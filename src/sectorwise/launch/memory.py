"""Turns an address and a number of elements into an array of what lies there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class _Memory:
    """What NumPy makes an array of; `owners` are kept as long as the array is."""

    __array_interface__: dict[str, object]
    owners: tuple[object, ...]


def view_memory(array: npt.NDArray[np.generic], start: int, count: int, *owners: object) -> npt.NDArray[np.generic]:
    """Return `count` elements from address `start` on, of the type of `array`, in whose memory they lie; read-only.

    Memory of `owners` may be part of it: they and `array` live as long as what is returned.
    """
    interface = {"data": (start, True), "shape": (count,), "typestr": array.dtype.str, "version": 3}
    return np.asarray(_Memory(interface, (array, *owners)))
