"""Turns the findings of an analysis into the workflow commands by which GitHub Actions annotates lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Severity

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis, FindingReport, KernelAnalysis

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render(analysis: Analysis) -> str:
    """A command for each finding; an empty text where there is none."""
    return "".join(_write(analysis, kernel, finding) for kernel in analysis.kernels for finding in kernel.findings)


def _write(analysis: Analysis, kernel: KernelAnalysis, finding: FindingReport) -> str:
    place = finding.location
    at = {"file": analysis.source} if place is None else {"file": place.file, "line": str(place.line)}
    at["title"] = f"{finding.code} {finding.rule}"
    properties = ",".join(f"{name}={_escape_property(value)}" for name, value in at.items())
    text = f"{kernel.name}: {finding.message}\nhelp: {finding.advice}"
    return f"::{_LEVELS[finding.severity]} {properties}::{_escape(text)}\n"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
