"""Turns a kernel and how it is to be run into machine code, and into sessions that run its blocks and count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.counting.request import Operation, Space
from sectorwise.errors import StepLimitError
from sectorwise.machine.copy_sums import CopyCounter, merge_copies
from sectorwise.machine.counted import Counted, add_counted
from sectorwise.machine.native.compiler import build, find_built, load
from sectorwise.machine.native.layout import CONTEXT, MISSED, OUT_OF_FUEL, STRAYED
from sectorwise.machine.native.lazy import Buffers
from sectorwise.machine.native.loop import ENTRY, write_loop
from sectorwise.machine.native.routines import find_routines
from sectorwise.machine.native.sectors import SWEEPS, write_sweep
from sectorwise.machine.native.session import collect, measure_session, open_session, take_copies
from sectorwise.machine.native.threads import count_threads, run_shares, split_blocks
from sectorwise.machine.native.tiers import SECOND_LEVEL, Recipe, expect_seconds
from sectorwise.machine.native.translate import translate
from sectorwise.machine.native.unsupported import OccurredError, StrayedError, UnsupportedError
from sectorwise.machine.site_sums import merge_counter
from sectorwise.machine.sites import SiteCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access
    from sectorwise.machine.batch import Tally
    from sectorwise.machine.native.alike import Alike
    from sectorwise.machine.native.compiler import Host, Library
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Reach
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program, Step

    Blocks = npt.NDArray[np.int64]


class Plan(Struct, frozen=True):
    """How to run a kernel: `relevant` are the instructions that compute values, None for all.

    `reach` says which parts of memory instructions touch. `doubts` are memory instructions of which it is not certain
    that they do what they do here, and why; `assumes` says that there may be more. `calls` says that machine code calls
    Python often, `hands_back` that the reference engine is to run what it runs faster.
    """

    program: Program
    flow: Flow
    host: Host
    relevant: frozenset[int] | None
    reach: Reach
    doubts: Mapping[int, int] = field(default_factory=dict)
    assumes: bool = False
    calls: bool = False
    hands_back: bool = False


class Built(Struct, frozen=True):
    """A kernel's machine code, and what better code of it is made from: None where it is the best."""

    translation: Translation
    library: Library
    recipe: Recipe | None


class Crew(Struct, frozen=True):
    """Sessions that share the blocks of a launch."""

    tally: Tally
    plan: Plan
    built: Built
    sessions: list[Session]


def build_code(tally: Tally, plan: Plan, alike: Alike | None) -> Built:
    """Machine code; with `alike` it also watches what blocks have in common."""
    banks = {bank: len(content) for bank, content in tally.bound.banks.items()}
    translation = translate(plan.program, plan.flow, banks, plan.relevant, alike)
    text, host = make_module(translation), plan.host
    exports = (ENTRY, *(name for name in SWEEPS if f"@{name}(" in text))
    # Code of a run that once took long is at hand for the next.
    best = find_built(text, host, SECOND_LEVEL) if host.level < SECOND_LEVEL else build(text, host, host.level)[0]
    if best is not None:
        return Built(translation, load(best, exports), None)
    code, seconds = build(text, host, host.level)
    return Built(translation, load(code, exports), Recipe(text, host, exports, expect_seconds(seconds, len(code))))


def make_module(translation: Translation) -> str:
    """The text of a whole module: the kernel, the loop over blocks, and the routines that these need."""
    loop = write_loop(in_step=translation.in_step, tries=bool(translation.asides))
    needed = translation.needed | loop.emitter.needed
    routines = find_routines(needed)
    return "\n".join([routines, write_sweep(routines), translation.text, loop.text()])


def open_counters(plan: Plan, translation: Translation) -> dict[int, SiteCounter]:
    """Counters of all memory instructions; those with equal accesses remember together what patterns cost."""
    accesses = {step.instruction.index: step.access for step in plan.flow.steps()}
    memos: dict[Access, dict[bytes, npt.NDArray[np.int64]]] = {}
    counters = {}
    for index in translation.sites:
        access = accesses[index]
        if access is not None:
            counters[index] = SiteCounter(index, access)
            # Whether counts of the others are exact hangs on the pattern, and is not in the memo.
            if access.operation is not Operation.ASYNC_COPY and access.space is not Space.GENERIC:
                counters[index].memo = memos.setdefault(access, {})
    return counters


