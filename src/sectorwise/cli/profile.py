"""Turns a report of Nsight Compute into text or JSON on stdout or in a file: `sectorwise check profile.ncu-rep`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError
from sectorwise.report import json, profile
from sectorwise.report.page import Page
from sectorwise.verify.reports import read_report

if TYPE_CHECKING:
    from pathlib import Path

REPORT_SUFFIX: Final = ".ncu-rep"


def show_report(source: Path, form: str, output: Path | None) -> None:
    """Write what a report counted, instruction by instruction.

    Raises:
        ArgumentError: the form is one of findings, which a report does not have.
        ReportError: the report cannot be read.
    """
    if form not in {"terminal", "json"}:
        raise ArgumentError(f"a report of counters has no findings for --format {form}: choose terminal or json")
    found = read_report(source)
    page = describe_page(sys.stdout) if output is None else Page()
    write_text(json.render(found) if form == "json" else profile.render(found, page), output)
