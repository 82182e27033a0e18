"""Turns a pair of arrays of one shape into the fewest axes by which both can be walked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.kernels.plan import Operand


@dataclass(frozen=True, slots=True)
class Axis:
    """So many elements, so far apart in bytes in the array that is read and in the one that is written."""

    extent: int
    from_bytes: int
    to_bytes: int


@dataclass(frozen=True, slots=True)
class Walk:
    """Axes of extents above 1, nearest first in the array that is written, and where to begin in bytes."""

    axes: tuple[Axis, ...]
    from_offset: int
    to_offset: int


def walk_together(source: Operand, target: Operand) -> Walk:
    """The walk that meets every element of both once; `target` is met in the order of its addresses.

    Both have the same shape, of no extent 0.
    """
    axes, from_offset, to_offset = [], 0, 0
    for extent, one, other in zip(source.shape, source.strides_bytes, target.strides_bytes, strict=True):
        if extent == 1:
            continue
        if other < 0:
            from_offset += (extent - 1) * one
            to_offset += (extent - 1) * other
            axes.append(Axis(extent, -one, -other))
        else:
            axes.append(Axis(extent, one, other))
    axes.sort(key=lambda axis: (axis.to_bytes, abs(axis.from_bytes)))
    return Walk(_merge(axes), from_offset, to_offset)


def _merge(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    merged: list[Axis] = []
    for axis in axes:
        inner = merged[-1] if merged else None
        if (
            inner is not None
            and axis.to_bytes == inner.extent * inner.to_bytes
            and axis.from_bytes == inner.extent * inner.from_bytes
        ):
            merged[-1] = Axis(inner.extent * axis.extent, inner.from_bytes, inner.to_bytes)
        else:
            merged.append(axis)
    return tuple(merged)


def find_span(operand: Operand) -> tuple[int, int]:
    """The first byte of an array and the one after its last; the same twice where it has no elements."""
    if 0 in operand.shape:
        return operand.address, operand.address
    reach = [(extent - 1) * stride for extent, stride in zip(operand.shape, operand.strides_bytes, strict=True)]
    low = operand.address + sum(each for each in reach if each < 0)
    return low, operand.address + sum(each for each in reach if each > 0) + operand.item_bytes


def overlaps_itself(operand: Operand) -> bool:
    """Whether two elements of an array may be the same bytes: its axes do not lie one around the other."""
    end = operand.item_bytes
    axes = sorted(
        (abs(stride), extent) for extent, stride in zip(operand.shape, operand.strides_bytes, strict=True) if extent > 1
    )
    for stride, extent in axes if 0 not in operand.shape else ():
        if stride < end:
            return True
        end += (extent - 1) * stride
    return False
