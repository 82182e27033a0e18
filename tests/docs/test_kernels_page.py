"""The tables of docs/kernels.md are those of the results that lie beside the benchmarks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.write_kernels import write_tables

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
ROWS = json.loads((ROOT / "benchmarks" / "kernels" / "h200.json").read_text(encoding="utf-8"))["rows"]


def test_tables_are_those_of_the_results() -> None:
    assert write_tables(PAGE, ROWS) == PAGE


def test_a_goal_that_was_missed_stands_out() -> None:
    missed = {**ROWS[0], "us": 4.7, "alone_us": 5.25, "tbps": 1.78, "peer_us": 6.9, "reached": False}
    assert (
        "| bfloat16 1024 x 4096 | 1 | 4.70 us | 5.25 us | 1.78 | 6.90 us | 4.6 us, **not reached** |"
        in write_tables(PAGE, [missed])
    )


def test_a_page_without_the_tables_is_refused() -> None:
    with pytest.raises(SystemExit, match="no table that begins with"):
        write_tables("# Kernels\n", ROWS)
