"""Turns the names of element types (`f32`, `bf16`, `float32`) into sizes, ranges, and what does not fit them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from sectorwise.launch.config import BufferArgument


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type: its size, what kind of number it is, and NumPy's code of the type that stores its bits."""

    name: str
    size_bytes: int
    is_float: bool
    is_signed: bool
    storage_code: str

    @property
    def storage(self) -> np.dtype[np.generic]:
        """The NumPy type that its bits are stored in."""
        import numpy as np

        return np.dtype(self.storage_code)

    @property
    def low(self) -> int:
        """Least whole number of an integer type."""
        return -(1 << (8 * self.size_bytes - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        """Greatest whole number of an integer type."""
        return (1 << (8 * self.size_bytes - self.is_signed)) - 1


def _float(name: str, size_bytes: int, storage_code: str) -> ElementType:
    return ElementType(name, size_bytes, is_float=True, is_signed=True, storage_code=storage_code)


def _integer(name: str, size_bytes: int) -> ElementType:
    signed = name.startswith("i")
    return ElementType(name, size_bytes, is_float=False, is_signed=signed, storage_code=f"{name[0]}{size_bytes}")


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

_GREATEST_FINITE = {"f64": math.inf, "f32": 3.4028234663852886e38, "f16": 65504.0, "bf16": 3.3895313892515355e38}


def size_of(buffer: BufferArgument) -> int:
    """Return the bytes that a buffer takes."""
    return buffer.count * ELEMENT_TYPES[buffer.dtype].size_bytes


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


def find_trouble(buffer: BufferArgument) -> str | None:
    """Return what is wrong with these contents for this type and size, None if nothing is; files are not opened."""
    contents, element = buffer.contents, ELEMENT_TYPES[buffer.dtype]
    if contents.kind == "perm" and not element.is_float and buffer.count - 1 > element.high:
        what = f"a permutation of {buffer.count} elements"
        return f"{what} does not fit {element.name} (up to {element.high}); uniform(seed) does"
    if contents.below is not None:
        if element.is_float:
            return f"a bound is for whole numbers; uniform gives {element.name} from 0 to 1"
        if not 1 <= contents.below <= element.high + 1:
            return f"expected a bound of 1 to {element.high + 1} for {element.name}, got {contents.below}"
    return None
