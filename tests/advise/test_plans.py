"""Plans of strides, widths and banks rank, and take about the time, as the kernels that they describe were measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.steps import shared, work
from sectorwise.errors import ArgumentError
from tests.advise.plans import LANE, PLANS, copy_in_steps, sum_in_blocks, sum_interleaved
from tests.measured.rows import read_rows

MEASURED = Path(__file__).parents[1] / "measured"
EQUAL = 1.05


def measure(name: str) -> float:
    for path in (*(MEASURED / "h200").glob("[rs]*s.json"), MEASURED / "textbook" / "claims.json"):
        for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
            if case["name"] == name:
                return float(case["measured"]["totals"]["time_ns"])
    raise KeyError(name)


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
