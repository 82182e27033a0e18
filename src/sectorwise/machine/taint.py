"""Turns what makes values less than certain into flags a lane, joined as values meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Levels = npt.NDArray[np.uint8]

# A level is a set of these; none of them: known.
KNOWN = 0
INEXACT = 1
"""Right in shape, not to the last bit: MUFU, tensor cores, contents that were assumed."""
ORDERED = 2
"""Depends on the order in which warps run: what an atomic returns, sums of floats."""
UNKNOWN = 4
"""Not known at all: clocks, opcodes without a definition, reads outside of every allocation."""


def level_of(flags: int) -> Levels:
    """The same level for all lanes, `[1, 1]`."""
    return np.full((1, 1), flags, np.uint8)


INEXACT_LEVEL = level_of(INEXACT)
ORDERED_LEVEL = level_of(ORDERED)
UNKNOWN_LEVEL = level_of(UNKNOWN)


def join(a: Levels | None, b: Levels | None) -> Levels | None:
    """All that is uncertain about two values, lane by lane; None is known."""
    if a is None:
        return b
    if b is None or a is b:
        return a
    joined: Levels = a | b
    return joined


def across_lanes(level: Levels, active: npt.NDArray[np.bool_] | None) -> Levels:
    """What a value made from all active lanes of a warp is: `[n, 1]`."""
    if active is not None:
        level = np.where(active, level, np.uint8(KNOWN))
    return np.bitwise_or.reduce(level, axis=1, keepdims=True)


def collect(level: Levels | None, active: npt.NDArray[np.bool_] | None) -> int:
    """All that is uncertain about any active lane."""
    if level is None:
        return KNOWN
    if active is not None:
        level = np.where(active, level, np.uint8(KNOWN))
    return int(np.bitwise_or.reduce(level, axis=None))


def find_unknown(level: Levels) -> npt.NDArray[np.bool_]:
    """The lanes of which nothing is known."""
    unknown: npt.NDArray[np.bool_] = (level & UNKNOWN) != 0
    return unknown
