"""Turns how arrays are stored (C, Fortran, padded, blocked, PyTorch's strides) into layouts of their coordinates.

Modes stand in the order of the array's axes: `layout(row, column)` is the offset, in elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.layout.algebra import Layout, column_major_strides

if TYPE_CHECKING:
    from collections.abc import Sequence


def c_order(shape: Sequence[int]) -> Layout:
    """Rows one after the other: the last axis is contiguous (NumPy's and PyTorch's default).

    >>> str(c_order((8192, 4096)))
    '(8192,4096):(4096,1)'
    """
    return padded_rows(shape, 0)


def fortran_order(shape: Sequence[int]) -> Layout:
    """Columns one after the other: the first axis is contiguous."""
    return Layout(tuple(shape), column_major_strides(tuple(shape)))


def padded_rows(shape: Sequence[int], padding: int) -> Layout:
    """C order with `padding` unused elements behind each run of the last axis, as `tile[32][33]` has one."""
    if padding < 0:
        raise ArgumentError(f"padding is {padding} elements; it must not be negative")
    strides, step = [1], shape[-1] + padding
    for extent in reversed(shape[1:-1]):
        strides.append(step)
        step *= extent
    strides.append(step)
    return Layout(tuple(shape), tuple(reversed(strides[: len(shape)])))


def with_strides(shape: Sequence[int], strides: Sequence[int]) -> Layout:
    """What `tensor.shape` and `tensor.stride()` of PyTorch say (elements), also of transposed views and slices."""
    return Layout(tuple(int(extent) for extent in shape), tuple(int(step) for step in strides))


def with_byte_strides(shape: Sequence[int], strides_bytes: Sequence[int], element_bytes: int) -> Layout:
    """What `array.shape` and `array.strides` of NumPy say: strides in bytes."""
    if any(step % element_bytes for step in strides_bytes):
        raise ArgumentError(f"strides {tuple(strides_bytes)} are no multiples of {element_bytes} bytes")
    return with_strides(shape, [step // element_bytes for step in strides_bytes])


def blocked(shape: Sequence[int], block: Sequence[int]) -> Layout:
    """Blocks one after the other in C order, each block in C order: axis k is nested as (inside, from block to block).

    >>> blocked((4, 4), (2, 2))(2, 1)
    9
    """
    if len(shape) != len(block):
        raise ArgumentError(f"shape {tuple(shape)} and block {tuple(block)} must have as many axes")
    for axis, (extent, inside) in enumerate(zip(shape, block, strict=True)):
        if inside < 1 or extent % inside:
            raise ArgumentError(f"axis {axis}: {extent} elements are no whole number of blocks of {inside}")
    counts = [extent // inside for extent, inside in zip(shape, block, strict=True)]
    inner, outer = c_order(block), c_order(counts)
    size = inner.size
    shapes = zip(block, counts, strict=True)
    strides = zip((step for _, step in inner.modes), (step * size for _, step in outer.modes), strict=True)
    return Layout(tuple(shapes), tuple(strides))
