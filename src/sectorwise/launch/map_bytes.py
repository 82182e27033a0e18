"""Turns a tensor map into the 128 bytes that the driver makes of it, and such bytes back into what the hardware reads.

The layout is not documented. It was read from what the driver (580.159, CUDA 13.0) makes of 200 maps that differ in one
thing each; `tests/launch/maps.json` has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.launch.config import TensorMapArgument

MAP_BYTES: Final = 128
MAP_ALIGNMENT_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class TensorMap:
    """A tensor map as the hardware reads it; tuples begin with the axis whose elements lie next to each other.

    `fill_word` is what four bytes outside of the tensor become; `is_plain` says that tiles are neither interleaved nor
    gathered (im2col), whose layout is not followed here.
    """

    address: int
    width_bytes: int
    shape: tuple[int, ...]
    strides_bytes: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    swizzle_bytes: int
    fill_word: int
    is_plain: bool

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of a tile along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.box, self.steps, strict=True))

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile in shared memory: what a barrier is told of when it has come."""
        return math.prod(self.extents) * self.width_bytes

    def swizzle(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where bytes of a tile lie in shared memory: 16-byte chunks change places, by the number of the 128-byte line.

        Of 8, 4 or 2 neighbouring chunks each, for swizzles of 128, 64 and 32 bytes.
        """
        return addresses ^ (addresses >> 3 & (self.swizzle_bytes - 16)) if self.swizzle_bytes else addresses


def encode_map(argument: TensorMapArgument, address: int) -> bytes:
    """Return the bytes of a tensor map of a buffer at `address`."""
    raise NotImplementedError


def decode_map(data: bytes) -> TensorMap | None:
    """Return what the bytes of a tensor map say; None where they are none."""
    raise NotImplementedError
