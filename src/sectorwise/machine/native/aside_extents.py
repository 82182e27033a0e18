"""Turns what a block's copies did into how far other blocks' copies may be from them and still be counted alike.

A tile is counted by where its rows begin in a line, and by which of its elements lie in the tensor; a range by where
it begins. So those of other blocks may be whole lines away, and tiles that lie inside along an axis anywhere inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.counting.pieces import LINE_BYTES
from sectorwise.machine.likeness import SAME, Extent, Form, add_forms

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.launch.map_bytes import TensorMap
    from sectorwise.machine.likeness import Axis
    from sectorwise.machine.native.meetings import Motion

    Columns = Mapping[Axis, npt.NDArray[np.int64]]

_FAR = 1 << 62
_WORD = (1 << 32) - 1


class Sight(Struct):
    """The least and greatest coordinates of the tiles that one instruction copied by one map, or addresses of a range.

    Of ranges (`tensor` is None) the three are the address, the one behind the last byte, and the address's lower word.
    """

    tensor: TensorMap | None
    least: list[int]
    greatest: list[int]


Sights = dict[tuple[int, int], Sight]
"""What has been seen since the last block began, by instruction and address of the map (0: ranges)."""


def look(sights: Sights, index: int, where: int, tensor: TensorMap | None, numbers: tuple[int, ...]) -> None:
    """Notes where an instruction copied something: a corner by the map at an address, or a range."""
    sight = sights.get((index, where))
    if sight is None:
        sights[index, where] = Sight(tensor, list(numbers), list(numbers))
        return
    sight.least = [min(pair) for pair in zip(sight.least, numbers, strict=True)]
    sight.greatest = [max(pair) for pair in zip(sight.greatest, numbers, strict=True)]


def find_extents(sights: Sights, motions: Mapping[int, Motion], bound: BoundLaunch) -> list[Extent]:
    """How far the places of copies may go."""
    found: list[Extent] = []
    for (index, _), sight in sights.items():
        motion = motions[index]
        if sight.tensor is None:
            low, high = _find_bounds(bound, sight)
            found.append(Extent(motion.address, sight.least[0], sight.greatest[1], low, high))
            found.append(Extent(motion.low, sight.least[2], sight.greatest[2], 0, _WORD))
            continue
        tensor = sight.tensor
        axes = zip(motion.corner, sight.least, sight.greatest, tensor.shape, tensor.extents, tensor.steps, strict=True)
        for form, least, greatest, size, count, step in axes:
            last = size - 1 - (count - 1) * step
            inside = least >= 0 and greatest <= last
            found.append(Extent(form, least, greatest, *((0, last) if inside else (least, greatest))))
    return [extent for extent in found if extent.form != SAME]


def _find_bounds(bound: BoundLaunch, sight: Sight) -> tuple[int, int]:
    """From where to where a range may move: within the buffer in which all of them were."""
    least, behind = sight.least[0], sight.greatest[1]
    for each in bound.allocations:
        if each.base <= least and behind <= each.base + each.size_bytes:
            return each.base, each.base + each.size_bytes
    return least, behind


def lie_alike(sights: Sights, motions: Mapping[int, Motion], columns: Columns) -> npt.NDArray[np.bool_]:
    """Which blocks' copies lie alike in lines as the first's, and whether that was where its tables say."""
    count = len(next(iter(columns.values())))
    alike = np.ones(count, np.bool_)
    for (index, _), sight in sights.items():
        motion = motions[index]
        if sight.tensor is None:
            moves, numbers = motion.address, sight.least[:1]
        else:
            strides = (sight.tensor.width_bytes, *sight.tensor.strides_bytes)
            moves, numbers = SAME, sight.least
            for form, stride in zip(motion.corner, strides, strict=True):
                moves = add_forms(moves, form, 64, stride)
        alike &= _follow(moves, columns) % LINE_BYTES == 0
        forms = (motion.address,) if sight.tensor is None else motion.corner
        for form, is_tabulated, least, greatest in zip(forms, motion.tabulated, numbers, sight.greatest, strict=False):
            if is_tabulated and form != SAME:
                ((axis, _),) = form
                mask = _WORD if sight.tensor is not None else -1
                if not least & mask == greatest & mask == int(columns[axis][0]) & mask:
                    alike[:] = False
    return alike


def _follow(form: Form, columns: Columns) -> npt.NDArray[np.int64]:
    """How far a value moves from the first block to each."""
    moved = np.zeros(len(next(iter(columns.values()))), np.int64)
    with np.errstate(over="ignore"):
        for axis, step in form:
            moved += (columns[axis] - columns[axis][0]) * np.int64(step)
    return moved
