"""Turns offsets into swizzled offsets: CuTe's `Swizzle<B,M,S>`, alone and behind a layout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.layout.algebra import IntTuple, Layout


@dataclass(frozen=True, slots=True)
class Swizzle:
    """XOR `bits` bits of an offset, from bit `base` up, with those `shift` places above (below, where negative).

    As in CuTe, offsets are in elements of what is swizzled: bytes for `Swizzle(3, 4, 3)` on rows of 128 bytes.

    >>> Swizzle(3, 4, 3)(128)
    144
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        """Check that the two groups of bits are apart."""
        if self.bits < 0 or self.base < 0:
            raise ArgumentError(f"{self} is no swizzle: bits and base must not be negative")
        if abs(self.shift) < self.bits:
            raise ArgumentError(f"{self} is no swizzle: a shift of {self.shift} lets its {self.bits} bits overlap")

    def __call__(self, offset: int) -> int:
        """The swizzled offset."""
        return int(self.offsets(offset))

    def offsets(self, offsets: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Swizzled offsets, an int64 array of the same shape."""
        given = np.asarray(offsets, dtype=np.int64)
        mask = ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))
        source = given & mask
        moved = source >> self.shift if self.shift >= 0 else source << -self.shift
        return np.asarray(given ^ moved, dtype=np.int64)

    def __str__(self) -> str:
        """CuTe's notation."""
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True, slots=True)
class SwizzledLayout:
    """`swizzle(offset + layout(i))`, what CuTe writes as `Sw<3,4,3> o 0 o (8,64):(64,1)`."""

    swizzle: Swizzle
    layout: Layout
    offset: int = 0

    @property
    def size(self) -> int:
        """How many coordinates it has."""
        return self.layout.size

    def __call__(self, *coordinate: IntTuple) -> int:
        """The offset of an index or a coordinate."""
        return self.swizzle(self.offset + self.layout(*coordinate))

    def offsets(self, indices: npt.ArrayLike | None = None) -> npt.NDArray[np.int64]:
        """Offsets of indices, an int64 array of their shape; of all in order, if none are given."""
        return self.swizzle.offsets(self.offset + self.layout.offsets(indices))

    def __str__(self) -> str:
        """The notation that `parse_layout` reads."""
        return f"{self.swizzle} o {f'{self.offset} o ' if self.offset else ''}{self.layout}"
