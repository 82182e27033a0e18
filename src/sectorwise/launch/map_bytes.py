"""Turns a tensor map into the 128 bytes that the driver makes of it, and such bytes back into what the hardware reads.

The layout is not documented. It was read from what the driver (580.159, CUDA 13.0) makes of 200 maps that differ in one
thing each; `tests/launch/tensor_maps.json` has them.
"""

from __future__ import annotations

import math
import struct
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

    `fill_word` is what four bytes outside of the tensor become; `is_plain` says that tiles are not interleaved: that
    layout is not followed here. `kind` is the type of the elements, of whole numbers of up to 16 bits without its sign.
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
    kind: str

    @property
    def extents(self) -> tuple[int, ...]:
        """Elements of a tile along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.box, self.steps, strict=True))

    @property
    def row_bytes(self) -> int:
        """Bytes of a tile along its first axis."""
        return self.box[0] * self.width_bytes

    @property
    def pitch_bytes(self) -> int:
        """Bytes from row to row in shared memory: a row that is swizzled takes all of the swizzle."""
        return self.swizzle_bytes or self.row_bytes

    @property
    def landing_bytes(self) -> int:
        """Bytes of shared memory from the first of a tile to behind its last row."""
        return math.prod(self.extents[1:]) * self.pitch_bytes

    @property
    def tile_bytes(self) -> int:
        """Bytes of a tile: what a barrier is told of when it has come."""
        return math.prod(self.extents) * self.width_bytes

    def swizzle(self, addresses: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Where bytes of a tile lie in shared memory: 16-byte chunks change places, by the number of the 128-byte line.

        Of 8, 4 or 2 neighbouring chunks each, for swizzles of 128, 64 and 32 bytes.
        """
        return addresses ^ (addresses >> 3 & (self.swizzle_bytes - 16)) if self.swizzle_bytes else addresses


_CODES: Final = {
    "u8": 0, "i8": 0, "u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "f16": 6, "f32": 7, "f64": 9,
    "bf16": 10,
}  # fmt: skip
_WIDTHS_BYTES: Final = {0: 1, 1: 2, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 4, 9: 8, 10: 2}
"""By code; 8 is a single whose denormals are flushed. TF32 has the code of a single and a bit of its own."""
_KINDS: Final = {code: kind for kind, code in reversed(_CODES.items())} | {8: "f32_ftz"}
_SWIZZLES: Final = (0, 32, 64, 128)
_INTERLEAVES: Final = (0, 16, 32)
_PROMOTIONS: Final = (0, 64, 128, 256)
_WORDS: Final = struct.Struct("<32I")
_UNIT_BYTES: Final = 16
_NAN_BITS: Final = 0x7FF77FF7
"""Of single and of half precision, as an H200 fills."""

# Words of the map: the address; a word of fields; strides in units of 16 bytes, their upper bits; sizes less one; the
# steps less one, three bits each, below the first size of the box less one; the others; the tile; the alignment.
_ADDRESS, _FIELDS, _STRIDES, _STRIDES_ABOVE, _SHAPE, _STEPS, _BOX, _TILE, _ALIGNMENT = 0, 2, 3, 7, 8, 13, 14, 16, 18
_RANK_BIT, _CODE_BIT, _INTERLEAVE_BIT, _SWIZZLE_BIT, _FILL_BIT, _PROMOTION_BIT, _FIRST_BOX_BIT = (
    4,
    7,
    11,
    13,
    15,
    17,
    24,
)


def encode_map(argument: TensorMapArgument, address: int) -> bytes:
    """Return the bytes of a tensor map of a buffer at `address`."""
    words = [0] * (MAP_BYTES // 4)
    words[_ADDRESS : _ADDRESS + 2] = address & 0xFFFFFFFF, address >> 32
    words[_FIELDS] = (
        (len(argument.shape) - 1) << _RANK_BIT
        | _CODES[argument.buffer.dtype] << _CODE_BIT
        | _INTERLEAVES.index(argument.interleave_bytes) << _INTERLEAVE_BIT
        | _SWIZZLES.index(argument.swizzle_bytes) << _SWIZZLE_BIT
        | argument.fill_nan << _FILL_BIT
        | _PROMOTIONS.index(argument.promotion_bytes) << _PROMOTION_BIT
    )
    for axis, stride in enumerate(argument.strides_bytes):
        units = stride // _UNIT_BYTES
        words[_STRIDES + axis] = units & 0xFFFFFFFF
        words[_STRIDES_ABOVE] |= units >> 32 << 4 * axis
    for axis, (size, box, step) in enumerate(zip(argument.shape, argument.box, argument.steps, strict=True)):
        words[_SHAPE + axis] = size - 1
        words[_STEPS] |= (step - 1) << 3 * axis
        if axis:
            words[_BOX] |= (box - 1) << 8 * (axis - 1)
    words[_STEPS] |= (argument.box[0] - 1) << _FIRST_BOX_BIT
    counts = (box // step for box, step in zip(argument.box, argument.steps, strict=True))
    words[_TILE] = math.prod(counts) * _WIDTHS_BYTES[_CODES[argument.buffer.dtype]]
    words[_ALIGNMENT] = 8 * argument.swizzle_bytes or _UNIT_BYTES
    return _WORDS.pack(*words)


def decode_map(data: bytes) -> TensorMap | None:
    """Return what the bytes of a tensor map say; None where they are none, or of a kind that is not known."""
    if len(data) != MAP_BYTES:
        return None
    words = _WORDS.unpack(data)
    fields = words[_FIELDS]
    axes, code = (fields >> _RANK_BIT & 7) + 1, fields >> _CODE_BIT & 15
    address = words[_ADDRESS] | words[_ADDRESS + 1] << 32
    if code not in _WIDTHS_BYTES or axes > len(words[_SHAPE:_STEPS]) or not address:
        return None
    strides = (
        (words[_STRIDES + axis] | (words[_STRIDES_ABOVE] >> 4 * axis & 15) << 32) * _UNIT_BYTES
        for axis in range(axes - 1)
    )
    box = (words[_STEPS] >> _FIRST_BOX_BIT, *(words[_BOX] >> 8 * axis & 255 for axis in range(axes - 1)))
    interleaved = bool(fields >> _INTERLEAVE_BIT & 3)
    steps = tuple((words[_STEPS] >> 3 * axis & 7) + 1 for axis in range(axes))
    # Without interleaving the first step is ignored (CUDA driver API, cuTensorMapEncodeTiled).
    steps = steps if interleaved else (1, *steps[1:])
    box = tuple(size + 1 for size in box)
    return TensorMap(
        address,
        _WIDTHS_BYTES[code],
        tuple(size + 1 for size in words[_SHAPE : _SHAPE + axes]),
        tuple(strides),
        box,
        steps,
        _SWIZZLES[fields >> _SWIZZLE_BIT & 3],
        _NAN_BITS if fields >> _FILL_BIT & 1 else 0,
        is_plain=not interleaved,
        kind=_KINDS[code],
    )
