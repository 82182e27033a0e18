"""Turns a bound launch that machine code does not run into its execution from a sample of its blocks."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from sectorwise.machine.clusters import count_inseparable
from sectorwise.machine.counted import Counted
from sectorwise.machine.doubts import spread_doubts
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.origins import find_reach
from sectorwise.machine.native.plan import writes_buffers
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.numpy_engine import execute, open_tally, run_numbers
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import ASYNCHRONOUS, decode
from sectorwise.machine.sampling import Runner, sample_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.batch import Tally
    from sectorwise.machine.execution import Execution, ExecutionOptions
    from sectorwise.machine.native.flow import Flow

    Blocks = npt.NDArray[np.int64]

_SLOWER = 32
"""The reference engine does so much less in a second than machine code."""

_FIRST_SAMPLE = 4
_WRITERS = ("UTMASTG", "UTMAREDG", "UBLKRED", "UBLKCP", "STAS")


class _StalledError(Exception):
    """Blocks wait for what no lane of theirs does."""


def execute_some(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None = None
) -> Execution:
    """The execution of `numpy_engine.execute`, estimated from some blocks where all are too much work.

    All run where the launch is not larger than `options.sample_above` allows, or blocks may depend on each other.
    """
    total = bound.launch.blocks_total
    found = None if options.sample_above is None or options.observers else _find_relevant(bound)
    if options.sample_above is None or found is None or not _is_independent(*found):
        return execute(bound, options, progress)
    whole = open_tally(bound, options)
    whole.brings = _loads_what_matters(*found)
    report = None if progress is None else lambda done: progress(done, total)
    runner = _make_runner(whole)
    work = options.sample_above // _SLOWER
    try:
        sampled = sample_blocks(runner, bound.launch.grid, np.arange(total), work, whole.lengths, report)
    except _StalledError:
        sampled = None
    if sampled is None:
        return execute(bound, options, progress)
    whole.issued[:], whole.lanes[:] = sampled.counted.issued.T
    whole.counters.update(sampled.counted.counters)
    whole.bulk.update(sampled.counted.bulk)
    execution = make_execution(whole, total, sampled.sampling)
    made: list[Execution] = []

    def read_buffer(number: int) -> npt.NDArray[np.uint8]:
        if not made:
            made.append(execute(bound, options))
        return made[0].read_buffer(number)

    return dataclasses.replace(execution, read_buffer=read_buffer)


def are_independent(bound: BoundLaunch) -> bool:
    """Whether no block reads what another may have written, as far as any count hangs on it."""
    found = _find_relevant(bound)
    return found is not None and _is_independent(*found)


def _find_relevant(bound: BoundLaunch) -> tuple[Flow, set[int]] | None:
    """What instructions do, and which values matter; None where that is not known."""
    try:
        flow = find_flow(decode(bound.kernel))
        reach = find_reach(flow, bound)
    except UnsupportedError:
        return None
    return flow, find_relevant(flow, reach)


def _is_independent(flow: Flow, relevant: set[int]) -> bool:
    if any(writes_buffers(step) and step.instruction.index in relevant for step in flow.steps()):
        return False
    return not (_copies_ranges(flow) and _loads_what_matters(flow, relevant))


def _copies_ranges(flow: Flow) -> bool:
    """Whether whole ranges are written that are not followed: by whom they are read is not known."""
    return any(step.instruction.opcode in _WRITERS for step in flow.steps())


def _loads_what_matters(flow: Flow, relevant: set[int]) -> bool:
    """Whether instructions that matter load anything but the words of mbarriers."""
    return any(
        flow.marks[step.instruction.index].loads is not None
        for step in flow.steps()
        if step.instruction.index in relevant and step.instruction.opcode not in ASYNCHRONOUS
    )


def _make_runner(whole: Tally) -> Runner:
    """Who runs blocks in the reference engine; places are instructions, and each is as much work."""
    count = len(whole.issued)

    def run(numbers: Blocks) -> Counted:
        own = structs.replace(
            whole, counters={}, issued=np.zeros(count, np.int64), lanes=np.zeros(count, np.int64), bulk={}
        )
        if not run_numbers(own, numbers):
            raise _StalledError
        spread_doubts(own)
        return Counted(own.counters, np.stack([own.issued, own.lanes], axis=1), own.bulk)

    return Runner(
        run,
        lambda: Counted({}, np.zeros((count, 2), np.int64)),
        np.ones(count, np.int64),
        np.ones(count, np.int64),
        _FIRST_SAMPLE,
        count_inseparable(whole.bound),
        is_coarse=True,
    )
