"""Turns a bound launch into its execution with machine code of the host, made from the kernel's own instructions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.request import Operation, Space
from sectorwise.errors import StepLimitError
from sectorwise.launch.contents import materialise
from sectorwise.machine.batch import Tally
from sectorwise.machine.memory import open_global_memory
from sectorwise.machine.native.compiler import build, find_host, load
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.layout import CONTEXT, OUT_OF_FUEL
from sectorwise.machine.native.loop import ENTRY, write_loop
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.session import close_session, open_session, run_blocks
from sectorwise.machine.native.suitability import check_certainty, check_order
from sectorwise.machine.native.translate import translate
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.numpy_engine import execute
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import decode
from sectorwise.machine.sites import SiteCounter

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.machine.execution import Execution, ExecutionOptions
    from sectorwise.machine.native.compiler import Host
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program, Step

_PADDING_BYTES = 64
_BLOCKS_AT_ONCE = 64


def execute_native(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None = None
) -> Execution:
    """Runs every lane of every warp of every block, block after block; the result is the reference engine's.

    Raises:
        UnsupportedError: machine code does not do something of this launch; the reference engine does.
        StepLimitError: a warp ran more instructions than `options.step_limit`; the text names the line.
    """
    host = find_host()
    if host is None:
        raise UnsupportedError("there is no compiler for this machine")
    if options.observers:
        raise UnsupportedError("observers see requests in the reference engine alone")
    program = decode(bound.kernel)
    flow = find_flow(program)
    check_certainty(flow, bound)
    relevant = frozenset(find_relevant(flow))
    execution = _run(bound, options, Plan(program, flow, host, relevant), progress)
    if all(step.instruction.index in relevant for step in flow.steps() if _writes_buffers(step)):
        return execution
    return replace(execution, read_buffer=_read_later(bound, options, Plan(program, flow, host, None)))


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a kernel: `relevant` are the instructions that compute values, None for all."""

    program: Program
    flow: Flow
    host: Host
    relevant: frozenset[int] | None


def _writes_buffers(step: Step) -> bool:
    access = step.access
    if access is None or access.space not in (Space.GLOBAL, Space.GENERIC):
        return False
    return access.operation not in (Operation.LOAD, Operation.ASYNC_COPY)


def _read_later(bound: BoundLaunch, options: ExecutionOptions, plan: Plan) -> Callable[[int], npt.NDArray[np.uint8]]:
    """Final bytes of buffers, by running the launch once more with all of its values, when they are asked for."""
    made: list[Execution] = []

    def read_buffer(number: int) -> npt.NDArray[np.uint8]:
        if not made:
            try:
                made.append(_run(bound, options, plan, None))
            except UnsupportedError:
                made.append(execute(bound, options))
        return made[0].read_buffer(number)

    return read_buffer


def _run(
    bound: BoundLaunch, options: ExecutionOptions, plan: Plan, progress: Callable[[int, int], None] | None
) -> Execution:
    check_order(plan.flow, plan.relevant)
    tally = _open_tally(bound, options, plan.program)
    banks = {bank: len(content) for bank, content in bound.banks.items()}
    translation = translate(plan.program, plan.flow, banks, plan.relevant)
    library = load(build(make_module(translation), plan.host, 0), (ENTRY,))
    accesses = {step.instruction.index: step.access for step in plan.flow.steps()}
    for index in translation.sites:
        access = accesses[index]
        if access is not None:
            tally.counters[index] = SiteCounter(index, access)
    with np.errstate(all="ignore"):
        session = open_session(bound, translation, library, tally.global_memory, tally.counters, options.step_limit)
        _run_all(tally, session, bound.launch.blocks_total, progress)
        _spread_issues(tally, translation, close_session(session))
    return make_execution(tally, bound.launch.blocks_total)


def make_module(translation: Translation) -> str:
    """The text of a whole module: the kernel, the loop over blocks, and the routines that these need."""
    loop = write_loop()
    needed = translation.needed | loop.emitter.needed
    return "\n".join([find_routines(needed), translation.text, loop.text()])


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
    )


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    """The bytes of a buffer, with room behind them for whole words that are read at the last byte."""
    size = -(-max(allocation.size_bytes, 1) // 16) * 16
    if allocation.buffer.contents.kind == "zeros":
        return np.zeros(size + _PADDING_BYTES, np.uint8)[:size]
    content = materialise(allocation.buffer).reshape(-1).view(np.uint8)
    padded = np.empty(size + _PADDING_BYTES, np.uint8)
    padded[: content.size] = content
    padded[content.size :] = 0
    return padded[:size]


def _run_all(tally: Tally, session: Session, total: int, progress: Callable[[int, int], None] | None) -> None:
    for first in range(0, total, _BLOCKS_AT_ONCE):
        last = min(first + _BLOCKS_AT_ONCE, total)
        stop = run_blocks(session, first, last)
        if stop == OUT_OF_FUEL:
            raise StepLimitError(_describe_endless(tally, session.context.get(CONTEXT["stop_pc"], "i")))
        if stop:
            raise UnsupportedError("something happened that the reference engine describes")
        if progress is not None:
            progress(last, total)


def _spread_issues(tally: Tally, translation: Translation, issues: npt.NDArray[np.int64]) -> None:
    """Issue counts of basic blocks, given to each of their instructions and memory sites."""
    for (warps, lanes), block in zip(issues.tolist(), translation.blocks.values(), strict=True):
        tally.issued[block.start : block.stop] += warps
        tally.lanes[block.start : block.stop] += lanes
    for index, counter in tally.counters.items():
        counter.executed = int(tally.issued[index])


def _describe_endless(tally: Tally, place: int) -> str:
    instruction = tally.bound.kernel.instructions[place]
    location = instruction.location
    where = f"{location.file}:{location.line}" if location is not None else f"offset 0x{instruction.offset:04x}"
    limit = f"{tally.options.step_limit:,}"
    return (
        f"{tally.bound.kernel.name}: a warp ran more than {limit} instructions and was still at {where} "
        f"({instruction.text}). If the kernel is meant to run that long, raise the step limit."
    )
