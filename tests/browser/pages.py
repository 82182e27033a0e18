"""Pages to be opened, each written once."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from sectorwise.report.html.page import render
from tests.measured.rows import FOLDER, MOST_THREADS, read_rows

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.analysis.data import Analysis

MOST_ROWS = 4
"""Launches of a family that its page shows; they are alike."""


@cache
def analyze_family(family: str) -> Analysis:
    """The first small launches of a measured family."""
    rows = [row for row in read_rows(family) if row.threads <= MOST_THREADS] or read_rows(family)[:1]
    names = {row.name for row in rows[:MOST_ROWS]}
    launches = [case for case in read_launch_file(FOLDER / f"{family}.json").cases if case.case in names]
    return analyze(FOLDER / f"{family}.sm_90.cubin", launches)


def write_page(folder: Path, name: str, analysis: Analysis) -> str:
    """The address of the page, in a file of this name."""
    path = folder / f"{name}.html"
    if not path.exists():
        path.write_text(render(analysis), encoding="utf-8")
    return path.as_uri()
