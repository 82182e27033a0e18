"""Turns the names of element types (`f32`, `bf16`, `float32`) into sizes and ranges, and numbers into their bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.dataclass import dataclass

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.launch.config import BufferArgument


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: its size, what kind of number it is, and the NumPy type that its bits are stored in."""

    name: str
    size_bytes: int
    is_float: bool
    is_signed: bool
    storage: np.dtype[np.generic]

    @property
    def low(self) -> int:
        """Least whole number of an integer type."""
        return -(1 << (8 * self.size_bytes - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        """Greatest whole number of an integer type."""
        return (1 << (8 * self.size_bytes - self.is_signed)) - 1


def _float(name: str, size_bytes: int, storage: str) -> ElementType:
    return ElementType(name, size_bytes, is_float=True, is_signed=True, storage=np.dtype(storage))


def _integer(name: str, size_bytes: int) -> ElementType:
    signed = name.startswith("i")
    storage: np.dtype[np.generic] = np.dtype(f"{'i' if signed else 'u'}{size_bytes}")
    return ElementType(name, size_bytes, is_float=False, is_signed=signed, storage=storage)


ELEMENT_TYPES: dict[str, ElementType] = {
    element.name: element
    for element in (
        _float("f64", 8, "f8"),
        _float("f32", 4, "f4"),
        _float("f16", 2, "f2"),
        # NumPy has no bfloat16: its bits are stored as 16-bit words.
        _float("bf16", 2, "u2"),
        _integer("i64", 8),
        _integer("i32", 4),
        _integer("i16", 2),
        _integer("i8", 1),
        _integer("u64", 8),
        _integer("u32", 4),
        _integer("u16", 2),
        _integer("u8", 1),
    )
}

LONG_NAMES: dict[str, str] = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
}
"""The long names, as launch files and NumPy write them."""

_GREATEST_FINITE = {"f64": math.inf, "f32": float(np.finfo("f4").max), "f16": 65504.0, "bf16": 3.3895313892515355e38}


def size_of(buffer: BufferArgument) -> int:
    """Return the bytes that a buffer takes."""
    return buffer.count * ELEMENT_TYPES[buffer.dtype].size_bytes


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


def find_misfit(value: float, element: ElementType) -> str | None:
    """Return why a number cannot be a value of this type, None if it can."""
    if element.is_float:
        greatest = _GREATEST_FINITE[element.name]
        if math.isfinite(value) and abs(value) > greatest:
            return f"{value} does not fit {element.name} (up to {greatest:g})"
        return None
    if isinstance(value, float):
        return f"expected a whole number for {element.name}, got {value}"
    if not element.low <= value <= element.high:
        return f"{value} does not fit {element.name} ({element.low} to {element.high})"
    return None


def _round_to_bfloat16(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Return the upper halves of float32 values, rounded to nearest even; a NaN stays one, as a quiet NaN."""
    bits = values.view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)
