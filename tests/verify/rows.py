"""Measured rows as if a profiler's report had been read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.analysis.profile import ProfiledLaunch, ProfiledSite
from sectorwise.verify.counters import TOTAL_COUNTERS
from sectorwise.verify.reports import make_site
from tests.measured.rows import SITE_COUNTS, Row, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping


def find_row(family: str, name: str) -> Row:
    (row,) = [row for row in read_rows(family) if row.name == name]
    return row


def make_sites(row: Row) -> tuple[ProfiledSite, ...]:
    sites = []
    for listed in row.instructions:
        site = make_site(listed["sass"], {name: listed.get(name, 0) for name in SITE_COUNTS}, None, None)
        assert site is not None
        sites.append(site)
    return tuple(sites)


def make_launch(row: Row, totals: Mapping[str, int] | None = None) -> ProfiledLaunch:
    """The row's launch; `totals` replaces some of what was counted."""
    names = {counter.name for counter in TOTAL_COUNTERS}
    x, y, z = row.case["grid"]
    a, b, c = row.case["block"]
    return ProfiledLaunch(
        name=row.case["kernel"],
        symbol=row.case["kernel"],
        grid=(x, y, z),
        block=(a, b, c),
        dynamic_shared_bytes=row.case["shared"],
        registers_per_thread=None,
        device="NVIDIA H200",
        compute_capability=(9, 0),
        has_source_view=True,
        sites=make_sites(row),
        totals={name: count for name, count in row.totals.items() if name in names} | dict(totals or {}),
        time_ns=None,
    )
