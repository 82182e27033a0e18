"""What comparisons say of measured kernels: which of two is faster, and why a larger tile is not."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.causes import Cause
from sectorwise.analysis.comparison import KernelChange, compare_analyses
from sectorwise.analyze import analyze
from tests.measured.rows import FOLDER, read_rows

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis

TIMES_NS = {row.name: row.totals["time_ns"] for row in read_rows("gemm")}
PAIRS = [pair for pair in combinations(TIMES_NS, 2) if not 1 / 1.2 < TIMES_NS[pair[0]] / TIMES_NS[pair[1]] < 1.2]
"""Pairs of which one took a fifth longer on an H200."""


@cache
def analyze_products() -> Analysis:
    return analyze(FOLDER / "gemm.sm_90.cubin", str(FOLDER / "gemm.json"), follow_caches=True)


def compare(before: str, after: str) -> KernelChange:
    whole = analyze_products()
    sides = [
        replace(whole, kernels=tuple(kernel for kernel in whole.kernels if kernel.name == name))
        for name in (before, after)
    ]
    (change,) = compare_analyses(*sides).kernels
    return change


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_the_faster_one_is_said_to_be_faster(before: str, after: str) -> None:
    change = compare(before, after)
    assert change.estimate_ns_before is not None
    assert change.estimate_ns_after is not None
    assert (change.estimate_ns_after > change.estimate_ns_before) == (TIMES_NS[after] > TIMES_NS[before])
    assert sum(cause.share or 0.0 for cause in change.causes) == pytest.approx(1)


def test_larger_tile_is_slower_since_its_blocks_do_not_fill_the_device() -> None:
    assert TIMES_NS["k_mm_tile32"] > TIMES_NS["k_mm_tile16"]
    change = compare("k_mm_tile16", "k_mm_tile32")
    assert change.causes[0].cause is Cause.TAIL
    numbers = {number.name: (number.before, number.after) for number in change.numbers}
    assert numbers["blocks an SM"] == (8, 2)
    sectors = numbers["global sectors"]
    assert sectors == (270_336, 139_264)
