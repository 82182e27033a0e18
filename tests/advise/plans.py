"""Turns measured kernels of strides, widths, sums and stencils into the plans that they would have been on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.advise.plan import Plan
from sectorwise.advise.steps import barrier, load, shared, store, work

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.advise.steps import Step

LANE = np.arange(32, dtype=np.int64)[None, :]


def move(name: str, threads: int, step: int, width: int, parts: int = 1) -> Plan:
    """Each thread moves `parts` elements of `width` bytes; lanes read `step` bytes apart and write side by side."""
    read = load("in", LANE * step, width, times=parts)
    written = store("out", LANE * width, width, times=parts)
    elements = threads * parts
    return Plan(
        name,
        threads // 256,
        256,
        loop=(),
        once=(work("index", 8), read, work("wait", 1, waits=True), written),
        registers=16,
        dram_read_bytes=elements * min(step, 64),
        dram_write_bytes=elements * width,
    )


PASSES = 2**26 / (1056 * 256)
"""Of a loop that goes through 64 Mi elements in steps of the grid; NVRTC unrolls neither of them."""


def copy_in_steps() -> Plan:
    step = (load("in", LANE * 4, 4), work("wait", 1, waits=True), store("out", LANE * 4, 4), work("loop", 6))
    return Plan(
        "copy in steps of the grid",
        1056,
        256,
        loop=step,
        once=(work("index", 8),),
        registers=16,
        passes=PASSES,
        dram_read_bytes=2**28,
        dram_write_bytes=2**28,
    )


def add_up(warps_on: list[float], strides: list[int]) -> tuple[Step, ...]:
    """Levels of a sum in shared memory: what part of the warps takes part, and how many words lanes are apart."""
    return tuple(
        step
        for part, words in zip(warps_on, strides, strict=True)
        for step in (
            shared("two", LANE % max(1, 128 // words) * words * 4, 4, times=2 * part),
            work("add", 1, waits=True),
            shared("sum", LANE % max(1, 128 // words) * words * 4, 4, times=part, operation="store"),
            barrier(),
        )
    )


def sum_in_blocks() -> Plan:
    """Each thread adds up in a register first; then a block's 256 sums, side by side."""
    return Plan(
        "sum of blocks",
        1056,
        256,
        loop=(load("in", LANE * 4, 4), work("add", 1, pipe="fp32", waits=True), work("loop", 5)),
        once=(
            work("index", 8),
            *add_up([0.5, 0.25, *[0.125] * 6], [1] * 8),
            store("out", LANE * 0, 4),
        ),
        passes=PASSES,
        registers=16,
        shared_bytes=1024,
        dram_read_bytes=2**28,
    )


def sum_interleaved() -> Plan:
    """A thread an element; neighbours are added first, so that lanes move ever further apart."""
    return Plan(
        "sum of neighbours",
        2**18,
        256,
        loop=(),
        once=(
            work("index", 8),
            load("in", LANE * 4, 4),
            work("wait", 1, waits=True),
            shared("s", LANE * 4, 4, operation="store"),
            barrier(),
            *add_up([0.5, 0.25, *[0.125] * 6], [2, 4, 8, 16, 32, 64, 128, 256]),
            store("out", LANE * 0, 4),
        ),
        registers=16,
        shared_bytes=1024,
        dram_read_bytes=2**28,
    )


PLANS: dict[str, Callable[[], Plan]] = {
    "t_read_stride2": lambda: move("stride 2", 2**25, 8, 4),
    "t_read_stride8": lambda: move("stride 8", 2**23, 32, 4),
    "t_read_stride32": lambda: move("stride 32", 2**21, 128, 4),
    "c_copy_f32": lambda: move("copy", 2**26, 4, 4),
    "c_copy_f32_four": lambda: move("copy of four", 2**24, 4, 4, parts=4),
    "t_copy_f32x4": lambda: move("copy of vectors", 2**24, 16, 16),
    "c_aos48_one": lambda: move("a field of records", 2**22, 48, 4),
    "c_soa_one": lambda: move("a field alone", 2**22, 4, 4),
}


def read_in_steps(threads: int, blocks: int) -> Plan:
    """Threads that go through 512 MiB in steps of the grid, 16 bytes each, and wait for every one."""
    step = (load("in", LANE * 16, 16), work("add", 4, waits=True), work("loop", 5))
    return Plan(
        f"{threads * blocks // 132} threads an SM",
        blocks,
        threads,
        loop=step,
        once=(work("index", 8),),
        registers=16,
        passes=2**25 / (blocks * threads),
        dram_read_bytes=2**29,
    )


def add_chunks() -> Plan:
    """Each thread adds up 32 bytes of its own, word by word: the first word brings the sector of all eight."""
    words = [load("in", LANE * 32 + 4 * word, 4, dram_share=0.0 if word else 1.0, l2_share=0.0) for word in range(8)]
    return Plan(
        "chunks of eight",
        2**23 // 256,
        256,
        loop=(),
        once=(work("index", 8), *words, work("add", 8, pipe="fp32", waits=True), store("out", LANE * 4, 4)),
        registers=24,
        dram_read_bytes=2**28,
        dram_write_bytes=2**25,
        l2_bytes=2**28 + 2**25,
    )


def apply_stencil(neighbours: int, far: int) -> Plan:
    """A point an element of 64 Mi and its neighbours: those beside it hit in L1, `far` rows or planes in the L2."""
    center = load("center", LANE * 4, 4)
    beside = load("beside", LANE * 4 + 4, 4, times=neighbours - 1 - far, dram_share=0.0, l2_share=0.0)
    above = load("above", LANE * 4, 4, times=far, dram_share=0.0, l2_share=1.0)
    return Plan(
        f"a stencil of {neighbours}",
        2**18,
        256,
        loop=(),
        once=(work("index", 16), center, beside, above, work("add", neighbours, waits=True), store("out", LANE * 4, 4)),
        registers=18,
        dram_read_bytes=2**28,
        dram_write_bytes=2**28,
    )


def read_shared(words: int) -> Plan:
    """Eight loads of shared memory a pass, whose lanes are so many words apart."""
    step = shared("s", LANE * 4 * words, 4, times=8)
    return Plan(f"{words} words apart", 1056, 256, loop=(step, work("add", 8, pipe="fp32", waits=True)), passes=32)


def load_few(step: int, width: int) -> Plan:
    """A load and a store of each of 16,384 threads, lanes reading `step` bytes apart."""
    return move(f"{width} bytes every {step}", 2**14, step, width)
