"""Turns a grid and what an SM holds into waves: how many, how full the last is, which SMs idle, and what that costs."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

_MOST_WEIGHED: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class Waves:
    """How the blocks of equal length of a launch fill a device, wave after wave.

    `waves` is the profiler's `launch__waves_per_sm`: blocks over `blocks_per_wave`. `rounds` are the waves begun;
    `last_wave_pct` is how much of the last one's room is used, `idle_sms_last_wave` the SMs that get no block of it.
    Blocks are dealt breadth-first, so `most_blocks_an_sm` and `fewest_blocks_an_sm` differ by one at most in the end.
    """

    blocks: int
    blocks_per_sm: int
    sm_count: int
    blocks_per_wave: int
    rounds: int
    blocks_last_wave: int
    idle_sms_last_wave: int
    most_blocks_an_sm: int
    fewest_blocks_an_sm: int

    @property
    def waves(self) -> float:
        """Waves an SM, as the profiler counts them: not rounded."""
        return self.blocks / self.blocks_per_wave

    @property
    def last_wave_pct(self) -> float:
        """How full the last wave is."""
        return 100 * self.blocks_last_wave / self.blocks_per_wave

    @property
    def slowdown_if_latency_bound(self) -> float:
        """Time over that of perfectly even work, when a block takes as long alone on its SM as with its neighbours."""
        return self.rounds / self.waves

    @property
    def slowdown_if_throughput_bound(self) -> float:
        """Time over that of perfectly even work, when the blocks of an SM share its throughput evenly."""
        return self.most_blocks_an_sm * self.sm_count / self.blocks


@dataclass(frozen=True, slots=True)
class Timeline:
    """When the blocks of a launch run, their lengths given: `end` is the launch's length, in the lengths' unit.

    `busy_fraction` is the share of all slots' time that blocks fill; `idle_sms` are those that get no block at all;
    `last_start` is when the last block begins, after which slots only empty.
    """

    end: float
    busy_fraction: float
    idle_sms: int
    last_start: float
    ends_of_sms: tuple[float, ...]


def count_waves(blocks: int, blocks_per_sm: int, sm_count: int) -> Waves:
    """How `blocks` blocks of equal length fill `sm_count` SMs that hold `blocks_per_sm` each."""
    _require_positive(blocks=blocks, blocks_per_sm=blocks_per_sm, sm_count=sm_count)
    blocks_per_wave = blocks_per_sm * sm_count
    rounds = -(-blocks // blocks_per_wave)
    blocks_last_wave = blocks - (rounds - 1) * blocks_per_wave
    return Waves(
        blocks=blocks,
        blocks_per_sm=blocks_per_sm,
        sm_count=sm_count,
        blocks_per_wave=blocks_per_wave,
        rounds=rounds,
        blocks_last_wave=blocks_last_wave,
        idle_sms_last_wave=max(0, sm_count - blocks_last_wave),
        most_blocks_an_sm=-(-blocks // sm_count),
        fewest_blocks_an_sm=blocks // sm_count,
    )


def schedule_blocks(lengths: Sequence[float], blocks_per_sm: int, sm_count: int) -> Timeline:
    """When blocks of uneven length run: each, in launch order, takes the slot that is free first.

    Slots are filled breadth-first over the SMs. A block's length does not depend on its neighbours. One value a block
    in `lengths`, any unit, none negative; the time is O(blocks log slots).
    """
    _require_positive(blocks=len(lengths), blocks_per_sm=blocks_per_sm, sm_count=sm_count)
    slots = [(0.0, slot) for slot in range(min(blocks_per_sm * sm_count, len(lengths)))]
    ends = [0.0] * sm_count
    last_start = 0.0
    for block, length in enumerate(lengths):
        if length < 0:
            raise ArgumentError(f"block {block} has length {length}; lengths must not be negative")
        start, slot = slots[0]
        heapq.heapreplace(slots, (start + length, slot))
        last_start = start
        sm = slot % sm_count
        ends[sm] = max(ends[sm], start + length)
    end = max(ends)
    room = end * blocks_per_sm * sm_count
    return Timeline(
        end=end,
        busy_fraction=sum(lengths) / room if room else 0.0,
        idle_sms=max(0, sm_count - len(lengths)),
        last_start=last_start,
        ends_of_sms=tuple(ends),
    )


@dataclass(frozen=True, slots=True)
class Balance:
    """How unevenly the work of a launch is shared out: blocks of other lengths than the mean, one length a block.

    `slowdown` is the launch's length over that of blocks that are all as long as the mean; `longest_block` the number
    of the longest, `longest_times` how many times the mean it is; `busy_fraction` the share of all slots' time that
    blocks fill.
    """

    slowdown: float
    longest_block: int
    longest_times: float
    busy_fraction: float


def weigh_blocks(lengths: npt.NDArray[np.float64], blocks_per_sm: int, sm_count: int) -> Balance | None:
    """How unevenly blocks of these lengths fill a device; NaN stands for the length of the nearest block that has one.

    None where all are equally long, none is known, or there are so many that unevenness averages out.
    """
    known = np.flatnonzero(~np.isnan(lengths))
    if not known.size or lengths.size > _MOST_WEIGHED:
        return None
    filled = lengths
    if known.size < lengths.size:
        middles = (known[1:] + known[:-1]) / 2
        filled = lengths[known[np.searchsorted(middles, np.arange(lengths.size))]]
    mean = float(filled.mean())
    if mean <= 0 or float(filled.max()) == float(filled.min()):
        return None
    timeline = schedule_blocks(filled.tolist(), blocks_per_sm, sm_count)
    even = count_waves(lengths.size, blocks_per_sm, sm_count).rounds * mean
    longest = int(filled.argmax())
    return Balance(timeline.end / even, longest, float(filled[longest]) / mean, timeline.busy_fraction)


def _require_positive(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ArgumentError(f"{name} is {count}; it must be at least 1")
