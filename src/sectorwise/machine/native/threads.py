"""Turns blocks that do not depend on each other into shares for the host's cores, each with a session of its own."""

from __future__ import annotations

import os
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.native.session import count_instructions, run_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.machine.native.session import Session

    Blocks = npt.NDArray[np.int64]

BLOCKS_AT_ONCE = 64
_MEASURED_ALONE = 4096
_SHOW_EVERY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Meter:
    """Where the warp instructions of each block go, `lengths` [blocks], and how many each basic block has, `sizes`."""

    lengths: npt.NDArray[np.float64]
    sizes: npt.NDArray[np.int64]


@dataclass(slots=True)
class _Share:
    """What one thread runs, how far it is, and why it stopped (0: it has not)."""

    session: Session
    blocks: Blocks
    meter: Meter | None = None
    done: int = 0
    stop: int = 0


@dataclass(slots=True)
class _Ending:
    """Whether all shares are to end: one of them has stopped."""

    asked: threading.Event = field(default_factory=threading.Event)


def count_threads(blocks: int) -> int:
    """How many threads are worth their memory for so many blocks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, blocks // BLOCKS_AT_ONCE))


def split_blocks(blocks: Blocks, count: int) -> list[Blocks]:
    """Blocks in `count` shares, neighbours together."""
    return [share for share in np.array_split(blocks, count) if share.size]


def run_shares(
    sessions: Sequence[Session],
    shares: Sequence[Blocks],
    report: Callable[[int], None] | None,
    meter: Meter | None = None,
) -> tuple[int, Session]:
    """Runs each share in its session; `report` is told the number of blocks done, `meter` how long they were.

    Gives why the first share that stopped did so (0: all have run), and its session.
    """
    ending = _Ending()
    parts = [_Share(session, blocks, meter) for session, blocks in zip(sessions, shares, strict=True)]
    if len(parts) == 1:
        _run_share(parts[0], ending, report)
    else:
        _run_together(parts, ending, report)
    stopped = next((part for part in parts if part.stop), parts[0])
    return stopped.stop, stopped.session


def _run_together(parts: list[_Share], ending: _Ending, report: Callable[[int], None] | None) -> None:
    with ThreadPoolExecutor(len(parts)) as pool:
        waiting = {pool.submit(_run_share, part, ending, None) for part in parts}
        while waiting:
            finished, waiting = wait(waiting, _SHOW_EVERY_SECONDS, FIRST_COMPLETED)
            for future in finished:
                future.result()
            if report is not None:
                report(sum(part.done for part in parts))


def _run_share(part: _Share, ending: _Ending, report: Callable[[int], None] | None) -> None:
    runs = np.split(part.blocks, np.flatnonzero(np.diff(part.blocks) != 1) + 1)
    # Of few blocks each is measured by itself; of many, those that run at once are taken to be equally long.
    step = 1 if part.meter is not None and part.blocks.size <= _MEASURED_ALONE else BLOCKS_AT_ONCE
    before = 0
    try:
        for run in runs:
            for first in range(int(run[0]), int(run[-1]) + 1, step):
                last = min(first + step, int(run[-1]) + 1)
                part.stop = run_blocks(part.session, first, last)
                if part.meter is not None:
                    after = count_instructions(part.session, part.meter.sizes)
                    part.meter.lengths[first:last] = (after - before) / (last - first)
                    before = after
                if part.stop or ending.asked.is_set():
                    return
                part.done += last - first
                if report is not None:
                    report(part.done)
    finally:
        if part.stop:
            ending.asked.set()
