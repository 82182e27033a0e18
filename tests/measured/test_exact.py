"""Every memory instruction of the measured launches equals the profiler's counters: no tolerance."""

from __future__ import annotations

import pytest

from sectorwise.machine.execution import Certainty
from tests.measured.compare import analyze_row, list_counted, list_counted_totals, list_measured, list_measured_totals
from tests.measured.rows import EXACT_TOTALS, FURTHER_ROWS, PIPE_TOTALS, Row, list_exact_rows, list_further_rows

ROWS = list_exact_rows()
FURTHER = list_further_rows()


def name_row(row: Row) -> str:
    return f"{row.family}-{row.name}"


def test_all_rows_are_here() -> None:
    assert len(ROWS) == 122
    assert sum(len(row.instructions) for row in ROWS) > 1000
    assert len(FURTHER) == len(FURTHER_ROWS)


@pytest.mark.parametrize("row", ROWS, ids=name_row)
def test_counts_equal_the_profiler(row: Row) -> None:
    check(row, (*EXACT_TOTALS, *PIPE_TOTALS))


@pytest.mark.parametrize("row", FURTHER, ids=name_row)
def test_counts_of_larger_launches_equal_the_profiler(row: Row) -> None:
    check(row, EXACT_TOTALS)


def check(row: Row, totals: tuple[str, ...]) -> None:
    kernel = analyze_row(row)
    assert [site.sass.split()[0] for site in kernel.sites] == [listed["sass"].split()[0] for listed in row.instructions]
    assert list_counted(kernel) == list_measured(row)
    assert list_counted_totals(kernel, row, totals) == list_measured_totals(row, totals)
    assert kernel.totals.instructions == row.warp_instructions
    assert {site.certainty for site in kernel.sites} <= {Certainty.EXACT}
    assert (kernel.faults, kernel.limitations, kernel.hangs) == ((), (), ())
