"""Turns arguments that are arrays in the same memory into one buffer and pointers into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.launch.config import BufferArgument, PointerArgument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.launch.config import Argument


def share_buffers(arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return the arguments, arrays that lie in another one replaced by pointers into that one.

    Only arrays given from Python can share memory; the names of those that do must differ.

    Raises:
        ArgumentError: two arrays overlap, and neither holds the other.
    """
    ranges = [_find_range(argument) for argument in arguments]
    shared: list[Argument] = []
    for place, argument in enumerate(arguments):
        holder = _find_holder(place, ranges)
        target = None if holder is None else arguments[holder]
        if holder is None or not isinstance(target, BufferArgument) or target.name is None:
            _refuse_overlap(place, ranges, arguments)
            shared.append(argument)
        else:
            shared.append(PointerArgument(target.name, _start(ranges, place) - _start(ranges, holder), argument.name))
    return tuple(shared)


def _find_range(argument: Argument) -> tuple[int, int] | None:
    array = argument.contents.array if isinstance(argument, BufferArgument) else None
    if array is None:
        return None
    start: int = array.__array_interface__["data"][0]
    return start, start + array.nbytes


def _start(ranges: Sequence[tuple[int, int] | None], place: int) -> int:
    found = ranges[place]
    return 0 if found is None else found[0]


def _find_holder(place: int, ranges: Sequence[tuple[int, int] | None]) -> int | None:
    """Return which other array has all bytes of this one: the first of equals, the largest of larger ones."""
    own = ranges[place]
    if own is None:
        return None
    larger = [
        (other[0] - other[1], index)
        for index, other in enumerate(ranges)
        if other is not None and other[0] <= own[0] and own[1] <= other[1] and (other != own or index < place)
    ]
    return min(larger)[1] if larger else None


def _refuse_overlap(place: int, ranges: Sequence[tuple[int, int] | None], arguments: Sequence[Argument]) -> None:
    own = ranges[place]
    for index, other in enumerate(ranges):
        if own is None or other is None or index == place:
            continue
        if other[0] < own[0] < other[1] < own[1]:
            names = f"{arguments[index].name} and {arguments[place].name}"
            raise ArgumentError(f"arguments {names} overlap in memory, and neither holds the other")
