"""Turns a bound launch into its execution with machine code of the host, made from the kernel's own instructions."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from sectorwise.launch.contents import materialise, needs_whole
from sectorwise.machine.batch import Tally, open_lengths
from sectorwise.machine.clusters import find_shape
from sectorwise.machine.counted import Counted
from sectorwise.machine.memory import open_global_memory
from sectorwise.machine.native.alike import SpoiledError, find_alike_registers
from sectorwise.machine.native.classes import run_examples
from sectorwise.machine.native.compiler import find_host
from sectorwise.machine.native.flow import find_flow, split_at_accesses
from sectorwise.machine.native.layout import LANES
from sectorwise.machine.native.origins import find_reach, reach_spaces
from sectorwise.machine.native.plan import (
    Plan,
    attach_asides,
    build_code,
    check_stop,
    count_blocks,
    enter_counted,
    is_independent,
    open_buffers,
    open_counters,
    open_crew,
    writes_buffers,
)
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.native.sampling import make_runner
from sectorwise.machine.native.session import open_session
from sectorwise.machine.native.suitability import find_doubts, find_met_doubts, find_racing
from sectorwise.machine.native.translate import is_skipped
from sectorwise.machine.native.unsupported import StrayedError, UnsupportedError
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import ASYNCHRONOUS, decode
from sectorwise.machine.sampling import FEWEST_BLOCKS, is_little, sample_blocks
from sectorwise.machine.taint import KNOWN
from sectorwise.machine.unknown import say_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.machine.execution import Execution, ExecutionOptions, Sampling
    from sectorwise.machine.native.alike import Alike
    from sectorwise.machine.native.compiler import Host
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Reach
    from sectorwise.machine.program import Program

_PADDING_BYTES = 64
_ELEMENTS_AT_ONCE = 1 << 16
_FEWEST_BLOCKS = 16
"""Fewer blocks are not worth asking which are alike."""

_MOST_CALLING = 8
"""So many blocks that call Python may run one after the other; the reference engine runs more of them together."""


def execute_native(
    bound: BoundLaunch,
    options: ExecutionOptions,
    progress: Callable[[int, int], None] | None = None,
    *,
    assumes: bool = False,
    host: Host | None = None,
    hands_back: bool = False,
) -> Execution:
    """Runs every lane of every warp of every block, block after block; the result is the reference engine's.

    Machine code is for `host`, for this machine where that is None.

    With `assumes` it also runs launches in which inexact values, or an order of warps, may decide what happens: their
    memory instructions are marked as assumed or dependent on the schedule wherever that may be, where the reference
    engine marks them only if it was so. With `hands_back` it leaves launches to that engine which run no faster here:
    dozens of blocks that are not alike, and call Python again and again.

    Raises:
        UnsupportedError: machine code does not do something of this launch; the reference engine does.
        StepLimitError: a warp ran more instructions than `options.step_limit`; the text names the line.
    """
    host = host or find_host()
    if host is None:
        raise UnsupportedError("there is no compiler for this machine")
    if options.observers:
        raise UnsupportedError("observers see requests in the reference engine alone")
    if find_shape(bound) is not None:
        raise UnsupportedError("blocks of a cluster run together in the reference engine alone")
    program = decode(bound.kernel)
    flow = find_flow(program)
    for reach, doubts, relevant in _list_reaches(flow, bound):
        calls = any(step.instruction.opcode in ASYNCHRONOUS for step in flow.steps())
        if doubts and (calls or not assumes):
            text = flow.step_at(min(doubts)).instruction.text
            raise UnsupportedError(f"{text} may depend on a value that is inexact, or on an order")
        with contextlib.suppress(StrayedError):
            plan = Plan(program, flow, host, relevant, reach, doubts, assumes, calls, hands_back)
            execution = _run(bound, options, plan, progress)
            if not calls and all(step.instruction.index in relevant for step in flow.steps() if writes_buffers(step)):
                return execution
            everything = Plan(program, flow, host, None, reach, assumes=True, calls=calls)
            return dataclasses.replace(execution, read_buffer=_read_later(bound, options, everything))
    raise UnsupportedError("an address reaches what it was thought not to reach")


def _list_reaches(flow: Flow, bound: BoundLaunch) -> Iterator[tuple[Reach, dict[int, int], frozenset[int]]]:
    """What instructions may reach, with what is doubtful then and what matters.

    First buffers, where something hangs on what is stored; then, as they may stray from these, whole spaces.
    """
    spaces = reach_spaces(flow, bound)
    doubts, relevant = find_doubts(flow, bound, spaces), frozenset(find_relevant(flow, spaces))
    if doubts or any(writes_buffers(step) and step.instruction.index in relevant for step in flow.steps()):
        buffers = find_reach(flow, bound)
        yield buffers, find_doubts(flow, bound, buffers), frozenset(find_relevant(flow, buffers))
    yield spaces, doubts, relevant


def _read_later(bound: BoundLaunch, options: ExecutionOptions, plan: Plan) -> Callable[[int], npt.NDArray[np.uint8]]:
    """Final bytes of buffers, by running the launch once more with all of its values, when they are asked for."""
    made: list[Execution] = []

    def read_buffer(number: int) -> npt.NDArray[np.uint8]:
        if not made:
            try:
                made.append(_run(bound, options, plan, None))
            except UnsupportedError:
                from sectorwise.machine.numpy_engine import execute

                made.append(execute(bound, options))
        return made[0].read_buffer(number)

    return read_buffer


def _run(
    bound: BoundLaunch, options: ExecutionOptions, plan: Plan, progress: Callable[[int, int], None] | None
) -> Execution:
    if plan.calls and plan.relevant is None:
        raise UnsupportedError("what whole ranges are copied is followed in the reference engine alone")
    blocks = bound.launch.blocks_total
    racing = find_racing(plan.flow, plan.reach, plan.relevant, blocks)
    if racing and plan.calls:
        raise UnsupportedError("values that depend on the order of warps, which wait for mbarriers")
    if racing:
        several = bound.launch.threads_per_block > LANES
        flow = split_at_accesses(plan.flow) if several else plan.flow
        plan = structs.replace(
            plan, flow=structs.replace(flow, in_step=several, racing=racing if blocks > 1 else frozenset())
        )
    tally = _open_tally(bound, options, plan.program)
    alike = _find_alike(bound, plan)
    whole = alike is not None and bool(alike.port.gone) and _is_run_whole(tally, plan)
    sampling = None
    with np.errstate(all="ignore"):
        left = np.arange(bound.launch.blocks_total)
        if alike is not None and not whole:
            # What machine code takes apart further than the proof did is no harm, only work.
            with contextlib.suppress(SpoiledError):
                left = _run_classes(tally, plan, alike, progress)
        if plan.calls and plan.hands_back and _MOST_CALLING < left.size < FEWEST_BLOCKS:
            raise UnsupportedError("blocks that are not alike, and wait for mbarriers")
        if left.size:
            sampling = _run_left(tally, plan, left, progress, whole=whole)
    met = {index: counter.met for index, counter in tally.counters.items() if counter.met}
    undefined = find_met_doubts(plan.flow, plan.reach, met)
    if undefined and not plan.assumes:
        text = plan.flow.step_at(min(undefined)).instruction.text
        raise UnsupportedError(f"{text} may depend on what CUDA leaves undefined")
    for step in plan.flow.steps():
        if tally.issued[step.instruction.index] and is_skipped(step, plan.relevant):
            say_unknown(tally, step, step.unknown_because)
    for index, counter in tally.counters.items():
        counter.executed = int(tally.issued[index])
        counter.doubts |= plan.doubts.get(index, KNOWN) | undefined.get(index, KNOWN)
    for index in {*plan.doubts, *undefined} - tally.counters.keys():
        tally.products[index] = plan.doubts.get(index, KNOWN) | undefined.get(index, KNOWN)
    return make_execution(tally, bound.launch.blocks_total, sampling)


def _is_run_whole(tally: Tally, plan: Plan) -> bool:
    """Whether all blocks are to run, so that nobody's slow paths (`detours`) are judged by those of other blocks."""
    most, blocks = tally.options.sample_above, np.arange(tally.bound.launch.blocks_total)
    if most is None or not is_independent(plan):
        return True
    crew = open_crew(tally, plan, build_code(tally, plan, None), len(blocks))
    return is_little(make_runner(crew), blocks, most)


