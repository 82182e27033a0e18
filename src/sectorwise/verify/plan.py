"""Turns bound launches into a plan on disk that the launcher follows: the cubin, each launch's bytes, its buffers.

A plan is a folder with `plan.json` and the cubins. Parameters are the very bytes that were executed, with the
places where addresses stand; buffers are the recipes of their contents, so that nothing large is written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sectorwise.binding import match_variables
from sectorwise.launch.addresses import PlacedBuffer, find_address, find_buffers
from sectorwise.launch.config import BufferArgument, Contents, PointerArgument
from sectorwise.launch.packing import pack_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from sectorwise.binding import BoundLaunch
    from sectorwise.launch.config import Argument
    from sectorwise.launch.packing import Path as Way

PLAN_FILE: Final = "plan.json"
RESULT_FILE: Final = "result.json"
_POINTER_BYTES: Final = 8
_ONES: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class _Writer:
    """Where a launch's plan is written, with the addresses that its buffers had when it was executed."""

    folder: Path
    number: int
    bound: BoundLaunch
    placed: tuple[PlacedBuffer, ...]

    def address_of(self, argument: BufferArgument | PointerArgument, way: Way) -> int:
        return find_address(argument, way, self.placed)


def write_plan(
    folder: Path, launches: Sequence[tuple[bytes, BoundLaunch]], *, repeats: int, keep_outputs: bool
) -> Path:
    """Write the plan of launches, each with the cubin that its kernel is in, into a folder and return its file.

    Each launch is made `repeats` times, each time with fresh buffers; `keep_outputs` leaves what the first one left in
    memory beside the plan.
    """
    files = {
        cubin: f"kernels-{number}.cubin" for number, cubin in enumerate(dict.fromkeys(each for each, _ in launches))
    }
    for cubin, name in files.items():
        (folder / name).write_bytes(cubin)
    plans = [
        {"cubin": files[cubin], **_plan_launch(folder, number, bound)} for number, (cubin, bound) in enumerate(launches)
    ]
    path = folder / PLAN_FILE
    path.write_text(json.dumps({"repeats": repeats, "keep_outputs": keep_outputs, "launches": plans}))
    return path


def name_output(launch: int, allocation: int) -> str:
    """Name of the file with the final bytes of an allocation, by the launch's number and the allocation's."""
    return f"output-{launch}-{allocation}.bin"


def read_contents(recipe: dict[str, Any]) -> BufferArgument:
    """The buffer that a recipe of the plan describes."""
    contents = Contents(recipe["kind"], recipe["seed"], recipe["path"], below=recipe["below"])
    return BufferArgument(recipe["dtype"], recipe["count"], contents)


def _plan_launch(folder: Path, number: int, bound: BoundLaunch) -> dict[str, Any]:
    launch = bound.launch
    buffers = find_buffers(launch)
    bases = [allocation.base for allocation in bound.allocations[: len(buffers)]]
    placed = tuple(PlacedBuffer(*found, base) for found, base in zip(buffers, bases, strict=True))
    writer = _Writer(folder, number, bound, placed)
    variables = [each.name for each in bound.kernel.variables if each.space == "global"]
    return {
        "kernel": bound.kernel.name,
        "grid": launch.grid,
        "block": launch.block,
        "dynamic_shared_bytes": launch.dynamic_shared_bytes,
        "buffers": [_write_recipe(writer, each.buffer, str(place)) for place, each in enumerate(placed)],
        "parameters": _plan_parameters(writer),
        "variables": [_plan_variable(writer, *pair) for pair in match_variables(bound.kernel, launch).items()],
        "kept_variables": variables,
    }


def _plan_parameters(writer: _Writer) -> list[dict[str, Any]]:
    kernel, bank = writer.bound.kernel, writer.bound.banks[0]
    plans = []
    for parameter in sorted(kernel.parameters, key=lambda each: each.ordinal):
        start = kernel.parameter_base + parameter.offset_bytes
        argument = writer.bound.launch.arguments[parameter.ordinal]
        data = bank[start : start + parameter.size_bytes]
        plans.append(_plan_bytes(writer, argument, data, (parameter.ordinal,)))
    return plans


def _plan_variable(writer: _Writer, symbol: str, value: Argument) -> dict[str, Any]:
    """A buffer is the variable's own contents; anything else its bytes."""
    if isinstance(value, BufferArgument):
        return {"symbol": symbol, "contents": _write_recipe(writer, value, symbol)}
    size_bytes = next(each.size_bytes for each in writer.bound.kernel.variables if each.name == symbol)
    way: Way = (next(name for name, given in writer.bound.launch.constants if given is value),)
    data = pack_argument(value, size_bytes, writer.address_of, way)
    return {"symbol": symbol, **_plan_bytes(writer, value, data, way)}


def _plan_bytes(writer: _Writer, argument: Argument, data: bytes, way: Way) -> dict[str, Any]:
    """The bytes of an argument, and where addresses stand in them: offset, number of the buffer, bytes into it."""
    pointers = []
    for offset in find_pointers(argument, len(data), way):
        address = int.from_bytes(data[offset : offset + _POINTER_BYTES], "little")
        buffer, distance = _locate(writer.bound, len(writer.placed), address)
        pointers.append([offset, buffer, distance])
    return {"bytes": data.hex(), "pointers": pointers}


def find_pointers(argument: Argument, size_bytes: int, way: Way) -> tuple[int, ...]:
    """Byte offsets in a packed argument at which addresses of buffers stand."""
    if isinstance(argument, BufferArgument | PointerArgument):
        return (0,)
    number = 0

    def count(_argument: object, _way: object) -> int:
        nonlocal number
        number += 1
        return 0

    try:
        blank = pack_argument(argument, size_bytes, count, way)
    except ValueError:
        # A number whose type only the kernel knows; it holds no address.
        return ()
    return tuple(_find_marked(argument, blank, _mark(place), way) for place in range(number))


def _mark(place: int) -> Callable[[object, object], int]:
    """Addresses of zeros, but of ones for the pointer at that place in the order of packing."""
    seen = 0

    def address_of(_argument: object, _way: object) -> int:
        nonlocal seen
        seen += 1
        return _ONES if seen == place + 1 else 0

    return address_of


def _find_marked(argument: Argument, blank: bytes, address_of: Callable[[object, object], int], way: Way) -> int:
    marked = pack_argument(argument, len(blank), address_of, way)
    return next(index for index, (before, after) in enumerate(zip(blank, marked, strict=True)) if before != after)


def _locate(bound: BoundLaunch, buffers: int, address: int) -> tuple[int, int]:
    """Number of the buffer that an address lies in (or just behind), and the distance from its start."""
    for number, allocation in enumerate(bound.allocations[:buffers]):
        if allocation.base <= address <= allocation.base + allocation.size_bytes:
            return number, address - allocation.base
    message = f"0x{address:x} lies in no buffer"
    raise ValueError(message)


def _write_recipe(writer: _Writer, buffer: BufferArgument, name: str) -> dict[str, Any]:
    """How to make the contents of a buffer; an array given from Python is written beside the plan."""
    contents = buffer.contents
    recipe: dict[str, Any] = {"dtype": buffer.dtype, "count": buffer.count, "kind": contents.kind}
    recipe |= {"seed": contents.seed, "below": contents.below, "path": contents.path}
    if contents.array is not None:
        path = writer.folder / f"array-{writer.number}-{name}.npy"
        np.save(path, contents.array, allow_pickle=False)
        return recipe | {"kind": "file", "path": str(path)}
    if contents.path is not None:
        return recipe | {"path": str(contents.path)}
    return recipe
