"""Plans of strides, widths and banks rank, and take about the time, as the kernels that they describe were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.steps import load, shared, store, work
from sectorwise.errors import ArgumentError
from tests.measured.rows import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable

LANE = np.arange(32, dtype=np.int64)[None, :]
MEASURED = Path(__file__).parents[1] / "measured"
EQUAL = 1.05


def measure(name: str) -> float:
    for path in (MEASURED / "h200" / "streams.json", MEASURED / "textbook" / "claims.json"):
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