def _run_classes(
    tally: Tally, plan: Plan, alike: Alike, progress: Callable[[int, int], None] | None
) -> npt.NDArray[np.int64]:
    """Runs one block of each class that is worth it; gives the blocks that are left."""
    bound = tally.bound
    built = build_code(tally, plan, alike)
    translation, library = built.translation, built.library
    counters, limit = open_counters(plan, translation), tally.options.step_limit
    session = open_session(bound, translation, library, open_buffers(tally, plan), counters, limit, plan.reach)
    attach_asides(session, bound, plan, translation)
    classes = run_examples(session, bound, translation, alike, progress, tally.lengths)
    check_stop(tally, session, classes.stop)
    enter_counted(tally, translation, Counted(counters, classes.issued, classes.copies))
    return classes.left


def _run_left(
    tally: Tally,
    plan: Plan,
    left: npt.NDArray[np.int64],
    progress: Callable[[int, int], None] | None,
    *,
    whole: bool,
) -> Sampling | None:
    """Runs blocks that nothing stands for: all, or unless `whole` some of many of which none depends on another."""
    crew = open_crew(tally, plan, build_code(tally, plan, None), len(left))
    total = tally.bound.launch.blocks_total
    report = None if progress is None else lambda done: progress(total - len(left) + done, total)
    if not whole and tally.options.sample_above is not None and is_independent(plan):
        work, grid = tally.options.sample_above, tally.bound.launch.grid
        sampled = sample_blocks(make_runner(crew), grid, left, work, tally.lengths, report)
        if sampled is not None:
            enter_counted(tally, crew.built.translation, sampled.counted)
            return sampled.sampling
    enter_counted(tally, crew.built.translation, count_blocks(crew, left, report))
    return None


def _find_alike(bound: BoundLaunch, plan: Plan) -> Alike | None:
    """What blocks have in common, where there are enough of them and only counts are asked for."""
    if plan.relevant is None or bound.launch.blocks_total < _FEWEST_BLOCKS:
        return None
    return find_alike_registers(plan.flow, plan.relevant, bound, plan.reach)


def _open_tally(bound: BoundLaunch, options: ExecutionOptions, program: Program) -> Tally:
    count = len(bound.kernel.instructions)
    return Tally(
        program,
        bound,
        options,
        open_global_memory(bound, _contents_of),
        {},
        {},
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        lengths=open_lengths(bound.launch.blocks_total),
    )


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    """The bytes of a buffer, with room behind them for whole words that are read at the last byte."""
    size = -(-max(allocation.size_bytes, 1) // 16) * 16
    padded = np.zeros(size + _PADDING_BYTES, np.uint8)
    buffer = allocation.buffer
    if buffer.contents.kind != "zeros":
        # In parts: what makes them takes several times their size.
        step = buffer.count if needs_whole(buffer) else _ELEMENTS_AT_ONCE
        at = 0
        for start in range(0, buffer.count, step):
            part = materialise(buffer, start, min(start + step, buffer.count)).view(np.uint8)
            padded[at : at + part.size] = part
            at += part.size
    return padded[:size]
