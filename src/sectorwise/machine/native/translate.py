"""Turns a decoded kernel into the text of an LLVM module that runs one warp's group from any of its basic blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE
from sectorwise.machine.native.algebra import LlvmAlgebra
from sectorwise.machine.native.control import Ending, end_block, read_ending, run_inline_control
from sectorwise.machine.native.flow import Flow, find_live, sees_others
from sectorwise.machine.native.layout import CONTEXT, OUT_OF_FUEL, WAITS, WORD_ROW
from sectorwise.machine.native.meetings import Registers
from sectorwise.machine.native.port import BlockState, LlvmPort
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native.watch import WatchedAlgebra, Watcher
from sectorwise.machine.native.writer import VECTOR, Writer
from sectorwise.machine.native.written import find_tracked
from sectorwise.machine.program import TERMINATORS
from sectorwise.machine.registers import PREDICATE, UNIFORM_PREDICATE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.counting.request import Space
    from sectorwise.machine.likeness import Form
    from sectorwise.machine.native.alike import Alike
    from sectorwise.machine.native.meetings import Motion
    from sectorwise.machine.native.values import Operand
    from sectorwise.machine.native.watch import Watch
    from sectorwise.machine.program import BasicBlock, Program, Step


_ALWAYS = (PREDICATE + TRUE_PREDICATE, UNIFORM_PREDICATE + TRUE_PREDICATE)


class Translation(Struct, frozen=True):
    """A kernel as LLVM text, with what goes with it.

    `blocks` are the first instructions of the basic blocks, in the order of their issue counters; `sites` numbers
    memory instructions (three numbers each), `sized` are the copies with a source size; `state_bytes` is the size of a
    warp's registers, `needed` the routines that the text calls. `watches` are the values whose least and greatest are
    kept, `moves` the forms by which addresses move between blocks, each with the period of
    its counts. `tracked` are the memories of which it is noted what was written; `in_step` is as in `Flow`. `asides`
    are the instructions that Python runs, with how their places move; `offsets` is where registers lie in a warp's
    state.
    """

    text: str
    blocks: dict[int, BasicBlock]
    sites: dict[int, int]
    sized: set[int]
    state_bytes: int
    needed: dict[str, None]
    watches: tuple[Watch, ...] = ()
    moves: tuple[tuple[Form, int], ...] = ()
    tracked: frozenset[Space] = frozenset()
    in_step: bool = False
    asides: Mapping[int, tuple[Step, Motion]] = field(default_factory=dict)
    offsets: Mapping[int, int] = field(default_factory=dict)


class _Draft(Struct, frozen=True):
    """A block whose registers are not written back yet."""

    block: BasicBlock
    lines: list[str]
    memo: dict[str, str]
    group: str
    state: BlockState
    ending: Ending | None


def translate(
    program: Program,
    flow: Flow,
    bank_sizes: dict[int, int],
    relevant: frozenset[int] | None,
    alike: Alike | None = None,
) -> Translation:
    """The kernel as LLVM text; `relevant` are the instructions that compute values, None for all.

    With `alike` it also watches the conditions under which other blocks are like the one that runs.

    Raises:
        UnsupportedError: something in it is for the reference engine alone.
    """
    blocks, leads = flow.blocks, flow.leads
    writer = Writer()
    port = LlvmPort(LlvmAlgebra(writer), writer, {}, {}, bank_sizes, find_tracked(flow, relevant), flow.racing)
    begins_alike: dict[int, Registers] = {}
    if alike is not None:
        begins_alike, port.alike, port.watcher = alike.begins, alike.port, Watcher(writer)
        port.algebra = WatchedAlgebra(port.algebra, port.watcher, port.watched_mask)
    port.numbers = {start: number for number, start in enumerate(blocks)}
    drafts = []
    for number, block in enumerate(blocks.values()):
        if port.alike is not None:
            port.alike.registers = Registers(dict(begins_alike.get(block.start, Registers()).slots))
        drafts.append(_draft(port, flow, block, number, relevant))
    needs = {draft.block.start: draft.state.needs for draft in drafts}
    writes = {draft.block.start: set(draft.state.written) for draft in drafts}
    begins, ends = find_live(leads, needs, writes)
    lines: list[str] = []
    for draft in drafts:
        lines += _finish(port, program, draft, ends[draft.block.start])
    clear = _clear(port, begins[0])
    text = _head(port, flow) + "\n".join(lines) + "\n}\n" + clear
    size = len(port.offsets) * WORD_ROW
    watches = port.watcher or Watcher(writer)
    moves = tuple(watches.moves)
    return Translation(
        text,
        blocks,
        port.sites,
        port.sized,
        size,
        writer.emitter.needed,
        tuple(watches.watches),
        moves,
        port.tracked,
        flow.in_step,
        {index: (flow.step_at(index), motion) for index, motion in port.asides.items()},
        port.offsets,
    )


def _draft(port: LlvmPort, flow: Flow, block: BasicBlock, number: int, relevant: frozenset[int] | None) -> _Draft:
    """A block's body, up to what its end decides by."""
    emitter = port.writer.emitter
    emitter.lines, emitter.memo = [], {}
    port.state = BlockState()
    port.guard = port.step = None
    _enter_block(port, block, number, in_step=flow.in_step)
    try:
        ending = _write_body(port, block, relevant, is_dead_end=block.start in flow.dead_ends)
    except UnsupportedError:
        # Seldom does a launch come here: a slow path, an assertion. If it does, the reference engine takes it over.
        emitter.effect(f"call void {emitter.require('miss')}(ptr %ctx)")
        ending = Ending("0", gives_up=True)
    return _Draft(block, emitter.lines, emitter.memo, port.group, port.state, ending)


