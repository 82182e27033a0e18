"""How far the rule for the passes of copies through L1 in the pipe is from the counters, row by row.

The pipe's counter of all shared traffic has more in it than the copy: what it is without the copy, the rows of the same
kernels with a copy around L1 say, of which the pipe counts nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.execution import Certainty

FOLDER = Path(__file__).parent
PAGE = (FOLDER.parents[1] / "docs" / "counting-rules.md").read_text(encoding="utf-8")
WARPS = 64
PATTERNS = {
    "h200/cp_async": ("", 576),
    "h200/async_copy": ("", 576),
    "rules/copies": ("_left_", 320),
    "rules/guards": ("tile_through", 384),
}
"""Which rows, by a part of the name, and what else their kernels send through the pipe."""


def read_measured(family: str) -> dict[str, dict[str, Any]]:
    cases = json.loads((FOLDER / f"{family}.json").read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case["measured"] for case in cases}


def count_errors(family: str) -> Counter[int]:
    """How often the rule has so many passes too few (above zero) or too many, a warp's request."""
    part, others = PATTERNS[family]
    measured = read_measured(family)
    errors: Counter[int] = Counter()
    for launch in read_launch_file(FOLDER / f"{family}.json").cases:
        counters = measured[str(launch.case)]
        copies = [each for each in counters["memory_instructions"] if "LDGSTS" in each["sass"]]
        if part not in str(launch.case) or not copies or any("BYPASS" in each["sass"] for each in copies):
            continue
        (kernel,) = analyze(FOLDER / f"{family}.sm_90.cubin", launch, device="h200").kernels
        sites = [site for site in kernel.sites if site.operation == "async_copy"]
        assert {site.certainty for site in sites} == {Certainty.EXACT}
        assert {site.certainty_hardware for site in sites} == {Certainty.MODELLED}
        found = sum(site.wavefronts_hardware or 0 for site in sites)
        missing = counters["totals"]["shared_wavefronts_hardware"] - others - found
        assert missing % WARPS == 0
        errors[missing // WARPS] += 1
    return errors


@pytest.mark.parametrize("family", PATTERNS)
def test_copies_around_l1_leave_what_else_there_is(family: str) -> None:
    part, others = PATTERNS[family]
    rest = {
        name: counters["totals"]["shared_wavefronts_hardware"]
        for name, counters in read_measured(family).items()
        if part.replace("through", "bypass") in name
        and any("BYPASS" in each["sass"] for each in counters["memory_instructions"])
        and counters["totals"]["shared_wavefronts_hardware"] <= others
    }
    assert len(rest) >= 3
    assert max(rest.values()) == others


def test_passes_in_the_pipe_are_as_far_off_as_the_page_says() -> None:
    errors = sum((count_errors(family) for family in PATTERNS), Counter[int]())
    total = errors.total()
    print(sorted(errors.items()))  # noqa: T201 - the error is what this test is for
    claim = f"Right for {errors[0]} of {total} rows, the others {min(errors)} to {max(errors)} passes off"
    assert claim in " ".join(PAGE.split())
