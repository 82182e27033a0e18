"""Every measured launch of more than 70,000 threads: equal counts, within seconds, and all exact."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from sectorwise.machine.execution import Certainty
from tests.measured.compare import analyze_row, list_counted, list_counted_totals, list_measured, list_measured_totals
from tests.measured.rows import EXACT_TOTALS, MOST_THREADS, Row, list_families, read_rows

REBUILT = frozenset({"t_softmax_rows"})
"""Their cubin was compiled again after the measurement, to other instructions around the same accesses."""

ROOT = Path(__file__).resolve().parents[2]

MOST_SECONDS = 10.0  # of processor time; the slowest takes 1.8 where nothing else runs
MOST_BYTES = 2 << 30

ROWS = [row for family in list_families() for row in read_rows(family) if row.threads > MOST_THREADS]


def test_all_large_rows_are_here() -> None:
    names = {row.name for row in ROWS}
    assert len(names) == len(ROWS) == 36
    assert {"t_mm_tile16", "t_gather_hash", "k_mm64_rowmajor_4096", "k_l2_twice_56", "t_sum_interleaved"} <= names


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_large_launches_are_counted_in_seconds(row: Row) -> None:
    begin = time.process_time()
    kernel = analyze_row(row)
    seconds = time.process_time() - begin
    assert list_counted(kernel) == list_measured(row)
    assert list_counted_totals(kernel, row, EXACT_TOTALS) == list_measured_totals(row, EXACT_TOTALS)
    assert (kernel.totals.instructions == row.totals["instructions"]) == (row.name not in REBUILT)
    assert {site.certainty for site in kernel.sites} <= {Certainty.EXACT}
    assert kernel.coverage.sampled is None
    assert (kernel.faults, kernel.limitations, kernel.hangs) == ((), (), ())
    assert seconds < MOST_SECONDS


def test_the_launch_that_reads_most_takes_little_memory() -> None:
    command = [sys.executable, "-m", "benchmarks.rows", "reductions:t_softmax_rows"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    columns, row = (line.split() for line in told.splitlines())
    assert (columns[4], row[0]) == ("MiB", command[-1])
    assert int(row[3]) << 20 < MOST_BYTES
