"""Turns a bound launch into its execution by the engine that is fastest for it: both give the same result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sectorwise.binary.ir import Target
from sectorwise.machine.execution import Engine, WorkLimitError
from sectorwise.machine.native.unsupported import OccurredError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution, ExecutionOptions

SMALL_THREADS = 1 << 17
"""Launches of more threads than this are always worth machine code."""

LOOPING_THREADS = 1 << 14
"""Launches of more threads than this are worth machine code if the kernel has a loop."""

SMALL_BYTES = 32 << 20
"""Making what larger buffers hold takes longer than making machine code, which often does without."""

SMALL_WORK = 2500
"""NumPy runs so many instructions in less time than it takes to make machine code."""


def load_engine(threads: int) -> None:
    """Loads the engine that launches of so many threads mostly need, while something else is waited for."""
    if threads > LOOPING_THREADS:
        from sectorwise.machine.native.compiler import find_host
        from sectorwise.machine.native_engine import execute_native

        find_host()
        del execute_native
    else:
        from sectorwise.machine import numpy_engine

        del numpy_engine


def execute(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None = None
) -> Execution:
    """Runs every lane of every warp of every block.

    `progress` is called with the number of blocks done and in total. Launches that turn out to be short run in the
    reference engine, others as machine code; what machine code does not do runs in the reference engine again. Large
    launches run as machine code even where values that are not exact may decide what happens: then more may be marked
    as assumed than the reference engine would mark.

    Raises:
        StepLimitError: a warp ran more instructions than `options.step_limit`; the text names the line.
        UnsupportedError: `options.engine` is NATIVE, and machine code does not do something of this launch.
    """
    match options.engine:
        case Engine.REFERENCE:
            return _run_reference(bound, options, progress)
        case Engine.NATIVE:
            return _run_native(bound, options, progress)
        case Engine.AUTOMATIC:
            return _execute_fastest(bound, options, progress)


def _execute_fastest(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None
) -> Execution:
    show = None if progress is None else _only_forward(progress)
    is_large = bound.launch.blocks_total * bound.launch.threads_per_block > SMALL_THREADS
    if not is_large and _looks_small(bound):
        try:
            return _run_reference(bound, replace(options, work_limit=SMALL_WORK), show)
        except WorkLimitError:
            pass
    try:
        return _run_native(bound, options, show, assumes=is_large, hands_back=True)
    except OccurredError:
        # Where it happens, and how often, is for people to see: it may be in one block of many.
        return _run_reference(bound, options, show)
    except UnsupportedError:
        from sectorwise.machine.reference_sampling import execute_some

        return execute_some(bound, options, show)


def _run_reference(
    bound: BoundLaunch, options: ExecutionOptions, progress: Callable[[int, int], None] | None
) -> Execution:
    """Either engine is imported when it runs: most launches need one of them."""
    from sectorwise.machine import numpy_engine

    return numpy_engine.execute(bound, options, progress)


def _run_native(
    bound: BoundLaunch,
    options: ExecutionOptions,
    progress: Callable[[int, int], None] | None,
    *,
    assumes: bool = False,
    hands_back: bool = False,
) -> Execution:
    from sectorwise.machine.native_engine import execute_native

    return execute_native(bound, options, progress, assumes=assumes, hands_back=hands_back)


def _looks_small(bound: BoundLaunch) -> bool:
    """Whether the reference engine may be done before machine code is made."""
    if sum(allocation.size_bytes for allocation in bound.allocations) > SMALL_BYTES:
        return False
    threads = bound.launch.blocks_total * bound.launch.threads_per_block
    return threads <= LOOPING_THREADS or not _has_loop(bound.kernel)


def _has_loop(kernel: Kernel) -> bool:
    """Whether a branch goes back; the one behind the last instruction goes to itself."""
    return any(
        isinstance(operand, Target) and operand.offset is not None and operand.offset < instruction.offset
        for instruction in kernel.instructions
        if instruction.opcode == "BRA"
        for operand in instruction.operands
    )


def _only_forward(progress: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """A progress that does not fall back where a launch is begun again."""
    furthest = 0

    def show(done: int, total: int) -> None:
        nonlocal furthest
        if done > furthest:
            furthest = done
            progress(done, total)

    return show
