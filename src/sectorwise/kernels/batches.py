"""Turns arrays whose last two axes are matrices into batches of products, as few as there can be."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import Operand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.kernels.arrays import DeviceArray

_MOST: Final = 65535
"""Blocks along the second axis of a grid (CUDA programming guide, compute capabilities)."""


@dataclass(frozen=True, slots=True)
class Batch:
    """C = A B for `count` matrices each, of which the first are given, and elements from one to the next: `apart`.

    Where all products have the same matrix that is 0.
    """

    a: DeviceArray
    b: DeviceArray
    c: DeviceArray
    count: int = 1
    apart: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Axis:
    """So many matrices, and bytes from one to the next in each array."""

    extent: int
    steps: tuple[int, ...]


def broadcast_shapes(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that both are stretched to, as NumPy has it; None where they do not fit."""
    extents = []
    for left, right in itertools.zip_longest(reversed(one), reversed(other), fillvalue=1):
        if left != right and 1 not in {left, right}:
            return None
        extents.append(right if left == 1 else left)
    return tuple(reversed(extents))


def turn_matrix(array: DeviceArray) -> DeviceArray:
    """A matrix with its axes exchanged."""
    held = array.operand
    turned = Operand(held.address, held.shape[::-1], held.strides_bytes[::-1], held.item_bytes)
    return replace(array, operand=turned)


def list_batches(a: DeviceArray, b: DeviceArray, c: DeviceArray) -> Iterator[Batch]:
    """The batches of a product of arrays, whose leading axes are stretched to C's; no axis of C is empty.

    Leading axes that lie alike in all three are one, and the longest that is left is the batch's. Matrices of A and C
    whose rows follow each other are one, where all meet the same B.
    """
    arrays = (a, b, c)
    lead = c.shape[:-2]
    steps = zip(*(_stretch(array, len(lead)) for array in arrays), strict=True)
    axes = _merge([_Axis(extent, each) for extent, each in zip(lead, steps, strict=True) if extent > 1])
    axes.sort(key=lambda axis: axis.extent)
    inner = axes.pop() if axes else _Axis(1, (0, 0, 0))
    begins = range(0, inner.extent, _MOST)
    for numbers in itertools.product(*(range(axis.extent) for axis in axes), begins):
        walked = (*axes, inner)
        offsets = [sum(n * axis.steps[i] for n, axis in zip(numbers, walked, strict=True)) for i in range(3)]
        firsts = [_take_matrix(array, offset) for array, offset in zip(arrays, offsets, strict=True)]
        count = min(_MOST, inner.extent - numbers[-1])
        apart = tuple(step // array.operand.item_bytes for step, array in zip(inner.steps, arrays, strict=True))
        yield _fold(Batch(firsts[0], firsts[1], firsts[2], count, (apart[0], apart[1], apart[2])))


def _stretch(array: DeviceArray, axes: int) -> tuple[int, ...]:
    """Bytes from matrix to matrix along so many leading axes, 0 along those that the array is stretched along."""
    lead = zip(array.shape[:-2], array.operand.strides_bytes[:-2], strict=True)
    own = tuple(0 if extent == 1 else step for extent, step in lead)
    return (0,) * (axes - len(own)) + own


def _merge(axes: Sequence[_Axis]) -> list[_Axis]:
    merged: list[_Axis] = []
    for axis in axes:
        outer = merged[-1] if merged else None
        if outer is not None and outer.steps == tuple(axis.extent * step for step in axis.steps):
            merged[-1] = _Axis(outer.extent * axis.extent, axis.steps)
        else:
            merged.append(axis)
    return merged


def _take_matrix(array: DeviceArray, offset_bytes: int) -> DeviceArray:
    held = array.operand
    matrix = Operand(held.address + offset_bytes, held.shape[-2:], held.strides_bytes[-2:], held.item_bytes)
    return replace(array, operand=matrix)


def _fold(batch: Batch) -> Batch:
    """One product, where all matrices of A have their rows one after the other, those of C too, and B is the same."""
    rows = batch.c.shape[0]
    a_apart, b_apart, c_apart = batch.apart
    follow = all(
        apart and apart == rows * (array.strides[0] if rows > 1 else apart)
        for array, apart in ((batch.a, a_apart), (batch.c, c_apart))
    )
    if batch.count == 1 or b_apart or not follow:
        return batch
    return Batch(_lengthen(batch.a, batch.count, a_apart), batch.b, _lengthen(batch.c, batch.count, c_apart))


def _lengthen(array: DeviceArray, times: int, apart: int) -> DeviceArray:
    held = array.operand
    rows, columns = held.shape
    strides = (apart // rows * held.item_bytes, held.strides_bytes[1])
    return replace(array, operand=Operand(held.address, (times * rows, columns), strides, held.item_bytes))
