"""Turns a report of Nsight Compute into text or JSON on stdout or in a file: `sectorwise check profile.ncu-rep`."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError, UnknownKernelError
from sectorwise.report import json, profile
from sectorwise.report.page import Page
from sectorwise.verify.reader import read_apart

if TYPE_CHECKING:
    from pathlib import Path


def refuse_options(**given: bool) -> None:
    """Raise ArgumentError for options of an execution: a report without launches is shown as it is."""
    for name, is_given in given.items():
        if is_given:
            raise ArgumentError(f"--{name} is for kernels that are executed; give the launch, too, with --launch")


def show_report(source: Path, form: str, output: Path | None, kernel: str | None) -> None:
    """Write what a report counted, instruction by instruction; `kernel` keeps the launches of one kernel.

    Raises:
        ArgumentError: the form is one of findings, which a report does not have.
        ReportError: the report cannot be read.
        UnknownKernelError: the report has no launch of `kernel`.
    """
    if form not in {"terminal", "json"}:
        raise ArgumentError(f"a report of counters has no findings for --format {form}: choose terminal or json")
    found = read_apart(source)
    if kernel is not None:
        kept = tuple(launch for launch in found.launches if kernel in {launch.name, launch.symbol})
        if not kept:
            names = ", ".join(dict.fromkeys(launch.name for launch in found.launches))
            raise UnknownKernelError(f"{source} has no launch of kernel {kernel!r}; it has {names}")
        found = replace(found, launches=kept)
    page = describe_page(sys.stdout) if output is None else Page()
    write_text(json.render(found) if form == "json" else profile.render(found, page), output)
