"""Turns what flowed between the caches for a part of a launch into what flows for all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Flow:
    """Sectors of 32 bytes that went each way, scaled up from the sampled lines.

    By instruction: `asked` by loads and atomics, `filled` from the L2 into L1s, `read` at the L2 after merging,
    `missed` there, `waited` those that find their line on its way from DRAM, asked for by another SM in the same tick;
    `crossed` from one half of the L2 to the other, `kept_reads` in the L2, `dram_read`, of which `dram_lone` in half
    lines. `stored` by stores, `kept_writes` in the L2, `dirtied` there where it was clean, `dram_written`.
    """

    asked: dict[int, float] = field(default_factory=dict)
    filled: dict[int, float] = field(default_factory=dict)
    read: dict[int, float] = field(default_factory=dict)
    missed: dict[int, float] = field(default_factory=dict)
    waited: dict[int, float] = field(default_factory=dict)
    crossed: dict[int, float] = field(default_factory=dict)
    kept_reads: dict[int, float] = field(default_factory=dict)
    dram_read: dict[int, float] = field(default_factory=dict)
    dram_lone: dict[int, float] = field(default_factory=dict)
    stored: float = 0.0
    kept_writes: float = 0.0
    dirtied: float = 0.0
    dram_written: float = 0.0
    filled_up: float = 0.0


def scale_flow(flow: Flow, parts: int) -> Flow:
    """The flow of so many times the lines."""

    def scale(counts: dict[int, float]) -> dict[int, float]:
        return {instruction: count * parts for instruction, count in counts.items()}

    return Flow(
        asked=scale(flow.asked),
        filled=scale(flow.filled),
        read=scale(flow.read),
        missed=scale(flow.missed),
        waited=scale(flow.waited),
        crossed=scale(flow.crossed),
        kept_reads=scale(flow.kept_reads),
        dram_read=scale(flow.dram_read),
        dram_lone=scale(flow.dram_lone),
        stored=flow.stored * parts,
        kept_writes=flow.kept_writes * parts,
        dirtied=flow.dirtied * parts,
        dram_written=flow.dram_written * parts,
        filled_up=flow.filled_up * parts,
    )


def extrapolate(first: Flow, second: Flow, rest: float) -> Flow:
    """The first half of the window, and the second as often as it takes: it stands for all blocks that follow."""

    def join(one: Mapping[int, float], other: Mapping[int, float]) -> dict[int, float]:
        return {i: one.get(i, 0.0) + other.get(i, 0.0) * (1 + rest) for i in {*one, *other}}

    return Flow(
        asked=join(first.asked, second.asked),
        filled=join(first.filled, second.filled),
        read=join(first.read, second.read),
        missed=join(first.missed, second.missed),
        waited=join(first.waited, second.waited),
        crossed=join(first.crossed, second.crossed),
        kept_reads=join(first.kept_reads, second.kept_reads),
        dram_read=join(first.dram_read, second.dram_read),
        dram_lone=join(first.dram_lone, second.dram_lone),
        stored=first.stored + second.stored * (1 + rest),
        kept_writes=first.kept_writes + second.kept_writes * (1 + rest),
        dirtied=first.dirtied + second.dirtied * (1 + rest),
        dram_written=first.dram_written + second.dram_written * (1 + rest),
        filled_up=first.filled_up + second.filled_up * (1 + rest),
    )