def _write_body(
    port: LlvmPort, block: BasicBlock, relevant: frozenset[int] | None, *, is_dead_end: bool
) -> Ending | None:
    if is_dead_end:
        raise UnsupportedError("where it leads is not known")
    for step in block.steps:
        if is_skipped(step, relevant):
            continue
        if step.action is None and not step.is_control:
            raise UnsupportedError(step.unknown_because)
        port.computes = relevant is None or step.instruction.index in relevant
        if port.computes or step.access is not None:
            _write_step(port, step)
    port.computes = True
    if block.terminator is None:
        return None
    port.step = block.terminator
    if port.alike is not None:
        port.alike.begin(block.terminator)
        port.alike.settle_step(block.terminator)
        # What decides where lanes go is read in all of them.
        port.alike.guard = None
    port.guard = _guard_of(port, block.terminator)
    return read_ending(port, block.terminator)


def is_skipped(step: Step, relevant: frozenset[int] | None) -> bool:
    """Whether an instruction has no definition, and its results, which are not known, reach nothing that matters."""
    if step.action is not None or step.is_control or step.instruction.opcode in TERMINATORS:
        return False
    matters = relevant is None or step.instruction.index in relevant
    return not matters and step.access is None and step.guard_slot is None


def _write_step(port: LlvmPort, step: Step) -> None:
    port.step = step
    if port.alike is not None:
        port.alike.begin(step)
        port.alike.settle_step(step)
    port.guard = _guard_of(port, step)
    if port.watcher is not None and port.computes and sees_others(step):
        port.watcher.check_whole(port.group)
    if step.action is not None:
        step.action(port)
    else:
        run_inline_control(port, step.instruction)


def _guard_of(port: LlvmPort, step: Step) -> Operand | None:
    if step.guard_slot is None:
        return None
    always = port.algebra.predicate(True)  # noqa: FBT003 - a value
    value = always if step.guard_slot in _ALWAYS else port.read_slot(step.guard_slot)
    return port.algebra.invert(value) if step.guard_negated else value


