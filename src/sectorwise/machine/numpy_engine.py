"""Turns a bound launch into its execution with NumPy: all warps of a batch of blocks run each instruction together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.device import require_capability
from sectorwise.errors import StepLimitError
from sectorwise.launch.contents import materialise
from sectorwise.machine.banks import pack_bank
from sectorwise.machine.barriers import run_inline_control
from sectorwise.machine.batch import Batch, Tally, open_batch, open_lengths
from sectorwise.machine.clusters import count_inseparable
from sectorwise.machine.control import leave_block
from sectorwise.machine.convergence import yield_waiting
from sectorwise.machine.doubts import end_doubts, spread_doubts, way_of
from sectorwise.machine.execution import WorkLimitError
from sectorwise.machine.frame import Frame, end
from sectorwise.machine.hangs import describe_endless, describe_hang
from sectorwise.machine.memory import open_global_memory
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from sectorwise.machine.numpy_port import NumpyPort
from sectorwise.machine.outcome import make_execution
from sectorwise.machine.program import BasicBlock, Step, block_at, decode
from sectorwise.machine.progress import mark_spins, wake_spinners
from sectorwise.machine.registers import open_window
from sectorwise.machine.scheduler import choose_frame, settle
from sectorwise.machine.sites import SiteCounter, record_silent
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
    size, together = _blocks_in_batch(bound, options), count_inseparable(bound)
    stalled: list[Batch] = []
    resident, affordable = _blocks_at_once(bound, options)
    room = max(together, min(resident, affordable))
    begun = waiting = 0
    with np.errstate(all="ignore"):
        while begun < total:
            # Beside blocks that wait only as many begin as find room.
            blocks = min(size, max(together, (room - waiting) // together * together), total - begun)
            batch = open_batch(tally, np.arange(begun, begun + blocks))
            begun += blocks
            if not run_batch(batch):
                stalled.append(batch)
                waiting += blocks
            if stalled and (waiting + together > room or begun == total):
                _run_stalled(stalled, total - begun, is_full=resident <= affordable)
                stalled, waiting = [], 0
            if progress is not None:
                progress(begun, total)
    spread_doubts(tally)
    return make_execution(tally, total)


def run_blocks(tally: Tally, first_block: int, blocks: int) -> None:
    """Runs some neighbouring blocks of a launch that `open_tally` began, for what observers see of them.

    Raises:
        StepLimitError: as `execute`; and whatever an observer raises to end it.
    """
    run_numbers(tally, np.arange(first_block, first_block + blocks))


def run_numbers(tally: Tally, blocks: npt.NDArray[np.int64]) -> bool:
    """Runs blocks of these numbers, whole clusters of them, of a launch that `open_tally` began.

    False where some wait for something that only others can do.

    Raises:
        StepLimitError: as `execute`; and whatever an observer raises to end it.
    """
    size = _blocks_in_batch(tally.bound, tally.options)
    with np.errstate(all="ignore"):
        ended = [run_batch(open_batch(tally, blocks[at : at + size])) for at in range(0, len(blocks), size)]
    return all(ended)


def open_tally(bound: BoundLaunch, options: ExecutionOptions) -> Tally:
    """A launch of which nothing has run yet."""
    program = decode(bound.kernel)
    count = len(bound.kernel.instructions)
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
        lengths=open_lengths(bound.launch.blocks_total),
    )


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    values = materialise(allocation.buffer)
    if allocation.buffer.contents.kind in {"array", "file"}:
        # What the caller gave is his: kernels write to a copy.
        values = np.array(values)
    return values.reshape(-1).view(np.uint8)


def _blocks_in_batch(bound: BoundLaunch, options: ExecutionOptions) -> int:
    threads = _threads_of_block(bound)
    fits = min(LANES_IN_BATCH // threads, options.budget_bytes // _bytes_of_block(bound), bound.launch.blocks_total)
    together = count_inseparable(bound)
    return max(together, fits // together * together)


def _blocks_at_once(bound: BoundLaunch, options: ExecutionOptions) -> tuple[int, int]:
    """How many blocks may be begun and not ended, by what the device's SMs hold at most, and by our memory.

    An SM may hold fewer, since registers and shared memory are given out in units.
    """
    capability, threads = require_capability(bound.device), _threads_of_block(bound)
    fits = (
        capability.max_blocks_per_sm,
        capability.max_threads_per_sm // threads,
        capability.regs_per_sm // (threads * max(1, bound.kernel.resources.registers_per_thread)),
        capability.carveouts_bytes[-1] // max(1, bound.shared_bytes),
    )
    return bound.device.sm_count * max(1, min(fits)), options.budget_bytes // _bytes_of_block(bound)


def _threads_of_block(bound: BoundLaunch) -> int:
    return -(-bound.launch.threads_per_block // 32) * 32


def _bytes_of_block(bound: BoundLaunch) -> int:
    threads = _threads_of_block(bound)
    registers_bytes = threads * 4 * (bound.kernel.resources.registers_per_thread + 16)
    return registers_bytes + bound.shared_bytes + threads * bound.local_bytes_per_thread


def run_batch(batch: Batch) -> bool:
    """Runs a batch to its end; False where it waits for something that only blocks of other batches can do."""
    while True:
        if batch.unsettled:
            settle(batch)
        mark_spins(batch)
        frame = choose_frame(batch)
        if frame is not None:
            _run_frame(batch, frame)
            continue
        yielded = yield_waiting(batch.groups)
        if yielded is not None:
            batch.groups, batch.unsettled = yielded, True
            continue
        if batch.some_spin:
            return False
        if batch.groups.warp.size:
            describe_hang(batch)
        if batch.tally.lengths is not None:
            batch.tally.lengths[batch.numbers] = batch.steps.reshape(batch.blocks, -1).sum(axis=1)
        return True


def _run_stalled(stalled: list[Batch], not_begun: int, *, is_full: bool) -> None:
    """Runs batches that wait for each other in turn, until all have ended or none changes anything any more.

    `not_begun` blocks are left: the device `is_full`, or our memory is.
    """
    moved = True
    while moved:
        moved = False
        left: list[Batch] = []
        for batch in stalled:
            before = batch.memory.changes
            wake_spinners(batch, anyway=True)
            ended = run_batch(batch)
            moved |= ended or batch.memory.changes != before
            if not ended:
                left.append(batch)
        stalled = left
    for batch in stalled:
        describe_hang(batch, not_begun, is_full=is_full)


def _run_frame(batch: Batch, frame: Frame) -> None:
    """Runs basic blocks from the frame's place on for as long as its groups stay together and are the ones to run."""
    tally = batch.tally
    if frame.pc >= len(tally.bound.kernel.instructions):
        _leave_kernel(batch, frame)
        return
    warps = batch.groups.warp[frame.chosen]
    window = open_window(batch.registers, frame.rows)
    if batch.some_ways:
        end_doubts(batch, frame, window, frame.pc)
    port = _open_port(batch, frame, window, block_at(tally.program, frame.pc))
    budget = tally.options.step_limit - int(batch.steps[warps].max())
    pc: int | None = frame.pc
    steps = rounds = 0
    came_from = frame.pc
    while pc is not None and (rounds == 0 or _may_go_on(batch, frame, pc, came_from, rounds)):
        came_from = pc
        block = block_at(tally.program, pc)
        _run_block(batch, frame, port, block)
        steps += block.stop - block.start
        tally.work += block.stop - block.start
        if tally.options.work_limit is not None and tally.work > tally.options.work_limit:
            raise WorkLimitError
        if steps > budget:
            raise StepLimitError(describe_endless(tally, block))
        pc = block.stop if block.terminator is None else leave_block(batch, frame, window, block.terminator)
        if batch.some_ways:
            if pc is not None:
                end_doubts(batch, frame, window, pc)
            port.way = way_of(batch, frame)
        rounds += 1
    window.close()
    batch.steps[warps] += steps
    if pc is not None:
        batch.groups.pc[frame.chosen] = pc


def _may_go_on(batch: Batch, frame: Frame, pc: int, came_from: int, rounds: int) -> bool:
    """Whether no other group is to run before, or together with, this frame; and it need not be seen whether it spins.

    A frame ends at a jump backwards alone, so that a loop comes to the same places.
    """
    return pc < frame.next_pc and (rounds < batch.patience or pc > came_from)


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
        way=way_of(batch, frame),
        constants=batch.constants,
    )


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
