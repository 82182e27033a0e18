"""Turns a bound launch into its execution with machine code of the host, made from the kernel's own instructions."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.request import Operation, Space
from sectorwise.errors import StepLimitError
from sectorwise.launch.contents import materialise
from sectorwise.machine.batch import Tally
from sectorwise.machine.memory import open_global_memory
from sectorwise.machine.native.alike import LikenessPort, Registers, find_alike_registers, known_specials
from sectorwise.machine.native.classes import run_examples
from sectorwise.machine.native.compiler import build, find_host, load
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.layout import CONTEXT, OUT_OF_FUEL
from sectorwise.machine.native.loop import ENTRY, write_loop
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.session import collect, open_session
from sectorwise.machine.native.suitability import check_order, find_doubts
from sectorwise.machine.native.threads import count_threads, run_shares, split_blocks
from sectorwise.machine.native.translate import translate
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.numpy_engine import execute
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import decode
from sectorwise.machine.sites import SiteCounter, merge_counter
from sectorwise.machine.taint import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.machine.execution import Execution, ExecutionOptions
    from sectorwise.machine.native.alike import Alike
    from sectorwise.machine.native.compiler import Host, Library
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program, Step

_PADDING_BYTES = 64
_FEWEST_BLOCKS = 16
"""Fewer blocks are not worth asking which are alike."""


def execute_native(
    bound: BoundLaunch,
    options: ExecutionOptions,
    progress: Callable[[int, int], None] | None = None,
    *,
    assumes: bool = False,
) -> Execution:
    """Runs every lane of every warp of every block, block after block; the result is the reference engine's.

    With `assumes` it also runs launches in which inexact values, or an order of warps, may decide what happens: their
    memory instructions are marked as assumed or dependent on the schedule wherever that may be, where the reference
    engine marks them only if it was so.

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
    doubts = find_doubts(flow, bound)
    if doubts and not assumes:
        text = flow.step_at(min(doubts)).instruction.text
        raise UnsupportedError(f"{text} may depend on a value that is inexact, or on an order")
    relevant = frozenset(find_relevant(flow))
    execution = _run(bound, options, Plan(program, flow, host, relevant, doubts), progress)
    if all(step.instruction.index in relevant for step in flow.steps() if _writes_buffers(step)):
        return execution
    return replace(execution, read_buffer=_read_later(bound, options, Plan(program, flow, host, None)))


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a kernel: `relevant` are the instructions that compute values, None for all.

    `doubts` are memory instructions of which it is not certain that they do what they do here, and why.
    """

    program: Program
    flow: Flow
    host: Host
    relevant: frozenset[int] | None
    doubts: Mapping[int, int] = field(default_factory=dict)


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
    alike = _find_alike(bound, plan)
    with np.errstate(all="ignore"):
        left = np.arange(bound.launch.blocks_total)
        if alike is not None:
            left = _run_classes(tally, plan, alike, progress)
        if left.size:
            _run_left(tally, plan, left, progress)
    for index, counter in tally.counters.items():
        counter.executed = int(tally.issued[index])
        counter.doubts |= plan.doubts.get(index, KNOWN)
    return make_execution(tally, bound.launch.blocks_total)


def _run_classes(
    tally: Tally, plan: Plan, alike: Alike, progress: Callable[[int, int], None] | None
) -> npt.NDArray[np.int64]:
    """Runs one block of each class that is worth it; gives the blocks that are left."""
    bound = tally.bound
    translation, library = _build(tally, plan, (alike, _make_port(bound, alike)))
    counters = _open_counters(plan, translation)
    session = _open(tally, translation, library, counters, threading.Lock())
    classes = run_examples(session, bound, translation, alike, progress)
    _check_stop(tally, session, classes.stop)
    _spread_issues(tally, translation, classes.issued)
    _merge(tally, counters)
    return classes.left


def _find_alike(bound: BoundLaunch, plan: Plan) -> Alike | None:
    """What blocks have in common, where there are enough of them and only counts are asked for."""
    if plan.relevant is None or bound.launch.blocks_total < _FEWEST_BLOCKS:
        return None
    return find_alike_registers(plan.flow, plan.relevant, bound)


def _make_port(bound: BoundLaunch, alike: Alike) -> LikenessPort:
    return LikenessPort(bound, Registers(), alike.strides, alike.mutable, known_specials(bound))


def _build(tally: Tally, plan: Plan, alike: tuple[Alike, LikenessPort] | None) -> tuple[Translation, Library]:
    """Machine code."""
    banks = {bank: len(content) for bank, content in tally.bound.banks.items()}
    translation = translate(plan.program, plan.flow, banks, plan.relevant, alike)
    return translation, load(build(make_module(translation), plan.host, 0), (ENTRY,))


def _open_counters(plan: Plan, translation: Translation) -> dict[int, SiteCounter]:
    """Counters of all memory instructions."""
    accesses = {step.instruction.index: step.access for step in plan.flow.steps()}
    found = ((index, accesses[index]) for index in translation.sites)
    return {index: SiteCounter(index, access) for index, access in found if access is not None}


def _open(
    tally: Tally,
    translation: Translation,
    library: Library,
    counters: dict[int, SiteCounter],
    lock: threading.Lock,
) -> Session:
    """Memory for machine code."""
    limit = tally.options.step_limit
    return open_session(tally.bound, translation, library, tally.global_memory, counters, limit, lock)


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


def _run_left(
    tally: Tally, plan: Plan, left: npt.NDArray[np.int64], progress: Callable[[int, int], None] | None
) -> None:
    """Runs blocks, on all cores where they do not depend on each other; neighbours together."""
    translation, library = _build(tally, plan, None)
    shares = split_blocks(left, count_threads(len(left)) if _is_independent(plan) else 1)
    lock = threading.Lock()
    counters = [_open_counters(plan, translation) for _ in shares]
    sessions = [_open(tally, translation, library, own, lock) for own in counters]
    total = tally.bound.launch.blocks_total
    report = None if progress is None else lambda done: progress(total - len(left) + done, total)
    stop, session = run_shares(sessions, shares, report)
    _check_stop(tally, session, stop)
    for session, own in zip(sessions, counters, strict=True):
        _spread_issues(tally, translation, collect(session))
        _merge(tally, own)


def _is_independent(plan: Plan) -> bool:
    """Whether no block stores what matters to another: then they may run in any order."""
    if plan.relevant is None:
        return False
    return not any(_writes_buffers(step) and step.instruction.index in plan.relevant for step in plan.flow.steps())


def _merge(tally: Tally, counters: dict[int, SiteCounter]) -> None:
    for index, counter in counters.items():
        merge_counter(tally.counters.setdefault(index, SiteCounter(index, counter.access)), counter)


def _check_stop(tally: Tally, session: Session, stop: int) -> None:
    if stop == OUT_OF_FUEL:
        raise StepLimitError(_describe_endless(tally, session.context.get(CONTEXT["stop_pc"], "i")))
    if stop:
        raise UnsupportedError("something happened that the reference engine describes")


def _spread_issues(tally: Tally, translation: Translation, issues: npt.NDArray[np.int64]) -> None:
    """Issue counts of basic blocks, given to each of their instructions."""
    for (warps, lanes), block in zip(issues.tolist(), translation.blocks.values(), strict=True):
        tally.issued[block.start : block.stop] += warps
        tally.lanes[block.start : block.stop] += lanes


def _describe_endless(tally: Tally, place: int) -> str:
    instruction = tally.bound.kernel.instructions[place]
    location = instruction.location
    where = f"{location.file}:{location.line}" if location is not None else f"offset 0x{instruction.offset:04x}"
    limit = f"{tally.options.step_limit:,}"
    return (
        f"{tally.bound.kernel.name}: a warp ran more than {limit} instructions and was still at {where} "
        f"({instruction.text}). If the kernel is meant to run that long, raise the step limit."
    )
