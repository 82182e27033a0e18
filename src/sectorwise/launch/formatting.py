"""Turns a LaunchConfig back into launch notation, in one canonical spelling."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from sectorwise.launch.config import (
    BufferArgument,
    BytesArgument,
    PointerArgument,
    ScalarArgument,
    StructArgument,
)

if TYPE_CHECKING:
    from sectorwise.launch.config import Argument, Contents, LaunchConfig

_PLAIN_PATH = re.compile(r"""[^\s,;(){}\[\]"]+""")


def format_launch(launch: LaunchConfig) -> str:
    """Return the launch in notation; `parse_launch` of it is an equal launch, arrays given from Python apart.

    Sizes are written out, defaults (`zeros`, dimensions of 1, no shared memory) left out.
    """
    configuration = f"{_format_dimensions(launch.grid)}, {_format_dimensions(launch.block)}"
    if launch.dynamic_shared_bytes:
        configuration += f", {launch.dynamic_shared_bytes}"
    arguments = ", ".join(format_argument(argument) for argument in launch.arguments)
    text = f"{launch.kernel}<<<{configuration}>>>({arguments})"
    if launch.constants:
        variables = (f"{name}={_format_value(value)}" for name, value in launch.constants)
        text += f" with {', '.join(variables)}"
    return text


def format_argument(argument: Argument) -> str:
    """Return one argument in notation, with its name if it has one."""
    name = f"{argument.name}=" if argument.name is not None else ""
    return name + _format_value(argument)


def _format_value(argument: Argument) -> str:
    match argument:
        case BufferArgument():
            sizes = (argument.passed,) if argument.shape is None or argument.strides else argument.shape
            size = ", ".join(map(str, sizes))
            return f"{argument.dtype}[{size}]{_format_contents(argument.contents)}"
        case ScalarArgument():
            number = repr(argument.value)
            return f"{argument.dtype}({number})" if argument.dtype is not None else number
        case BytesArgument():
            return f"bytes({argument.data.hex()})"
        case StructArgument():
            return f"{{{', '.join(format_argument(member) for member in argument.fields)}}}"
        case PointerArgument():
            offset = f", {argument.offset_bytes}" if argument.offset_bytes else ""
            return f"ptr({argument.target}{offset})"


def _format_contents(contents: Contents) -> str:
    match contents.kind:
        case "zeros":
            return ""
        case "file":
            path = contents.path or ""
            return f"=@{path}" if _PLAIN_PATH.fullmatch(path) else f"=@{json.dumps(path, ensure_ascii=False)}"
        case "perm" | "uniform":
            below = f", {contents.below}" if contents.below is not None else ""
            return f"={contents.kind}({contents.seed}{below})"
        case _:
            return f"={contents.kind}"


def _format_dimensions(dimensions: tuple[int, int, int]) -> str:
    x, y, z = dimensions
    if z != 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if y != 1 else str(x)