def _enter_block(port: LlvmPort, block: BasicBlock, number: int, *, in_step: bool) -> None:
    """A block's begin: is it this group's turn (in step it is another's), is there fuel; then it is counted."""
    emitter = port.writer.emitter
    start, steps = block.start, block.stop - block.start
    emitter.label(f"e{start}")
    emitter.effect(f"store i32 {start}, ptr %place")
    if in_step:
        emitter.effect("br label %yield")
    else:
        least = emitter.result(f"load i32, ptr {_context(port, 'next_pc')}")
        others = emitter.result(f"icmp sge i32 {start}, {least}")
        emitter.effect(f"br i1 {others}, label %yield, label %b{start}")
    emitter.label(f"b{start}")
    fuel = emitter.result(f"load i64, ptr {_context(port, 'fuel')}")
    left = emitter.result(f"sub i64 {fuel}, {steps}")
    empty = emitter.result(f"icmp slt i64 {left}, 0")
    emitter.effect(f"br i1 {empty}, label %empty, label %r{start}")
    emitter.label(f"r{start}")
    emitter.effect(f"store i64 {left}, ptr {_context(port, 'fuel')}")
    port.group = emitter.result(f"load i32, ptr {_context(port, 'mask')}")
    count = emitter.pure(f"getelementptr i64, ptr %issued, i64 {2 * number}")
    issued = emitter.result(f"load i64, ptr {count}")
    emitter.effect(f"store i64 {emitter.result(f'add i64 {issued}, 1')}, ptr {count}")
    sum_place = emitter.pure(f"getelementptr i64, ptr %issued, i64 {2 * number + 1}")
    bits = emitter.pure(f"call i32 @llvm.ctpop.i32(i32 {port.group})")
    lanes = emitter.result(f"load i64, ptr {sum_place}")
    total = emitter.result(f"add i64 {lanes}, {emitter.pure(f'zext i32 {bits} to i64')}")
    emitter.effect(f"store i64 {total}, ptr {sum_place}")


def _context(port: LlvmPort, field: str) -> str:
    """Pointer to a field of the context."""
    return port.writer.emitter.pure(f"getelementptr i8, ptr %ctx, i64 {CONTEXT[field]}")


def _finish(port: LlvmPort, program: Program, draft: _Draft, live: set[int]) -> list[str]:
    """The block with live registers written back, and its end."""
    emitter = port.writer.emitter
    emitter.lines, emitter.memo = draft.lines, draft.memo
    port.state, port.group = draft.state, draft.group
    shown = () if draft.ending is None else draft.ending.shown
    for slot in draft.state.written:
        if slot in live or slot in shown:
            port.store_slot(slot)
    end_block(port, program, draft.block, draft.ending)
    return emitter.lines


def _head(port: LlvmPort, flow: Flow) -> str:
    """The function's begin, and what all blocks share."""
    loads = {
        "state": "state",
        "warp": "warp",
        "special": "special",
        "launch": "launch_special",
        "sites": "sites",
        "issued": "issued",
        "watches": "watches",
    }
    lines = ["define internal i32 @run(ptr noalias %ctx) noinline {", "entry:", "  %place = alloca i32"]
    for name, source in loads.items():
        lines.append(f"  %at.{name} = getelementptr i8, ptr %ctx, i64 {CONTEXT[source]}")
        lines.append(f"  %{name} = load ptr, ptr %at.{name}")
    for bank in port.banks:
        lines.append(f"  %at.bank{bank} = getelementptr i8, ptr %ctx, i64 {CONTEXT['banks'] + 8 * bank}")
        lines.append(f"  %bank{bank} = load ptr, ptr %at.bank{bank}")
    cases = " ".join(f"i32 {start}, label %b{start}" for start in flow.blocks)
    require = port.writer.emitter.require
    lines += [
        "  br label %begin",
        "reschedule:",
        f"  ret i32 {WAITS}" if flow.in_step else "  br label %begin",
        "begin:",
        f"  %chosen = call i32 {require('choose')}(ptr %ctx)",
        "  store i32 %chosen, ptr %place",
        f"  switch i32 %chosen, label %idle [ {cases} ]",
        "idle:",
        f"  ret i32 {WAITS}",
        "yield:",
        "  %here = load i32, ptr %place",
        f"  call void {require('stay')}(ptr %ctx, i32 %here)",
        "  br label %reschedule",
        "empty:",
        "  %there = load i32, ptr %place",
        f"  call void {require('stay')}(ptr %ctx, i32 %there)",
        f"  ret i32 {OUT_OF_FUEL}",
        "lost:",
        f"  call void {require('miss')}(ptr %ctx)",
        f"  ret i32 {OUT_OF_FUEL}",
        "",
    ]
    return "\n".join(lines)


def _clear(port: LlvmPort, live: set[int]) -> str:
    """A routine that zeroes what the kernel reads before it is written, in all warps of the block."""
    lines = ["define internal void @clear(ptr %state) noinline {"]
    for number, slot in enumerate(sorted(live)):
        lines.append(f"  %p{number} = getelementptr i8, ptr %state, i64 {port.offsets[slot]}")
        lines.append(f"  store {VECTOR} zeroinitializer, ptr %p{number}, align 128")
    return "\n".join([*lines, "  ret void", "}", ""])
