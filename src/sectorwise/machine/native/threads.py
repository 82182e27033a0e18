"""Turns blocks that do not depend on each other into shares for the host's cores, each with a session of its own."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.machine.native.session import run_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.machine.native.session import Session

    Blocks = npt.NDArray[np.int64]
    Lengths = npt.NDArray[np.float64]

BLOCKS_AT_ONCE = 64
_SHOW_EVERY_SECONDS = 0.1


class _Share(Struct):
    """What one thread runs, where its lengths go, how far it is, and why it stopped (0: it has not)."""

    session: Session
    blocks: Blocks
    lengths: Lengths | None = None
    done: int = 0
    stop: int = 0


class _Ending(Struct):
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
    lengths: Lengths | None = None,
) -> tuple[int, Session]:
    """Runs each share in its session; `report` is told the number of blocks done.

    The warp instructions of each go into `lengths` [blocks]. Gives why the first share that stopped did so
    (0: all have run), and its session.
    """
    ending = _Ending()
    parts = [_Share(session, blocks, lengths) for session, blocks in zip(sessions, shares, strict=True)]
    if len(parts) == 1:
        _run_share(parts[0], ending, report)
    else:
        _run_together(parts, ending, report)
    stopped = next((part for part in parts if part.stop), parts[0])
    return stopped.stop, stopped.session


def _run_together(parts: list[_Share], ending: _Ending, report: Callable[[int], None] | None) -> None:
    # Loaded here: most launches are run by one thread.
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(len(parts)) as pool:
        waiting = {pool.submit(_run_share, part, ending, None) for part in parts}
        while waiting:
            finished, waiting = wait(waiting, _SHOW_EVERY_SECONDS, FIRST_COMPLETED)
            for future in finished:
                future.result()
            if report is not None:
                report(sum(part.done for part in parts))


def _run_share(part: _Share, ending: _Ending, report: Callable[[int], None] | None) -> None:
    try:
        for start in range(0, len(part.blocks), BLOCKS_AT_ONCE):
            blocks = part.blocks[start : start + BLOCKS_AT_ONCE]
            part.stop, lengths = run_blocks(part.session, blocks)
            if part.lengths is not None:
                part.lengths[blocks] = lengths
            if part.stop or ending.asked.is_set():
                return
            part.done += len(blocks)
            if report is not None:
                report(part.done)
    finally:
        if part.stop:
            ending.asked.set()
