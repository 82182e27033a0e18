"""Turns a bound launch into its execution with NumPy: all warps of a batch of blocks run each instruction together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.errors import StepLimitError
from sectorwise.launch.contents import materialise
from sectorwise.machine.banks import pack_bank
from sectorwise.machine.barriers import run_inline_control
from sectorwise.machine.batch import Batch, Tally, open_batch
from sectorwise.machine.control import leave_block
from sectorwise.machine.convergence import State, yield_waiting
from sectorwise.machine.frame import Frame, end
from sectorwise.machine.memory import open_global_memory
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from sectorwise.machine.numpy_port import NumpyPort
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import BasicBlock, Step, block_at, decode
from sectorwise.machine.reasons import explain_unknown
from sectorwise.machine.registers import open_window
from sectorwise.machine.scheduler import NOWHERE, choose_frame, settle
from sectorwise.machine.sites import SiteCounter, record_silent
from sectorwise.machine.taint import collect
from sectorwise.machine.unknown import skip_unknown_step

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.counting.request import Access
    from sectorwise.machine.execution import Execution, ExecutionOptions
    from sectorwise.machine.registers import Window

LANES_IN_BATCH = 1 << 15
"""So many lanes that a register of all of them stays in a core's cache, and that a NumPy call costs little a lane."""

BLOCKS_IN_A_ROW = 64
"""Basic blocks that a frame runs before others that wait are looked at again."""


class WorkLimitError(Exception):
    """A launch is longer than `ExecutionOptions.work_limit`; nothing of it is kept."""


def execute(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None = None
) -> Execution:
    """Runs every lane of every warp of every block, batch after batch in linear block order.

    `progress` is called with the number of blocks done and in total.

    Raises:
        StepLimitError: a warp ran more instructions than `options.step_limit`; the text names the line.
        WorkLimitError: the launch is longer than `options.work_limit`.
    """
    tally = open_tally(bound, options)
    total = bound.launch.blocks_total
    size = _blocks_in_batch(bound, options)
    with np.errstate(all="ignore"):
        for first in range(0, total, size):
            _run_batch(open_batch(tally, first, min(size, total - first)))
            if progress is not None:
                progress(min(first + size, total), total)
    return make_execution(tally, total)


def run_blocks(tally: Tally, first_block: int, blocks: int) -> None:
    """Runs some neighbouring blocks of a launch that `open_tally` began, for what observers see of them.

    Raises:
        StepLimitError: as `execute`; and whatever an observer raises to end it.
    """
    size = _blocks_in_batch(tally.bound, tally.options)
    with np.errstate(all="ignore"):
        for first in range(first_block, first_block + blocks, size):
            _run_batch(open_batch(tally, first, min(size, first_block + blocks - first)))


def open_tally(bound: BoundLaunch, options: ExecutionOptions) -> Tally:
    """A launch of which nothing has run yet."""
    program = decode(bound.kernel)
    count = len(bound.kernel.instructions)
    limitations: dict[tuple[int, str], None] = {}
    cluster = bound.kernel.resources.cluster
    if cluster is not None and cluster != (1, 1, 1):
        size = " x ".join(str(blocks) for blocks in cluster)
        because = f"the kernel asks for clusters of {size} blocks; it is run as if each block were a cluster of its own"
        limitations[0, because] = None
    banks = {number: pack_bank(content) for number, content in bound.banks.items()}
    return Tally(
        program,
        bound,
        options,
        open_global_memory(bound, _contents_of),
        banks,
        {},
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        limitations=limitations,
    )


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    return materialise(allocation.buffer).reshape(-1).view(np.uint8)


