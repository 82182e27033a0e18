"""Launches recorded after all rules were found, unseen by whoever found them, have the counts that the profiler showed.

`unseen/*.cu` are kernels as people write them; `unseen/*.json` are the launches with their counters, as
`tools/record_truth.py` writes them, `unseen/frameworks` those that Triton, Numba and CuPy compiled. What differed when
they were first compared is in `unseen/README.md`. Counts that depend on a schedule say so and are not compared.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import Certainty
from tests.measured.rows import EXACT_TOTALS, SITE_COUNTS

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.launch.config import LaunchConfig

FOLDER = Path(__file__).parent / "unseen"
FILES = sorted([*FOLDER.glob("*.json"), *FOLDER.glob("frameworks/*.json")])

ORDERED = frozenset({"bins_shared", "breadth_first", "compact", "last_block_sum", "pass_on", "shared_float_sums"})
"""Launches some of whose counts depend on how warps happen to follow each other."""
LIMITS = ("limit_blocks", "limit_registers", "limit_shared", "limit_warps", "shared_config_bytes")


@cache
def read_launches(path: Path) -> dict[str, LaunchConfig]:
    return {str(launch.case): launch for launch in read_launch_file(path).cases}


def list_rows() -> list[tuple[Path, dict[str, Any]]]:
    return [(path, case) for path in FILES for case in json.loads(path.read_text(encoding="utf-8"))["cases"]]


ROWS = list_rows()


def run(path: Path, name: str) -> KernelAnalysis:
    (kernel,) = analyze(
        path.with_name(f"{path.stem}.sm_90.cubin"), read_launches(path)[name], device="h200", follow_caches=False
    ).kernels
    return kernel


def counts_something(site: MemorySite) -> bool:
    """As the profiler, which does not list accesses to shared memory of other blocks."""
    return any(getattr(site, count) for count in SITE_COUNTS[1:])


def test_all_launches_are_here() -> None:
    names = [case["name"] for _, case in ROWS]
    assert len(set(names)) == len(names) == 155
    assert sum(len(case["measured"]["memory_instructions"]) for _, case in ROWS) > 2700


@pytest.mark.parametrize(("path", "case"), ROWS, ids=[case["name"] for _, case in ROWS])
def test_counts_equal_the_profiler(path: Path, case: dict[str, Any]) -> None:
    kernel = run(path, case["name"])
    measured = case["measured"]
    listed = measured["memory_instructions"]
    sites = [site for site in kernel.sites if counts_something(site)]
    assert [site.sass.split()[0] for site in sites] == [each["sass"].split()[0] for each in listed]
    for site, each in zip(sites, listed, strict=True):
        if site.certainty is not Certainty.SCHEDULE_DEPENDENT:
            assert {name: getattr(site, name) for name in SITE_COUNTS} == {
                name: each.get(name, 0) for name in SITE_COUNTS
            }, site.sass
    ordered = any(site.certainty is Certainty.SCHEDULE_DEPENDENT for site in sites)
    assert ordered == (case["name"] in ORDERED)
    if not ordered:
        names = (*EXACT_TOTALS, "instructions")
        assert {name: getattr(kernel.totals, name) for name in names} == {
            name: measured["totals"].get(name, 0) for name in names
        }
    launch = measured["launch"]
    assert kernel.faults == ()
    assert {name: getattr(kernel.occupancy, name) for name in LIMITS} == {name: launch[name] for name in LIMITS}
