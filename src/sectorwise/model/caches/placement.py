"""Turns a window of blocks into where and when each runs: its SM, and its first tick."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Placement:
    """Where blocks run, int64 [blocks] each. A tick is the time in which a warp makes one memory request.

    `sm` is 0 to SMs - 1, `start` the tick at which a block begins.
    """

    sm: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]


def place_blocks(lengths: npt.NDArray[np.int64], blocks_per_sm: int, sm_count: int, gpcs: int) -> Placement:
    """Blocks of these lengths (ticks) dealt to SMs as the hardware does it.

    The first blocks go round the SMs in order, one each, then the second ones and so on, in nearly the same order: GPCs
    take turns, but not always in the same sequence, so that a block may land `gpcs` SMs further on. A block that ends
    makes room for the next one; among those that end together the one that was dealt first goes first. So the blocks
    of an SM lie one round of all SMs apart (2048 x 2048 in tiles of 16, t_mm_tile16: blocks in random order would
    share rows in L1 five times as often as was measured).

    The first blocks of an SM run in step. From then on they are spread over the length of a block, since the oldest
    warps go first: in step all blocks of a large product would ask for the same slice of a matrix, and DRAM would be
    read a fifth as often as was measured (k_mm64_rowmajor_4096).
    """
    generator = np.random.default_rng(0)
    shuffle = (gpcs * generator.random(blocks_per_sm * sm_count + lengths.size)).tolist()
    slots = [
        (0, layer, sm + (shuffle.pop() if layer else 0.0), sm)
        for layer in range(blocks_per_sm)
        for sm in range(sm_count)
    ]
    heapq.heapify(slots)
    sms, start = np.zeros(lengths.size, np.int64), np.zeros(lengths.size, np.int64)
    for block, length in enumerate(lengths.tolist()):
        begin, layer, _, sm = slots[0]
        lag = 0 if layer < blocks_per_sm else int(length * (layer % blocks_per_sm + generator.random()) / blocks_per_sm)
        sms[block], start[block] = sm, begin + lag
        heapq.heapreplace(slots, (begin + length, layer + blocks_per_sm, sm + shuffle.pop(), sm))
    return Placement(sms, start)
