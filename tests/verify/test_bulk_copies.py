"""Bulk copies are verified by the profiler's counters of TMA, and shown from a report."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.profile import PROFILE_SCHEMA, Profile, ProfiledLaunch
from sectorwise.analysis.verification import Verdict
from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from sectorwise.report.profile import render
from sectorwise.verify.compare import compare_launch

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.analysis.verification import Quantity

FOLDER = Path(__file__).parents[1] / "measured" / "tiles"


@cache
def analyze_case(name: str) -> KernelAnalysis:
    launches = [each for each in read_launch_file(FOLDER / "tensor_copies.json").cases if each.case == name]
    (kernel,) = analyze(FOLDER / "tensor_copies.sm_90.cubin", launches).kernels
    return kernel


def make_launch(name: str, **totals: int) -> ProfiledLaunch:
    """What an H200 counted of a launch; `totals` replaces some of it."""
    cases = json.loads((FOLDER / "tensor_copies.json").read_text())["cases"]
    (case,) = [case for case in cases if case["name"] == name]
    return ProfiledLaunch(
        name=case["kernel"],
        symbol=case["kernel"],
        grid=tuple(case["grid"]),
        block=tuple(case["block"]),
        dynamic_shared_bytes=case["shared"],
        registers_per_thread=None,
        device="NVIDIA H200",
        compute_capability=(9, 0),
        has_source_view=False,
        sites=(),
        totals=case["measured"]["totals"] | totals,
        time_ns=None,
    )


def find(kernel: str, name: str, **totals: int) -> Quantity:
    compared = compare_launch(analyze_case(kernel), make_launch(kernel, **totals))
    return next(each for each in compared.totals if each.name == name)


@pytest.mark.parametrize(
    ("case", "total"),
    [
        ("load_edges", "bulk_load_sectors"),
        ("spread_row16", "bulk_load_sectors"),
        ("store_shift4", "bulk_store_sectors"),
        ("add_row16", "bulk_reduction_sectors"),
    ],
)
def test_sectors_of_bulk_copies_are_compared(case: str, total: str) -> None:
    counted = make_launch(case).totals[total]
    equal = find(case, total)
    assert (equal.verdict, equal.predicted, equal.counted) == (Verdict.EQUAL, counted, counted)
    assert equal.metric.startswith("l1tex__m_")
    different = find(case, total, **{total: counted + 1})
    assert (different.verdict, different.difference) == (Verdict.DIFFERENT, 1)


def test_how_often_warps_ask_a_barrier_is_a_matter_of_time() -> None:
    kernel = analyze_case("load_plain")
    waited = find("load_plain", "instructions", instructions=kernel.totals.instructions + 8)
    assert (waited.verdict, waited.difference) == (Verdict.INEXACT, 8)
    stored = analyze_case("store_plain")
    wrong = find("store_plain", "instructions", instructions=stored.totals.instructions + 8)
    assert wrong.verdict is Verdict.DIFFERENT


def test_a_report_shows_them() -> None:
    launches = (make_launch("load_row16"), make_launch("add_row16"))
    shown = render(Profile(PROFILE_SCHEMA, "copies.ncu-rep", "reader", launches))
    assert "    bulk loads                8,192 sectors" in shown
    assert "    bulk reductions           4,096 sectors" in shown
