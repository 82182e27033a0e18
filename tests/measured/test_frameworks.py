"""Every memory instruction of the Triton, Numba and CuPy examples, as they compile today, equals an H200's counters.

`frameworks.json` has what Nsight Compute counted of the launches that the files in `examples` name: exported by
`tools/write_launches.py`, recorded by `tools/record_truth.py`. Here they are compiled again.

The profiler itself counts the sectors of copies around L1 otherwise in each run if their operand predicate is P0 and
blocks have several warps (docs/counting-rules.md, "Predicates of copies around L1"): those are not compared.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.analyze import analyze
from sectorwise.machine.execution import Certainty
from tests.measured.rows import EXACT_TOTALS, SITE_COUNTS

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("frameworks.json").read_text())["cases"]


VARYING = re.compile(r"LDGSTS\S*\.BYPASS\S* .*, !?P0, ")
SECTORS = ("sectors", "sectors_ideal", "l2_theoretical_sectors", "l2_theoretical_sectors_ideal")


@cache
def _analyze(file: str) -> tuple[KernelAnalysis, ...]:
    return analyze(EXAMPLES / file, device="h200", follow_caches=False).kernels


def _varies(row: dict[str, Any], listed: dict[str, Any]) -> bool:
    return row["block"][0] > 32 and VARYING.match(listed["sass"]) is not None


def test_three_launches_of_each_kernel_were_recorded() -> None:
    kernels = [(row["file"], row["kernel"]) for row in ROWS]
    assert len(kernels) == 42
    assert {kernels.count(each) for each in kernels} == {3}
    assert {row["file"].partition("/")[0] for row in ROWS} == {"triton", "numba", "cupy"}
    instructions = [(row, each) for row in ROWS for each in row["memory_instructions"]]
    assert len(instructions) == 780
    assert sum(_varies(*each) for each in instructions) == 17


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['file'][:-3].replace('/', '-')}-{row['number']}")
def test_counts_equal_the_profiler(row: dict[str, Any]) -> None:
    kernel = _analyze(row["file"])[row["number"]]
    assert kernel.name == row["kernel"]
    listed = row["memory_instructions"]
    assert [site.sass.split()[0] for site in kernel.sites] == [each["sass"].split()[0] for each in listed]
    for site, each in zip(kernel.sites, listed, strict=True):
        names = [name for name in SITE_COUNTS if name not in SECTORS or not _varies(row, each)]
        assert {name: getattr(site, name) for name in names} == {name: each.get(name, 0) for name in names}, site.sass
    vary = any(_varies(row, each) for each in listed)
    names = [name for name in (*EXACT_TOTALS, "instructions") if name in row["totals"]]
    names = [name for name in names if name not in SECTORS or not vary]
    assert {name: getattr(kernel.totals, name) for name in names} == {name: row["totals"][name] for name in names}
    assert {site.certainty for site in kernel.sites} == {Certainty.EXACT}
