"""Turns numbers into the bits that elements of a type have in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.launch.dtypes import ElementType


def encode_values(values: npt.NDArray[np.generic], element: ElementType) -> npt.NDArray[np.generic]:
    """Return numbers converted to the storage type: whole numbers wrap, floats round to nearest even."""
    if element.name == "bf16":
        return _round_to_bfloat16(values.astype(np.float32))
    # Numbers above 65,504 become infinite in f16, as a conversion on the GPU makes them.
    with np.errstate(over="ignore"):
        return values.astype(element.storage, copy=False)


def encode_scalar(value: float, element: ElementType) -> bytes:
    """Return the little-endian bytes of one number that `find_misfit` passed."""
    if not element.is_float:
        return int(value).to_bytes(element.size_bytes, "little", signed=value < 0)
    # By way of the nearest double: an integer argument may have more bits than NumPy's conversion takes.
    return encode_values(np.array([float(value)]), element).tobytes()


def _round_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return the upper halves of float32 values, rounded to nearest even; a NaN stays one, as a quiet NaN."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)
