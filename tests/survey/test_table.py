"""What the page on public kernels says is what its table holds, and what was promised of it."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from statistics import median

from tools.survey_kernels import COLUMNS

DOCS = Path(__file__).parents[2] / "docs"
REPOSITORIES = ("NVIDIA/cuda-samples", "siboehm/SGEMM_CUDA", "xlite-dev/LeetCUDA", "zjin-lcf/HeCBench")
NUMBERS = ("executed_pct", "memory", "analysed", "unknown", "not_issued")


def _read() -> list[dict[str, str]]:
    with (DOCS / "public-kernels.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert tuple(rows[0]) == COLUMNS
    return rows


def test_public_kernels_are_many_and_none_crashed() -> None:
    rows = _read()
    for target in ("sm_80", "sm_90"):
        good = [row for row in rows if row["target"] == target and row["outcome"] == "ok"]
        assert len({(row["file"], row["kernel"]) for row in good}) >= 300
        found = Counter("/".join(row["file"].split("/")[:2]) for row in good)
        assert set(found) == set(REPOSITORIES)
        # The matrix products of one repository are no more than these.
        assert all(found[name] >= (15 if "SGEMM" in name else 60) for name in REPOSITORIES)
        assert median(int(row["executed_pct"]) for row in good) >= 60
    assert {row["outcome"] for row in rows} <= {"ok", "step limit", "too long"}


def test_their_memory_instructions_add_up() -> None:
    rows = [row for row in _read() if row["outcome"] == "ok"]
    for row in rows:
        assert int(row["memory"]) == int(row["analysed"]) + int(row["unknown"]) + int(row["not_issued"]), row
    sums = {name: sum(int(row[name]) for row in rows) for name in NUMBERS}
    assert sums["unknown"] <= 0.02 * sums["memory"]
    page = (DOCS / "public-kernels.md").read_text()
    said = f"{sums['memory']:,} = {sums['analysed']:,} analysed + {sums['unknown']:,} unknown"
    assert said in page
    assert f"{sums['not_issued']:,} not issued" in page
