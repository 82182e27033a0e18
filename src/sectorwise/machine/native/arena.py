"""Turns sizes into aligned memory that machine code may write, and fields of the layout into numbers there."""

from __future__ import annotations

import contextlib
import mmap
import struct
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    import numpy.typing as npt

_ALIGNMENT = 256
_FEWEST_SPARSE_BYTES = 1 << 20


class Region(Struct, frozen=True):
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


def make_sparse(size_bytes: int) -> npt.NDArray[np.uint8]:
    """Zeroed memory of which only those pages take room and time that are touched, and those are small."""
    if size_bytes < _FEWEST_SPARSE_BYTES:
        return np.zeros(size_bytes, np.uint8)
    pages = mmap.mmap(-1, size_bytes)
    advice = getattr(mmap, "MADV_NOHUGEPAGE", None)
    if advice is not None:
        # A kernel without huge pages refuses the advice, and does not need it.
        with contextlib.suppress(OSError):
            pages.madvise(advice)
    return np.frombuffer(pages, np.uint8)


def make_region(size_bytes: int) -> Region:
    """Zeroed memory; pages that nobody touches cost nothing."""
    owner = make_sparse(max(size_bytes, 1) + _ALIGNMENT)
    start = -owner.ctypes.data % _ALIGNMENT
    octets = owner[start : start + size_bytes]
    return Region(octets, owner.ctypes.data + start, owner)