def _blocks_in_batch(bound: BoundLaunch, options: ExecutionOptions) -> int:
    threads = -(-bound.launch.threads_per_block // 32) * 32
    registers_bytes = threads * 4 * (bound.kernel.resources.registers_per_thread + 16)
    block_bytes = registers_bytes + bound.shared_bytes + threads * bound.local_bytes_per_thread
    return max(1, min(LANES_IN_BATCH // threads, options.budget_bytes // block_bytes, bound.launch.blocks_total))


def _run_batch(batch: Batch) -> None:
    while True:
        if batch.unsettled:
            settle(batch)
        frame = choose_frame(batch)
        if frame is None:
            yielded = yield_waiting(batch.groups)
            if yielded is None:
                break
            batch.groups, batch.unsettled = yielded, True
            continue
        _run_frame(batch, frame)
    if batch.groups.warp.size:
        _give_up(batch)


def _give_up(batch: Batch) -> None:
    """Nobody can go on: says where everyone waits."""
    groups = batch.groups
    for place in np.unique(groups.pc):
        waits = groups.pc == place
        instruction = batch.tally.bound.kernel.instructions[int(place)]
        what = "the block's barrier" if (groups.state[waits] == State.BARRIER).any() else "lanes that never come"
        because = f"{int(waits.sum())} warps wait here for {what}: the launch hangs"
        batch.tally.limitations.setdefault((instruction.index, because), None)


def _run_frame(batch: Batch, frame: Frame) -> None:
    """Runs basic blocks from the frame's place on for as long as its groups stay together and are the ones to run."""
    tally = batch.tally
    if frame.pc >= len(tally.bound.kernel.instructions):
        _leave_kernel(batch, frame)
        return
    warps = batch.groups.warp[frame.chosen]
    window = open_window(batch.registers, frame.rows)
    port = _open_port(batch, frame, window, block_at(tally.program, frame.pc))
    budget = tally.options.step_limit - int(batch.steps[warps].max())
    pc: int | None = frame.pc
    steps = rounds = 0
    while pc is not None and (rounds == 0 or _may_go_on(frame, pc, rounds)):
        block = block_at(tally.program, pc)
        _run_block(batch, frame, port, block)
        steps += block.stop - block.start
        tally.work += block.stop - block.start
        if tally.options.work_limit is not None and tally.work > tally.options.work_limit:
            raise WorkLimitError
        if steps > budget:
            raise StepLimitError(_describe_endless(tally, block))
        pc = block.stop if block.terminator is None else leave_block(batch, frame, window, block.terminator)
        port.way = _way_of(batch, frame)
        rounds += 1
    window.close()
    batch.steps[warps] += steps
    if pc is not None:
        batch.groups.pc[frame.chosen] = pc


def _may_go_on(frame: Frame, pc: int, rounds: int) -> bool:
    """Whether no other group is to run before, or together with, this frame."""
    return pc < frame.next_pc and (rounds < BLOCKS_IN_A_ROW or frame.next_pc == NOWHERE)


def _open_port(batch: Batch, frame: Frame, window: Window, block: BasicBlock) -> NumpyPort:
    tally = batch.tally
    return NumpyPort(
        algebra=_ALGEBRA,
        window=window,
        warps=frame.warps,
        rows=frame.rows,
        memory=batch.memory,
        banks=tally.banks,
        special=batch.special,
        counters=tally.counters,
        origins=tally.origins,
        observers=tally.options.observers,
        issuing=frame.issuing,
        step=block.all_steps[0],
        group=frame.group,
        kept=frame.mask,
        way=_way_of(batch, frame),
        constants=batch.constants,
    )


def _way_of(batch: Batch, frame: Frame) -> int:
    """All that is uncertain about the values that led any warp of the frame here."""
    if not batch.some_ways:
        return 0
    return collect(batch.ways if frame.rows is None else batch.ways[frame.rows], None)


_ALGEBRA = NumpyAlgebra()


def _run_block(batch: Batch, frame: Frame, port: NumpyPort, block: BasicBlock) -> None:
    tally = batch.tally
    tally.issued[block.start : block.stop] += frame.issuing
    tally.lanes[block.start : block.stop] += frame.lanes
    window, group, mask = port.window, frame.group, frame.mask
    for step in block.steps:
        if step.guard_slot is None:
            port.lanes, port.mask, port.level, port.guard_level = group, mask, None, None
        elif not _apply_guard(frame, port, step, step.guard_slot):
            if step.access is not None:
                record_silent(_counter_of(tally, step, step.access), frame.issuing)
            continue
        port.step = step
        if step.access is not None:
            _counter_of(tally, step, step.access)
        if step.action is not None:
            step.action(port)
        elif step.is_control:
            run_inline_control(batch, frame, window, step.instruction, port.lanes, port.mask)
        else:
            skip_unknown_step(tally, port, step)


def _apply_guard(frame: Frame, port: NumpyPort, step: Step, slot: int) -> bool:
    """Sets the lanes that the guard lets execute; False if there are none."""
    port.level = port.guard_level = port.window.taints.get(slot)
    guard = port.window.read_predicate(slot)
    if step.guard_negated:
        guard = ~guard
    group = frame.group
    if guard.all():
        port.lanes, port.mask = group, frame.mask
        return True
    lanes = guard if group is None else guard & group
    counted = step.access is not None and step.access.counts_stopped_lanes
    if port.level is None and not counted and not lanes.any():
        return False
    port.lanes = lanes if step.access is None else np.broadcast_to(lanes, (frame.warps, 32))
    # Lanes that have exited may be written: only a lane that is alive and not in the group must be kept.
    port.mask = guard if frame.mask is None else lanes
    return True


def _counter_of(tally: Tally, step: Step, access: Access) -> SiteCounter:
    index = step.instruction.index
    counter = tally.counters.get(index)
    if counter is None:
        counter = tally.counters[index] = SiteCounter(index, access)
    return counter


def _leave_kernel(batch: Batch, frame: Frame) -> None:
    """Lanes that ran off the code, or jumped out of it, exit; this is said."""
    batch.tally.limitations[0, "some lanes jumped to a place that is not in the kernel"] = None
    end(batch, frame, frame.masks, frame.pc)


def _describe_endless(tally: Tally, block: BasicBlock) -> str:
    instruction = tally.bound.kernel.instructions[block.start]
    location = instruction.location
    where = f"{location.file}:{location.line}" if location is not None else f"offset 0x{instruction.offset:04x}"
    limit = f"{tally.options.step_limit:,}"
    ran = (
        f"{tally.bound.kernel.name}: a warp ran more than {limit} instructions and was still at {where} "
        f"({instruction.text}). "
    )
    if tally.unknown_conditions:
        because = explain_unknown(tally.bound.kernel, max(tally.unknown_conditions), tally.origins)
        return f"{ran}It may wait for something that is not known here: {because}."
    return f"{ran}If the kernel is meant to run that long, raise the step limit."
