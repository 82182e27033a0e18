"""Turns the walks of a launch's last wave into how much later than the mean warp its last one ends, and its stores."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.model.concurrency import Concurrency


class Stretch(Struct, frozen=True):
    """A part of a warp's way in the last wave: so many passes, the walk of one, and how long one takes there."""

    passes: float
    walk: Concurrency
    pass_ns: float


def find_end(stretches: Sequence[Stretch]) -> float:
    """The ns by which the slowest of all warps of the last wave ends after what passes take in the mean.

    Earlier waves have none of it: where a block ends late, the next one begins late, and others begin early. What
    warps wait for beyond the mean adds up over passes as independent numbers do; of the slowest single pass what is
    beyond a normal distribution comes once. Passes that something else than waiting takes longer for hide it.
    """
    walked = [each for each in stretches if each.passes and each.walk.spread_ns]
    if not walked:
        return 0.0
    warps = max(each.walk.warps_per_sm * each.walk.sm_count for each in stretches)
    slowest = NormalDist().inv_cdf(1 - 1 / max(2, warps))
    variance = sum(each.passes * each.walk.spread_ns**2 for each in walked)
    beyond = max(0.0, *(each.walk.slowest_ns - slowest * each.walk.spread_ns for each in walked), 0.0)
    way = sum(each.passes * each.walk.walk_ns for each in stretches) + slowest * sqrt(variance) + beyond
    return max(0.0, way - sum(each.passes * each.pass_ns for each in stretches))
