"""Turns blocks that do not depend on each other into shares for the host's cores, each with a session of its own."""

from __future__ import annotations

import os
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.machine.native.session import change_code, run_blocks
from sectorwise.machine.native.tiers import Tier, find_better

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.tiers import Recipe

    Blocks = npt.NDArray[np.int64]
    Lengths = npt.NDArray[np.float64]

BLOCKS_AT_ONCE = 64
_SHOW_EVERY_SECONDS = 0.1
_LONG_SECONDS = 0.1
"""Where blocks take longer, fewer run at once: between them it is asked how to go on."""


class _Share(Struct):
    """What one thread runs, where its lengths go, how far it is, and why it stopped (0: it has not).

    `seconds` of a processor have gone into it.
    """

    session: Session
    blocks: Blocks
    lengths: Lengths | None = None
    done: int = 0
    seconds: float = 0.0
    stop: int = 0
    is_better: bool = False


class _Run(Struct):
    """What the shares of a run have in common: better code for it, and whether to end: one of them has stopped."""

    shares: list[_Share]
    tier: Tier | None
    ending: threading.Event = field(default_factory=threading.Event)


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
    recipe: Recipe | None = None,
) -> tuple[int, Session]:
    """Runs each share in its session; `report` is told the number of blocks done.

    The warp instructions of each go into `lengths` [blocks]. A run that takes long goes on with the code that `recipe`
    gives. Gives why the first share that stopped did so (0: all have run), and its session.
    """
    parts = [_Share(session, blocks, lengths) for session, blocks in zip(sessions, shares, strict=True)]
    with ExitStack() as stack:
        total = sum(len(part.blocks) for part in parts)
        run = _Run(parts, None if recipe is None else Tier(recipe, total, stack))
        if len(parts) == 1:
            _run_share(parts[0], run, report)
        else:
            _run_together(run, report)
    stopped = next((part for part in parts if part.stop), parts[0])
    return stopped.stop, stopped.session


def _run_together(run: _Run, report: Callable[[int], None] | None) -> None:
    # Loaded here: most launches are run by one thread.
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(len(run.shares)) as pool:
        waiting = {pool.submit(_run_share, part, run, None) for part in run.shares}
        while waiting:
            finished, waiting = wait(waiting, _SHOW_EVERY_SECONDS, FIRST_COMPLETED)
            for future in finished:
                future.result()
            if report is not None:
                report(_count_done(run))


def _count_done(run: _Run) -> int:
    return sum(part.done for part in run.shares)


def _run_share(part: _Share, run: _Run, report: Callable[[int], None] | None) -> None:
    at_once = 1
    try:
        while part.done < len(part.blocks):
            blocks, begin = part.blocks[part.done : part.done + at_once], time.thread_time()
            part.stop, lengths = run_blocks(part.session, blocks)
            if part.lengths is not None:
                part.lengths[blocks] = lengths
            if part.stop or run.ending.is_set():
                return
            part.done += len(blocks)
            if report is not None:
                report(part.done)
            taken = time.thread_time() - begin
            part.seconds += taken
            at_once = max(at_once // 2, 1) if taken > _LONG_SECONDS else min(2 * at_once, BLOCKS_AT_ONCE)
            _improve(part, run)
    finally:
        if part.stop:
            run.ending.set()


def _improve(part: _Share, run: _Run) -> None:
    """Has a share go on with better code, once that is there."""
    if run.tier is None or part.is_better:
        return
    library = find_better(run.tier, sum(each.seconds for each in run.shares), _count_done(run))
    if library is not None:
        change_code(part.session, library)
        part.is_better = True
