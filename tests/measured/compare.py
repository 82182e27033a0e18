"""Runs a measured launch, and lays its counts beside those of the profiler."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from tests.measured.rows import FOLDER, SITE_COUNTS, Row

if TYPE_CHECKING:
    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.launch.config import LaunchConfig


@cache
def read_launches(family: str) -> dict[str, LaunchConfig]:
    cases = read_launch_file(FOLDER / f"{family}.json").cases
    return {launch.case: launch for launch in cases if launch.case is not None}


def analyze_row(row: Row) -> KernelAnalysis:
    """The measured cubin with the measured launch."""
    launch = read_launches(row.family)[row.name]
    (kernel,) = analyze(FOLDER / f"{row.family}.sm_90.cubin", launch, device="h200", follow_caches=False).kernels
    return kernel


def list_measured(row: Row) -> list[dict[str, int]]:
    return [{name: listed.get(name, 0) for name in SITE_COUNTS} for listed in row.instructions]


def list_counted(kernel: KernelAnalysis) -> list[dict[str, int | None]]:
    return [count_site(site) for site in kernel.sites]


def count_site(site: MemorySite) -> dict[str, int | None]:
    return {name: getattr(site, name) for name in SITE_COUNTS}


def list_measured_totals(row: Row, names: tuple[str, ...]) -> dict[str, int]:
    """Totals that the row recorded; one that is absent was zero, or was not recorded, and is not judged."""
    return {name: row.totals[name] for name in names if name in row.totals}


def list_counted_totals(kernel: KernelAnalysis, row: Row, names: tuple[str, ...]) -> dict[str, int | None]:
    return {name: getattr(kernel.totals, name) for name in names if name in row.totals}
