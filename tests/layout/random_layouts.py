"""Random layouts, tilers and pairs, from a seed."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

from sectorwise.layout.algebra import Layout, column_major_strides, flatten

if TYPE_CHECKING:
    from sectorwise.layout.algebra import IntTuple


def make_random(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - no secret


EXTENTS = (1, 2, 2, 3, 4, 4, 5, 6, 8)


MOST_COORDINATES = 128


def draw_shape(random: Random) -> IntTuple:
    while True:
        shape = _draw_part(random, 2)
        if math.prod(flatten(shape)) <= MOST_COORDINATES:
            return shape


def _draw_part(random: Random, depth: int) -> IntTuple:
    if depth == 0 or random.random() < 0.4:
        return random.choice(EXTENTS)
    return tuple(_draw_part(random, depth - 1) for _ in range(random.randint(1, 3)))


def draw_any(random: Random) -> Layout:
    """Any strides: overlapping, zero, with gaps."""
    shape = draw_shape(random)
    return Layout(shape, _map(shape, lambda: random.choice((0, 1, 2, 3, 4, 5, 8, 12, 16, 30, 64))))


def draw_injective(random: Random) -> Layout:
    """Every offset once: a compact layout with its modes in any order, some with gaps that divide."""
    shape = draw_shape(random)
    extents = flatten(shape)
    order = random.sample(range(len(extents)), len(extents))
    strides, step = [0] * len(extents), random.choice((1, 1, 2, 4))
    for place in order:
        strides[place] = step
        step *= extents[place] * random.choice((1, 1, 1, 2, 3))
    rest = iter(strides)
    return Layout(shape, _map(shape, lambda: next(rest)))


def draw_compact(random: Random) -> Layout:
    shape = draw_shape(random)
    return Layout(shape, column_major_strides(shape))


def _map(shape: IntTuple, draw: object) -> IntTuple:
    assert callable(draw)
    return draw() if isinstance(shape, int) else tuple(_map(part, draw) for part in shape)
