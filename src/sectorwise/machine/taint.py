"""Turns how sure values are into levels a lane: known, inexact or unknown, joined as values meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Levels = npt.NDArray[np.uint8]

KNOWN = 0
INEXACT = 1
"""Right in shape, not to the last bit: MUFU, tensor cores, order of float atomics, contents that were assumed."""
UNKNOWN = 2
"""Not known at all: clocks, opcodes without a definition, reads outside of every allocation."""

INEXACT_LEVEL: Levels = np.full((1, 1), INEXACT, np.uint8)
UNKNOWN_LEVEL: Levels = np.full((1, 1), UNKNOWN, np.uint8)


def join(a: Levels | None, b: Levels | None) -> Levels | None:
    """The less certain of two levels, lane by lane; None is known."""
    if a is None:
        return b
    if b is None or a is b:
        return a
    joined: Levels = np.maximum(a, b)
    return joined


def across_lanes(level: Levels, active: npt.NDArray[np.bool_] | None) -> Levels:
    """What a value made from all active lanes of a warp is: `[n, 1]`, the least certain of them."""
    if active is not None:
        level = np.where(active, level, np.uint8(KNOWN))
    reduced: Levels = level.max(axis=1, keepdims=True)
    return reduced


def worst(level: Levels | None, active: npt.NDArray[np.bool_] | None) -> int:
    """The least certain level among the active lanes."""
    if level is None:
        return KNOWN
    if active is not None:
        level = np.where(active, level, np.uint8(KNOWN))
    return int(level.max(initial=KNOWN))
