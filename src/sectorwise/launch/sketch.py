"""Turns a kernel's name and the types of its parameters into the launch that it takes, for people to fill in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.launch.signature import read_parameter_type

if TYPE_CHECKING:
    from collections.abc import Sequence


def sketch_launch(kernel: str, types: Sequence[str]) -> str:
    """`scale<<<grid, block>>>(f32[count], i32(value))`: grid, block, count and value are for a person to replace.

    A pointer to what has no name here, such as a struct, is shown as bytes, which any pointer takes.
    """
    return f"{kernel}<<<grid, block>>>({', '.join(_sketch_argument(spelled) for spelled in types)})"


def _sketch_argument(spelled: str) -> str:
    kind = read_parameter_type(spelled)
    if kind.is_pointer:
        return f"{kind.dtype}[count]" if kind.dtype is not None else "u8[bytes]"
    return f"{kind.dtype}(value)" if kind.dtype is not None and not kind.is_vector else "{fields}"
