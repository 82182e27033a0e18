"""Every measured launch with excess sectors or wavefronts is found at warning, and no other launch is warned of."""

from __future__ import annotations

import pytest

from sectorwise.findings import Severity
from tests.measured.compare import analyze_row
from tests.measured.rows import Row, list_families, read_rows

ROWS = [row for family in list_families() for row in read_rows(family) if row.instructions]


def name_row(row: Row) -> str:
    return f"{row.family}-{row.name}"


def has_excess(row: Row, real: str) -> bool:
    return any(listed.get(real, 0) > listed.get(f"{real}_ideal", 0) for listed in row.instructions)


def test_both_kinds_are_among_the_rows() -> None:
    wasteful = [row for row in ROWS if has_excess(row, "sectors")]
    conflicting = [row for row in ROWS if has_excess(row, "wavefronts")]
    assert len(ROWS) == 389
    assert len(wasteful) > 60
    assert len(conflicting) > 100


@pytest.mark.parametrize("row", ROWS, ids=name_row)
def test_excess_that_the_profiler_shows_is_found(row: Row) -> None:
    kernel = analyze_row(row)
    warned = {finding.code[:3] for finding in kernel.findings if finding.severity is Severity.WARNING}
    expected = {family for family, real in (("SW1", "sectors"), ("SW2", "wavefronts")) if has_excess(row, real)}
    assert warned & {"SW1", "SW2"} == expected
