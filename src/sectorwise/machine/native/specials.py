"""Turns the names of special registers that follow from the lane into lane operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from sectorwise.machine.algebra import Algebra

V = TypeVar("V")


def read_lane_special(algebra: Algebra[V], name: str) -> V:
    """A special register that follows from the lane alone; zero for one that is not known."""
    lane = algebra.lane()
    one, full = algebra.word(1), algebra.word(-1)
    below = algebra.shift_left(full, lane)
    match name:
        case "SR_LANEID":
            return lane
        case "SR_EQMASK":
            return algebra.shift_left(one, lane)
        case "SR_GEMASK":
            return below
        case "SR_LTMASK":
            return algebra.invert(below)
        case "SR_GTMASK":
            return algebra.shift_left(below, one)
        case "SR_LEMASK":
            return algebra.invert(algebra.shift_left(below, one))
        case _:
            return algebra.word(0)
