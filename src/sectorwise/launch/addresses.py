"""Turns the sizes of buffers into device addresses: aligned as the driver aligns them, with guard space between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import BufferArgument, StructArgument
from sectorwise.launch.dtypes import ELEMENT_TYPES, size_of
from sectorwise.launch.packing import walk_buffers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.launch.config import LaunchConfig, PointerArgument
    from sectorwise.launch.packing import Path

FIRST_ADDRESS = 0x7F20_0000_0000
"""Of the order that the driver gives out under Linux: the upper half is not zero, 64-bit address arithmetic shows."""

ALIGNMENT_BYTES = 512
LARGE_BYTES = 1 << 20
"""From here on the driver gives a buffer 2 MiB pages of its own."""

PAGE_BYTES = 2 << 20


def assign_addresses(sizes_bytes: Iterable[int]) -> tuple[int, ...]:
    """Return an address for each buffer, the same for the same sizes, ascending.

    Buffers of 1 MiB and more start on 2 MiB; smaller ones on an odd multiple of 512 bytes, so that nothing is taken for
    better aligned than it need be. Between two buffers lie at least 2 MiB, and at least the size of the one before:
    an index off by a row, by a plane, or by the sign lands in no buffer.
    """
    addresses: list[int] = []
    free = FIRST_ADDRESS
    for size_bytes in sizes_bytes:
        address = -(-free // PAGE_BYTES) * PAGE_BYTES
        if size_bytes < LARGE_BYTES:
            address += (2 * len(addresses) + 1) % (PAGE_BYTES // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        addresses.append(address)
        free = address + size_bytes + max(PAGE_BYTES, size_bytes)
    return tuple(addresses)


@dataclass(frozen=True, slots=True)
class PlacedBuffer:
    """A buffer argument of a launch: the way that leads to it, what reports call it, and its first address."""

    path: Path
    label: str
    buffer: BufferArgument
    base: int


def find_buffers(launch: LaunchConfig) -> tuple[tuple[Path, str, BufferArgument], ...]:
    """Return the buffers that a launch needs: way, label and buffer, in the order in which they are written.

    A buffer that stands for a module variable itself is none of them.
    """
    found: list[tuple[Path, str, BufferArgument]] = []
    for index, argument in enumerate(launch.arguments):
        found += ((path, _label(path, buffer), buffer) for path, buffer in walk_buffers(argument, (index,)))
    for name, value in launch.constants:
        if isinstance(value, StructArgument):
            found += ((path, _label(path, buffer), buffer) for path, buffer in walk_buffers(value, (name,)))
    return tuple(found)


def find_address(argument: BufferArgument | PointerArgument, path: Path, placed: tuple[PlacedBuffer, ...]) -> int:
    """Return the address that a buffer or an alias stands for; raises LaunchError for an alias of nothing."""
    if isinstance(argument, BufferArgument):
        base = next(each.base for each in placed if each.path == path)
        return base + argument.skip * ELEMENT_TYPES[argument.dtype].size_bytes
    named = [each for each in placed if each.buffer.name == argument.target]
    if not named:
        names = [each.buffer.name for each in placed if each.buffer.name is not None]
        known = f"; named are {', '.join(names)}" if names else "; name one as in a=f32[1024]"
        raise launch_error(f"no buffer is named '{argument.target}'{known}", argument.span)
    if len(named) > 1:
        raise launch_error(f"{len(named)} buffers are named '{argument.target}'", argument.span)
    target = named[0]
    size_bytes = size_of(target.buffer)
    if not 0 <= argument.offset_bytes <= size_bytes:
        message = (
            f"expected an offset of 0 to {size_bytes:,} bytes into '{argument.target}', got {argument.offset_bytes:,}"
        )
        raise launch_error(message, argument.span)
    return target.base + argument.offset_bytes


def _label(path: Path, buffer: BufferArgument) -> str:
    """Return `out`, `argument 0`, `argument 1, field 2`, `tab, field 0`."""
    if buffer.name is not None:
        return buffer.name
    first = f"argument {path[0]}" if isinstance(path[0], int) else str(path[0])
    return ", ".join([first, *(f"field {index}" for index in path[1:])])
