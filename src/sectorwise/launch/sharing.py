"""Turns arguments that are arrays in the same memory into one buffer and pointers into it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.launch.config import BufferArgument, Contents, PointerArgument
from sectorwise.launch.memory import view_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from sectorwise.launch.config import Argument


@dataclass(frozen=True, slots=True)
class _Range:
    """The memory of argument number `place`: its array from `start` to before `end`, with what is around `own`."""

    place: int
    buffer: BufferArgument
    array: npt.NDArray[np.generic]
    start: int
    end: int

    @property
    def own(self) -> tuple[int, int]:
        """From where to before where the elements of the argument itself lie."""
        size_bytes = self.array.itemsize
        return self.start + self.buffer.before * size_bytes, self.end - self.buffer.behind * size_bytes


def share_buffers(arguments: Sequence[Argument]) -> tuple[Argument, ...]:
    """Return the arguments; of arrays whose memory overlaps one becomes a buffer with all of it, the others pointers.

    Only arrays given from Python can share memory; the names of those that do must differ.

    Raises:
        ArgumentError: the memory is no whole number of elements of the array that begins first.
    """
    shared = list(arguments)
    ranges = [found for place, argument in enumerate(arguments) if (found := _find_range(place, argument)) is not None]
    for group in _group(ranges):
        holder = group[0]
        if len(group) == 1 or holder.buffer.name is None:
            continue
        shared[holder.place] = _widen(group)
        for each in group[1:]:
            passed = each.start + each.buffer.skip * each.array.itemsize
            shared[each.place] = PointerArgument(holder.buffer.name, passed - holder.start, each.buffer.name)
    return tuple(shared)


def _find_range(place: int, argument: Argument) -> _Range | None:
    array = argument.contents.array if isinstance(argument, BufferArgument) else None
    if not isinstance(argument, BufferArgument) or array is None:
        return None
    start: int = array.__array_interface__["data"][0]
    return _Range(place, argument, array, start, start + array.nbytes)


def _group(ranges: list[_Range]) -> list[list[_Range]]:
    """Those that overlap, directly or by way of others; the one that begins first, the largest of such, comes first."""
    groups: list[list[_Range]] = []
    end = 0
    for each in sorted(ranges, key=lambda found: (found.own[0], -found.own[1], found.place)):
        if groups and each.own[0] < end:
            groups[-1].append(each)
            end = max(end, each.own[1])
        else:
            groups.append([each])
            end = each.own[1]
    return groups


def _widen(group: list[_Range]) -> BufferArgument:
    """The first of a group, with the memory of all."""
    holder = group[0]
    end, own_end = max(each.end for each in group), max(each.own[1] for each in group)
    size_bytes = holder.array.itemsize
    count = (end - holder.start) // size_bytes
    if holder.start + count * size_bytes < own_end:
        names = " and ".join(str(each.buffer.name) for each in group)
        raise ArgumentError(f"arguments {names} overlap in memory, in parts of elements: pass copies")
    behind = (end - own_end) // size_bytes
    if end == holder.end and behind == holder.buffer.behind:
        return holder.buffer
    array = view_memory(holder.array, holder.start, count, *(each.array for each in group))
    return replace(
        holder.buffer, count=count, contents=Contents("array", array=array), shape=None, strides=None, behind=behind
    )
