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
from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from tests.measured.rows import EXACT_TOTALS, SITE_COUNTS

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.launch.config import LaunchConfig

FOLDER = Path(__file__).parent / "unseen"
FILES = sorted([*FOLDER.glob("*.json"), *FOLDER.glob("frameworks/*.json")])

ORDERED = frozenset(
    {
        "breadth_first",
        "compact",
        "generic_half_sums_2",
        "generic_half_sums_3",
        "generic_updates_2",
        "generic_updates_3",
        "generic_updates_4",
        "generic_updates_5",
        "generic_updates_6",
        "generic_updates_7",
        "grid_barrier",
        "halves_in_shared",
        "last_block_sum",
        "narrow_sums",
        "pass_on",
        "recurse",
        "recurse_twice_2",
        "recurse_twice_3",
        "recurse_unevenly",
        "recurse_unevenly_2",
        "shared_float_sums",
        "unite",
    }
)
"""Launches some of whose counts depend on how warps happen to follow each other."""
MEETING = frozenset({"by_case", "hash_probe", "hash_probe_2", "mandelbrot", "run_lengths"})
"""Launches whose lanes part: those that come to a BSYNC at one time issue it once, others once each, so that every run,
and every pass of the profiler, has another number of instructions. All else is the same."""
JUMPS = {
    "by_pointer": 175,
    "five_ways": 2,
    "five_ways_2": 2,
    "five_ways_3": 1,
    "recurse_evenly": 3,
    "recurse_twice": 3,
    "steps_by_pointer_2": 2,
    "steps_by_pointer_3": 1,
}
"""Instructions that the SMs' counter has beyond the source view, which has ours: of a jump to k places (BRX, calls by
pointer) k - 1, and one for some returns into a function that calls itself."""
TOO_SOON = {("copied_places", "global_load_sectors")}
"""Its copies around L1 go where earlier ones have not arrived yet; of such the pipe counts the sectors once."""
IN_PIPE = (
    "embedding_backward",
    "generic_half_sums",
    "generic_half_sums_2",
    "generic_half_sums_3",
    "generic_updates",
    "generic_updates_2",
    "generic_updates_3",
    "generic_updates_4",
    "generic_updates_5",
    "generic_updates_7",
    "tally_all",
    "tally_all_2",
)
"""Launches with generic atomics that take as many passes in each pass of the profiler."""
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
    assert len(set(names)) == len(names) == 265
    assert sum(len(case["measured"]["memory_instructions"]) for _, case in ROWS) == 3533


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
        names = [name for name in EXACT_TOTALS if (case["kernel"], name) not in TOO_SOON]
        assert {name: getattr(kernel.totals, name) for name in names} == {
            name: measured["totals"].get(name, 0) for name in names
        }
        if case["name"] not in MEETING:
            assert kernel.totals.instructions + JUMPS.get(case["name"], 0) == measured["totals"]["instructions"]
    launch = measured["launch"]
    assert kernel.faults == ()
    assert {name: getattr(kernel.occupancy, name) for name in LIMITS} == {name: launch[name] for name in LIMITS}


@pytest.mark.parametrize("name", IN_PIPE)
def test_passes_of_generic_atomics_equal_the_pipe(name: str) -> None:
    (path, case), *others = [(path, case) for path, case in ROWS if case["name"] == name]
    assert not others
    assert run(path, name).totals.shared_atom_wavefronts == case["measured"]["totals"]["shared_atom_wavefronts"]


WAYS = FOLDER / "ways.json"
PARTING = [case for path, case in ROWS if path == WAYS]


@pytest.mark.parametrize("case", PARTING, ids=[case["name"] for case in PARTING])
def test_every_instruction_is_issued_as_often_and_by_as_many_lanes(case: dict[str, Any]) -> None:
    cubin = WAYS.with_suffix(".sm_90.cubin")
    kernels = {kernel.name: kernel for kernel in read_cubin(cubin.read_bytes(), cubin.name).kernels}
    kernel = kernels[case["kernel"]]
    done = execute(bind(kernel, read_launches(WAYS)[case["name"]], load_device("h200")), ExecutionOptions())
    counted = zip(kernel.instructions, done.issued.tolist(), done.lanes.tolist(), strict=True)
    found = [[each.offset, issued, lanes] for each, issued, lanes in counted if issued]
    assert found == case["measured"]["issued"]
