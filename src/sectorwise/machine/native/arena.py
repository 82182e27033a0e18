"""Turns sizes into aligned memory that machine code may write, and fields of the layout into numbers there."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class Region:
    """Zeroed bytes at an aligned address; `owner` keeps them alive."""

    octets: npt.NDArray[np.uint8]
    address: int
    owner: npt.NDArray[np.uint8]

    def put(self, offset: int, form: str, *values: int) -> None:
        """Sets numbers (a `struct` format) at an offset."""
        struct.pack_into(f"<{form}", self.octets.data, offset, *values)

    def get(self, offset: int, form: str) -> int:
        """A number at an offset."""
        value: int = struct.unpack_from(f"<{form}", self.octets.data, offset)[0]
        return value

    def view(self, dtype: npt.DTypeLike, offset: int, count: int) -> npt.NDArray[np.generic]:
        """Numbers from an offset on, in place."""
        size = np.dtype(dtype).itemsize * count
        return self.octets[offset : offset + size].view(dtype)


def make_region(size_bytes: int) -> Region:
    """Zeroed memory; pages that nobody touches cost nothing."""
    owner = np.zeros(max(size_bytes, 1) + _ALIGNMENT, np.uint8)
    start = -owner.ctypes.data % _ALIGNMENT
    octets = owner[start : start + size_bytes]
    return Region(octets, owner.ctypes.data + start, owner)
