"""Turns tiles that tensor maps name into the sectors that the hardware moves for them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.counting.pieces import LINE_BYTES, SECTOR_BYTES, UNIT_BYTES, count_pieces, count_spread_pieces
from sectorwise.machine.copy_sums import Moved

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.launch.map_bytes import TensorMap

    Longs = npt.NDArray[np.int64]
    Lanes = npt.NDArray[np.bool_]

    Corner = tuple[int, ...]


class _Counted(Struct, frozen=True):
    """Sectors of a tile as its counter counts them, those that reach the L2, and whether both are sure."""

    sectors: int
    sectors_l2: int
    exact: bool


def measure_tile(tensor: TensorMap, corner: Corner, place: int, targets: int, *, loads: bool, spread: bool) -> Moved:
    """What the tile at a corner (in elements) moves from or to `place` in the shared window of each of its targets.

    `spread`: to several blocks of a cluster at once.
    """
    inside = math.prod(
        _count_inside(at, size, step, limit)
        for at, size, step, limit in zip(corner, tensor.extents, tensor.steps, tensor.shape, strict=True)
    )
    elements = math.prod(tensor.extents)
    if inside == elements:
        # Every other such tile whose rows lie alike in sectors and lines moves as much.
        address = find_address(tensor, corner) % LINE_BYTES
        counted = _count_whole(replace(tensor, address=0), address, place % LINE_BYTES, loads, spread)
    else:
        counted = _count(tensor, corner, place, loads=loads, spread=spread)
    asked = tensor.tile_bytes
    outside = (elements - inside) * tensor.width_bytes
    return Moved(
        copies=1,
        targets=targets,
        asked_bytes=asked,
        outside_bytes=outside,
        sectors=targets * counted.sectors,
        sectors_ideal=targets * -(-(asked if loads else asked - outside) // SECTOR_BYTES),
        sectors_l2=counted.sectors_l2,
        written_bytes=targets * (asked if loads else asked - outside),
        row_bytes=tensor.row_bytes,
        exact=counted.exact,
    )


def find_address(tensor: TensorMap, corner: Corner) -> int:
    """The address of the element at a corner, which may lie outside of the tensor."""
    strides = (tensor.width_bytes, *tensor.strides_bytes)
    return tensor.address + sum(at * stride for at, stride in zip(corner, strides, strict=True))


def list_units(tensor: TensorMap, corner: Corner) -> tuple[Longs, Lanes]:
    """The addresses of a tile's units of 16 bytes and which of them lie in the tensor, both `[rows, units]`."""
    rows = math.prod(tensor.extents[1:])
    unit = np.arange(tensor.row_bytes // UNIT_BYTES) * UNIT_BYTES
    column = corner[0] * tensor.width_bytes + unit
    address, within, left = np.full(rows, tensor.address), np.ones(rows, np.bool_), np.arange(rows)
    outer = zip(corner[1:], tensor.extents[1:], tensor.steps[1:], tensor.shape[1:], tensor.strides_bytes, strict=True)
    for first, size, step, limit, stride in outer:
        at = first + left % size * step
        within &= (at >= 0) & (at < limit)
        address = address + at * stride
        left = left // size
    inside = within[:, None] & (column >= 0) & (column < tensor.shape[0] * tensor.width_bytes)
    return address[:, None] + column, inside


def _count_inside(first: int, size: int, step: int, limit: int) -> int:
    """How many of `size` places from `first` on, `step` apart, lie between 0 and `limit`."""
    return max(0, min(size, -(-(limit - first) // step)) - max(0, -(first // step)))


def _count(tensor: TensorMap, corner: Corner, place: int, *, loads: bool, spread: bool) -> _Counted:
    addresses, inside = list_units(tensor, corner)
    rows, units = addresses.shape
    shared = place + np.arange(rows)[:, None] * tensor.pitch_bytes + np.arange(units) * UNIT_BYTES
    if spread:
        pieces = count_spread_pieces(addresses, shared, inside)
    else:
        pieces = count_pieces(addresses, shared, inside, loads=loads)
    return _Counted(int(pieces.moved.sum() + pieces.filled.sum()), int(pieces.at_l2.sum()), pieces.exact)


@lru_cache(4096)
def _count_whole(tensor: TensorMap, address: int, place: int, loads: bool, spread: bool) -> _Counted:  # noqa: FBT001 - a key
    """As `_count`, of a tile that lies wholly in a tensor and begins at an address."""
    corner = (0,) * len(tensor.shape)
    limits = tuple(size * step for size, step in zip(tensor.extents, tensor.steps, strict=True))
    return _count(replace(tensor, address=address, shape=limits), corner, place, loads=loads, spread=spread)
