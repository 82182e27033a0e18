"""Every launch recorded to tell counting rules apart has the counts that the profiler showed.

`rules/*.cu` say what varies; `rules/*.json` are the launches with their counters, as `tools/record_truth.py` writes
them. What is only modelled has to say so, and is not right less often than when the record below was written.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.counting.request import Operation
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import Certainty, ExecutionOptions, Site
from sectorwise.machine.numpy_engine import execute
from sectorwise.model.totals import sum_totals

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.launch.config import LaunchConfig

FOLDER = Path(__file__).parent / "rules"
COUNTS = ("executed", "sectors", "sectors_ideal", "tag_requests", "wavefronts", "wavefronts_ideal", "sectors_local")
SOURCE_TOTALS = ("l1_tag_requests", "l2_theoretical_sectors_ideal", "l2_theoretical_sectors_local")
PIPE_TOTALS = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_atom_wavefronts")
DEVICE_TOTALS = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "local_load_requests",
    "local_load_sectors",
    "local_store_requests",
    "local_store_sectors",
)
"""Totals of the pipe that split generic accesses and scattered copies do not have under their rule yet."""

MODELLED = {
    "copies": (196, 232),
    "guards": (1, 1),
    "predicates": (0, 0),
    "shared": (0, 0),
    "atomics": (0, 0),
    "spaces": (0, 0),
}
"""Of how many instructions that the rules call modelled the passes are right."""


@cache
def read_cases(family: str) -> dict[str, dict[str, Any]]:
    return {case["name"]: case for case in json.loads((FOLDER / f"{family}.json").read_text())["cases"]}


@cache
def read_kernels(family: str) -> dict[str, Kernel]:
    path = FOLDER / f"{family}.sm_90.cubin"
    return {kernel.name: kernel for kernel in read_cubin(path.read_bytes(), path.name).kernels}


@cache
def read_launches(family: str) -> dict[str, LaunchConfig]:
    return {str(launch.case): launch for launch in read_launch_file(FOLDER / f"{family}.json").cases}


def run(family: str, name: str) -> tuple[list[Site], dict[str, int | None]]:
    """The sites that count anything, and the totals, of one recorded launch."""
    launch = read_launches(family)[name]
    kernel = read_kernels(family)[launch.kernel]
    execution = execute(bind(kernel, launch, load_device("h200")), ExecutionOptions())
    assert execution.faults == ()
    # Additions that a loop of compare-and-swap makes go on from what an array held, and that was never set.
    assert {each.because.partition(",")[0] for each in execution.limitations} <= (
        {"it reads shared or local memory that nothing has written"} if name.startswith("shared_add") else set()
    )
    totals = sum_totals(execution.sites, 0)
    names = (*SOURCE_TOTALS, *PIPE_TOTALS, *DEVICE_TOTALS)
    sites = [site for site in execution.sites if any(getattr(site, count) for count in COUNTS[1:])]
    return sites, {total: getattr(totals, total) for total in names}


def is_copy(site: Site) -> bool:
    """Of a copy through L1 the pipe's passes are modelled, but none of these totals."""
    return site.access.operation is Operation.ASYNC_COPY


def count_right(family: str, name: str) -> tuple[int, int]:
    """Check all that is exact; return of how many modelled passes how many are right."""
    sites, totals = run(family, name)
    measured = read_cases(family)[name]["measured"]
    listed = measured["memory_instructions"]
    assert len(sites) == len(listed)
    right = modelled = 0
    for site, expected in zip(sites, listed, strict=True):
        counts = {count: getattr(site, count) for count in COUNTS}
        wanted = {count: expected.get(count, 0) for count in COUNTS}
        if site.certainty is Certainty.MODELLED:
            modelled += 1
            right += counts["wavefronts"] == wanted["wavefronts"]
            for passes in ("wavefronts", "wavefronts_ideal"):
                del counts[passes], wanted[passes]
        assert counts == wanted, expected["sass"]
    judged = [*SOURCE_TOTALS]
    has_pipe = "instructions" in measured["totals"]
    judged += PIPE_TOTALS if has_pipe else ()
    if has_pipe and not modelled and all(site.certainty_hardware is Certainty.EXACT or is_copy(site) for site in sites):
        judged += DEVICE_TOTALS
    # Totals that are zero were not written.
    assert {total: totals[total] for total in judged} == {total: measured["totals"].get(total, 0) for total in judged}
    return right, modelled


@pytest.mark.parametrize("family", MODELLED)
def test_recorded_launches_have_their_counts(family: str) -> None:
    scores = [count_right(family, name) for name in read_cases(family)]
    right, modelled = (sum(column) for column in zip(*scores, strict=True))
    assert (modelled, right >= MODELLED[family][0]) == (MODELLED[family][1], True), right


def test_there_are_more_than_three_hundred_launches() -> None:
    assert sum(len(read_cases(family)) for family in MODELLED) > 600
