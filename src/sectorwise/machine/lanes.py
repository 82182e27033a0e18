"""Turns lane masks between their two forms, a 32-bit word a warp and 32 booleans, and values into others' shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]

LANES = 32
ALL_LANES = np.uint32(0xFFFFFFFF)


def pack(lanes: Lanes, warps: int) -> Masks:
    """Words `[warps]` from booleans of a shape that broadcasts to `[warps, 32]`."""
    if lanes.shape[1] == 1:
        words: Masks = np.where(lanes[:, 0], ALL_LANES, np.uint32(0))
    else:
        words = np.ascontiguousarray(np.packbits(lanes, axis=1, bitorder="little")).view("<u4")[:, 0]
    return np.broadcast_to(words, (warps,))


def unpack(masks: Masks) -> Lanes:
    """Booleans `[n, 32]` from words `[n]`."""
    octets = np.ascontiguousarray(masks, "<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(octets, axis=1, bitorder="little").view(np.bool_)


def first_lane(masks: Masks) -> npt.NDArray[np.intp]:
    """Index of the lowest lane of each mask, 0 where the mask is empty."""
    lowest = masks & (~masks + np.uint32(1))
    return np.where(masks == 0, 0, np.bitwise_count(lowest - np.uint32(1))).astype(np.intp)


def of_first_lane(value: npt.NDArray[Any], lanes: Lanes | None, warps: int) -> npt.NDArray[Any]:
    """Each warp's value in the first of some lanes (None: all), `[warps, 1]`."""
    if lanes is None:
        return value[:, :1]
    lanes = np.broadcast_to(lanes, (warps, 32))
    return np.take_along_axis(np.broadcast_to(value, (warps, 32)), lanes.argmax(axis=1)[:, None], axis=1)


def as_signed(address: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Addresses of 32 or 64 bits as int64."""
    return address.view(np.int64) if address.dtype == np.uint64 else address.astype(np.int64)
