"""Plans of strides, widths and banks rank, and take about the time, as the kernels that they describe were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.steps import barrier, load, shared, store, work
from sectorwise.errors import ArgumentError
from tests.measured.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.advise.steps import Step

LANE = np.arange(32, dtype=np.int64)[None, :]
MEASURED = Path(__file__).parents[1] / "measured"
EQUAL = 1.05


def measure(name: str) -> float:
    for path in (*(MEASURED / "h200").glob("[rs]*s.json"), MEASURED / "textbook" / "claims.json"):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            if case["name"] == name:
                return float(case["measured"]["totals"]["time_ns"])
    raise KeyError(name)


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


def test_strides_and_widths_take_the_time_that_was_measured() -> None:
    predicted = {name: estimate(make(), "h200").time_ns for name, make in PLANS.items()}
    measured = {name: measure(name) for name in PLANS}
    for name, time_ns in predicted.items():
        assert time_ns == pytest.approx(measured[name], rel=0.2), name
    for one in PLANS:
        for other in PLANS:
            if measured[one] * EQUAL < measured[other]:
                assert predicted[one] < predicted[other], (one, other)


def test_vectors_are_worth_what_was_measured() -> None:
    one, vectors, four = (
        estimate(PLANS[name](), "h200").time_ns for name in ("c_copy_f32", "t_copy_f32x4", "c_copy_f32_four")
    )
    assert one > 1.2 * vectors
    assert four == pytest.approx(vectors, rel=EQUAL - 1)
    assert measure("c_copy_f32") > 1.2 * measure("t_copy_f32x4")
    assert measure("c_copy_f32_four") == pytest.approx(measure("t_copy_f32x4"), rel=EQUAL - 1)


def test_copies_and_sums_rank_as_measured() -> None:
    plans = {
        "t_copy_f32x4": PLANS["t_copy_f32x4"](),
        "t_copy_grid_stride": copy_in_steps(),
        "c_copy_f32": PLANS["c_copy_f32"](),
        "t_sum_block": sum_in_blocks(),
        "t_sum_interleaved": sum_interleaved(),
    }
    predicted = {name: estimate(plan, "h200").time_ns for name, plan in plans.items()}
    measured = {name: measure(name) for name in plans}
    for family in ("copy", "sum"):
        names = [name for name in plans if family in name]
        assert sorted(names, key=lambda name: predicted[name]) == sorted(names, key=lambda name: measured[name])
    for name, time_ns in predicted.items():
        assert time_ns == pytest.approx(measured[name], rel=0.35), name


def test_conflicts_slow_a_loop_that_wavefronts_bound() -> None:
    times = {}
    for name, offsets in (("t_bank32", LANE * 128), ("t_bank1", LANE * 4)):
        step = shared("s", offsets, 4, times=8)
        plan = Plan(name, 1056, 256, loop=(step, work("add", 8, pipe="fp32", waits=True)), passes=32)
        times[name] = estimate(plan, "h200").time_ns
        (row,) = (row for row in read_rows("shared_bound") if row.name == name)
        assert times[name] == pytest.approx(row.totals["time_ns"], rel=0.35)
    assert 15 < times["t_bank32"] / times["t_bank1"] < 32


def test_a_plan_that_fits_no_device_is_refused() -> None:
    plan = Plan("too much", 1, 1024, loop=(work("add", 1),), registers=128)
    with pytest.raises(ArgumentError, match="registers: 131,072 needed"):
        estimate(plan, "h200")
