"""Turns linear numbers of blocks into their places in the grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


def place_blocks(grid: tuple[int, int, int], blocks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Coordinates [n, 3] of linear block numbers."""
    x, y, _ = grid
    return np.stack([blocks % x, blocks // x % y, blocks // (x * y)], axis=1)