def open_crew(tally: Tally, plan: Plan, built: Built, blocks: int) -> Crew:
    """As many sessions as are worth their memory for so many blocks: one where blocks depend on each other."""
    translation, library = built.translation, built.library
    size = measure_session(tally.bound, translation, len(tally.global_memory.allocations))
    count = min(count_threads(blocks), max(1, tally.options.budget_bytes // size)) if is_independent(plan) else 1
    buffers, limit = open_buffers(tally, plan), tally.options.step_limit
    sessions = [
        open_session(tally.bound, translation, library, buffers, open_counters(plan, translation), limit, plan.reach)
        for _ in range(count)
    ]
    for session in sessions:
        attach_asides(session, tally.bound, plan, translation)
    return Crew(tally, plan, built, sessions)


def attach_asides(session: Session, bound: BoundLaunch, plan: Plan, translation: Translation) -> None:
    """Lets machine code of a session call what its translation leaves to Python, which is loaded where there is any."""
    if translation.asides:
        from sectorwise.machine.native.asides import attach_desk

        attach_desk(session, bound, plan.program, translation)


def open_buffers(tally: Tally, plan: Plan) -> Buffers:
    """The buffers of a launch; they may be made in parts where nothing but loads reads them, and nothing writes."""
    relevant = plan.relevant
    lazy = relevant is not None and not any(
        step.instruction.index in relevant and _moves_otherwise(step) for step in plan.flow.steps()
    )
    return Buffers(
        tally.global_memory, lazy, tally.options.memory_bytes, may_sample=tally.options.sample_above is not None
    )


def _moves_otherwise(step: Step) -> bool:
    return writes_buffers(step) or (step.access is not None and step.access.operation is Operation.ASYNC_COPY)


def count_blocks(crew: Crew, blocks: Blocks, report: Callable[[int], None] | None = None) -> Counted:
    """Runs blocks, on all cores where they do not depend on each other, neighbours together.

    `report` is told how many are done. Raises StepLimitError and UnsupportedError as `execute_native`.
    """
    shares = split_blocks(blocks, min(len(crew.sessions), count_threads(len(blocks))))
    sessions, translation = crew.sessions[: len(shares)], crew.built.translation
    for session in sessions:
        session.counters = open_counters(crew.plan, translation)
    stop, session = run_shares(sessions, shares, report, crew.tally.lengths, crew.built.recipe)
    check_stop(crew.tally, session, stop)
    counted = Counted(open_counters(crew.plan, translation), np.zeros((len(translation.blocks), 2), np.int64))
    for session in sessions:
        add_counted(counted, Counted(session.counters, collect(session), take_copies(session)))
    return counted


def enter_counted(tally: Tally, translation: Translation, counted: Counted) -> None:
    """Adds what blocks did to what the launch did: issues of basic blocks to each of their instructions."""
    for (warps, lanes), block in zip(counted.issued.tolist(), translation.blocks.values(), strict=True):
        tally.issued[block.start : block.stop] += warps
        tally.lanes[block.start : block.stop] += lanes
    for index, counter in counted.counters.items():
        merge_counter(tally.counters.setdefault(index, SiteCounter(index, counter.access)), counter)
    for index, copies in counted.bulk.items():
        merge_copies(tally.bulk.setdefault(index, CopyCounter()), copies)


def is_independent(plan: Plan) -> bool:
    """Whether no block stores what matters to another: then they may run in any order."""
    if plan.relevant is None:
        return False
    return not any(writes_buffers(step) and step.instruction.index in plan.relevant for step in plan.flow.steps())


def writes_buffers(step: Step) -> bool:
    """Whether an instruction may change what a buffer holds."""
    access = step.access
    if access is None or access.space not in (Space.GLOBAL, Space.GENERIC):
        return False
    return access.operation not in (Operation.LOAD, Operation.ASYNC_COPY)


def check_stop(tally: Tally, session: Session, stop: int) -> None:
    """Raises what a session stopped for (0: nothing)."""
    if stop == OUT_OF_FUEL:
        raise StepLimitError(_describe_endless(tally, session.context.get(CONTEXT["stop_pc"], "i")))
    if stop == STRAYED:
        raise StrayedError("an address reaches another buffer than the pointers that it was made from")
    if stop == MISSED:
        raise UnsupportedError("the launch comes to what the reference engine alone does")
    if stop:
        raise OccurredError("something happened that the reference engine describes")


def _describe_endless(tally: Tally, place: int) -> str:
    instruction = tally.bound.kernel.instructions[place]
    location = instruction.location
    where = f"{location.file}:{location.line}" if location is not None else f"offset 0x{instruction.offset:04x}"
    limit = f"{tally.options.step_limit:,}"
    return (
        f"{tally.bound.kernel.name}: a warp ran more than {limit} instructions and was still at {where} "
        f"({instruction.text}). If the kernel is meant to run that long, raise the step limit."
    )
