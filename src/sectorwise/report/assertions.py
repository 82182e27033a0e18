"""Turns a promise about what a kernel costs into nothing where it is kept, else into an error that shows the line."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.data import Analysis
from sectorwise.analyze import analyze
from sectorwise.errors import ArgumentError
from sectorwise.findings import Severity
from sectorwise.model.totals import Totals
from sectorwise.report.copies import name_copies
from sectorwise.report.findings import write_finding
from sectorwise.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Any

    from sectorwise.analysis.data import FindingReport, KernelAnalysis
    from sectorwise.analyze import LaunchSource

_ORDER: Final = tuple(Severity)


def assert_clean(
    source: str | PathLike[str],
    launches: LaunchSource | Sequence[LaunchSource] | None = None,
    *,
    fail_on: str = "warning",
    allow_unknown: bool = False,
    **options: Any,  # noqa: ANN401 - those of `analyze`, which checks them
) -> Analysis:
    """Analyze launches, and require that no rule finds anything of severity `fail_on` or worse.

    `source`, `launches` and `options` (`device`, `select`, `ignore`, `macros`, ...) are those of `analyze`, whose
    result is returned. What could not be known fails too, unless `allow_unknown` is set.

    Raises:
        AssertionError: there is such a finding; the text shows its line, one warp of it, and what to do.
        SectorwiseError: the work cannot go on.
    """
    __tracebackhide__ = True  # pytest shows where the promise was made, not how it is checked
    if isinstance(source, Analysis):
        raise TypeError("assert_clean takes what analyze takes, a source and its launches, not an Analysis")
    analysis = analyze(source, launches, **options)
    check_clean(analysis, fail_on=fail_on, allow_unknown=allow_unknown)
    return analysis


def check_clean(analysis: Analysis, *, fail_on: str = "warning", allow_unknown: bool = False) -> None:
    """Require of an analysis what `assert_clean` does."""
    __tracebackhide__ = True
    if fail_on not in set(Severity):
        raise ArgumentError(f"fail_on must be one of {', '.join(Severity)}, got {fail_on!r}")
    worst = _ORDER.index(Severity(fail_on))
    lines: list[str] = []
    for kernel in analysis.kernels:
        for finding in kernel.findings:
            if _ORDER.index(finding.severity) <= worst:
                lines += _show(analysis, kernel, finding)
        if not allow_unknown:
            lines += [f"{kernel.name}: not known: {limitation.because}" for limitation in kernel.limitations]
    if lines:
        raise AssertionError("\n".join([f"{analysis.source} is not clean", *lines]))


def check_totals(analysis: Analysis, promised: Mapping[str, int]) -> None:
    """Require that totals of the launches, added up, are equal to what is promised, by the names of `Totals`.

    Raises:
        AssertionError: one is not; the text lists the memory instructions with their lines.
        ArgumentError: there is no such total.
    """
    __tracebackhide__ = True
    known = [field.name for field in fields(Totals)]
    lines: list[str] = []
    for name, wanted in promised.items():
        if name not in known:
            raise ArgumentError(f"there is no total {name!r}; there are: {', '.join(known)}")
        parts = [getattr(kernel.totals, name) for kernel in analysis.kernels]
        found = None if None in parts else sum(parts)
        if found != wanted:
            lines.append(f"{name}: promised {wanted:,}, counted {'unknown' if found is None else f'{found:,}'}")
    if lines:
        raise AssertionError("\n".join([f"{analysis.source} costs something else", *lines, *_list_sites(analysis)]))


def _show(analysis: Analysis, kernel: KernelAnalysis, finding: FindingReport) -> list[str]:
    place = finding.location
    lines = [] if place is None else analysis.source_texts.get(place.file, "").splitlines()
    text = lines[place.line - 1].strip() if place is not None and 0 < place.line <= len(lines) else ""
    shown = [line.rstrip() for line in write_finding(finding, Page(width=100), is_timed=kernel.time is not None)]
    return [f"{kernel.name}:", *([f"    > {text}"] if text else []), *shown]


def _list_sites(analysis: Analysis) -> list[str]:
    lines = []
    for kernel in analysis.kernels:
        for site in kernel.sites:
            place = site.offset if site.location is None else f"{site.location.file}:{site.location.line}"
            counts = f"executed {site.executed:,}, sectors {site.sectors}, wavefronts {site.wavefronts}"
            lines.append(f"    {place}: {kernel.name}: {site.space} {site.operation}: {counts}")
        for copies in kernel.copies:
            place = copies.offset if copies.location is None else f"{copies.location.file}:{copies.location.line}"
            counts = f"copies {copies.copies}, sectors {copies.sectors}"
            lines.append(f"    {place}: {kernel.name}: {name_copies(copies)}: {counts}")
    return lines
