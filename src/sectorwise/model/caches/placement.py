"""Turns a window of blocks into where and when each runs: its SM, and its first tick."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

SPARE_TURN: Final = 6
"""Turns of other groups between two of the spare one."""

RUN_SMS: Final = 3
"""SMs of a group that get blocks one after the other, from the second wave on."""


class Placement(Struct, frozen=True):
    """Where blocks run, int64 [blocks] each. A tick is the time in which a warp makes one memory request.

    `sm` is 0 to SMs - 1, `start` the tick at which a block begins. `group` int64 [SMs]: the group that an SM is in,
    whose requests may travel together.
    """

    sm: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]


def split_evenly(sm_count: int, groups: int) -> tuple[int, ...]:
    """Sizes of so many groups of SMs, as even as they can be."""
    return tuple(len(part) for part in np.array_split(np.arange(sm_count), min(groups, sm_count)))


def place_blocks(lengths: npt.NDArray[np.int64], blocks_per_sm: int, groups: Sequence[int]) -> Placement:
    """Blocks of these lengths (ticks) dealt to groups of SMs of these sizes as the hardware does it.

    Groups take turns, and in its turn each SM of a group gets a block: so blocks that follow each other share a group,
    and those of an SM lie about a round of all SMs apart. A first group that is smaller than the second is spare: it
    has a turn at the beginning, after five of the others and then after every six, so it is full before they are (where
    the blocks of three launches ran on an H200: tests/measured/device/calibrate.json). A block that ends makes room for
    the next one. Those that end together do so in no order: there, from the second wave on, two blocks that follow each
    other share a group in two of three cases, and those a round of all SMs apart as seldom as any two.

    The first blocks of an SM run in step. From then on they are spread over the length of a block, since the oldest
    warps go first: in step all blocks of a large product would ask for the same slice of a matrix, and DRAM would be
    read a fifth as often as was measured (k_mm64_rowmajor_4096).
    """
    generator = np.random.default_rng(0)
    group = np.repeat(np.arange(len(groups)), groups)
    run = np.arange(group.size) // RUN_SMS + group * group.size
    waves = 1 + lengths.size // (group.size * blocks_per_sm)
    turns = generator.random((waves, blocks_per_sm, int(run.max()) + 1))
    dealt = np.fromiter(_deal(groups, blocks_per_sm), np.int64)
    slots = [(0, 0, float(turn), sm, turn // group.size) for turn, sm in enumerate(dealt.tolist())]
    heapq.heapify(slots)
    sms, start = np.zeros(lengths.size, np.int64), np.zeros(lengths.size, np.int64)
    for block, length in enumerate(lengths.tolist()):
        begin, layer, _, sm, place = slots[0]
        lag = int(length * (place + generator.random()) / blocks_per_sm) if layer else 0
        sms[block], start[block] = sm, begin + lag
        turn = float(turns[layer % waves, place, run[sm]])
        heapq.heapreplace(slots, (begin + length, layer + 1, turn, sm, place))
    return Placement(sms, start, group)


def _deal(groups: Sequence[int], blocks_per_sm: int) -> Iterator[int]:
    """The SMs that the first blocks go to, in order."""
    first = np.cumsum([0, *groups]).tolist()
    spare = len(groups) > 1 and groups[0] < groups[1]
    others = list(range(1 if spare else 0, len(groups)))
    spare_turns = blocks_per_sm if spare else 0
    for turn in range(len(others) * blocks_per_sm):
        if spare_turns and (not turn or turn % SPARE_TURN == SPARE_TURN - 1):
            spare_turns -= 1
            yield from range(first[0], first[1])
        group = others[turn % len(others)]
        yield from range(first[group], first[group + 1])
    for _ in range(spare_turns):
        yield from range(first[0], first[1])
