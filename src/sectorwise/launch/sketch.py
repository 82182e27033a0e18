"""Turns a kernel's name and the types of its parameters into the launch that it takes, for people to fill in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sectorwise.launch.signature import read_parameter_type

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN_SHAPE = re.compile(r"[\d\s,()*/+<-]+")


def sketch_launch(kernel: str, types: Sequence[str], names: Sequence[str] = (), shape: str | None = None) -> str:
    """`scale<<<grid, block>>>(f32[count], i32(value))`: grid, block, count and value are for a person to replace.

    With the parameters' names it is `scale<<<grid, block>>>(in=f32[count], n=value)`, and a `shape` is taken where it
    has numbers only. A pointer to what has no name here, such as a struct, is shown as bytes, which any pointer takes.
    """
    wanted = names if len(names) == len(types) else [""] * len(types)
    listed = ", ".join(_sketch_argument(spelled, name) for spelled, name in zip(types, wanted, strict=True))
    return f"{kernel}<<<{shape if shape is not None and is_plain(shape) else 'grid, block'}>>>({listed})"


def is_plain(shape: str) -> bool:
    """Whether what stands between `<<<` and `>>>` has numbers only, so that it can be taken as it is."""
    return _PLAIN_SHAPE.fullmatch(shape) is not None


def _sketch_argument(spelled: str, name: str) -> str:
    kind = read_parameter_type(spelled)
    begin = f"{name}=" if name else ""
    if kind.is_pointer:
        return f"{begin}{f'{kind.dtype}[count]' if kind.dtype is not None else 'u8[bytes]'}"
    if kind.dtype is None or kind.is_vector:
        return f"{begin}{{fields}}"
    return f"{name}=value" if name else f"{kind.dtype}(value)"
