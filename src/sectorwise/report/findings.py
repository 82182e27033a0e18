"""Turns findings into lines of the terminal report: what is wrong, the picture of one warp, what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Severity
from sectorwise.report.concurrency import write_time
from sectorwise.report.page import Page, Role, paint, tidy, wrap
from sectorwise.report.pictures import draw_picture

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sectorwise.analysis.data import FindingReport
    from sectorwise.findings import Evidence, Remedy

_ROLES: Final = {Severity.ERROR: Role.WRONG, Severity.WARNING: Role.BAD, Severity.NOTE: Role.FAIR}
_INDENT: Final = 6


def write_findings(findings: Sequence[FindingReport], page: Page, *, is_timed: bool = False) -> Iterator[str]:
    """The findings in their order, the dearest first; what is wrong has its own section of the report.

    `is_timed` as of `write_finding`.
    """
    shown = [finding for finding in findings if finding.severity is not Severity.ERROR]
    if not findings:
        yield paint(page, Role.QUIET, "  findings: none")
        return
    if not shown:
        return
    yield paint(page, Role.TITLE, "  findings, the dearest first")
    told: set[Remedy] = set()
    for finding in shown:
        yield from write_finding(finding, page, told, is_timed=is_timed)
        told.update(finding.remedies)


def write_finding(
    finding: FindingReport, page: Page, told: Collection[Remedy] = (), *, is_timed: bool = False
) -> Iterator[str]:
    """What is wrong and where, the number behind it, one warp of it, what to do, and proven remedies.

    Of a remedy that was `told` already, for another finding that it helps as well, only the title stands here. Where
    the launch `is_timed` costs are what it would take less, else what the excess takes by itself, hidden or not.
    """
    place = "" if finding.location is None else f"  {finding.location.file}:{finding.location.line}"
    role = _ROLES[finding.severity]
    mark = "" if finding.severity is Severity.WARNING else f" ({finding.severity})"
    yield tidy(page, "    ") + paint(page, role, f"{finding.code} {finding.rule}{mark}") + tidy(page, place)
    yield from wrap(page, finding.message, _INDENT)
    if finding.evidence is not None:
        yield from _write_evidence(finding.evidence, _write_cost(finding.cost_ns, is_timed=is_timed), page)
    yield from wrap(page, f"help: {finding.advice}; `sectorwise explain {finding.code}`", _INDENT)
    for remedy in finding.remedies:
        if remedy in told:
            yield from wrap(page, f"remedy, as above: {remedy.title}", _INDENT)
        else:
            yield from _write_remedy(remedy, page)


def _write_cost(cost_ns: float | None, *, is_timed: bool) -> str:
    if not cost_ns:
        return ""
    if is_timed:
        return f"; without it the launch takes about {write_time(cost_ns)} less"
    return f"; the difference alone takes about {write_time(cost_ns)}, unless other work hides it"


def _write_evidence(evidence: Evidence, cost: str, page: Page) -> Iterator[str]:
    ideal = "" if evidence.ideal is None else f", ideal {evidence.ideal:,.10g}"
    yield from wrap(page, f"{evidence.quantity}: {evidence.real:,.10g}{ideal}{cost}", _INDENT)
    if evidence.picture is not None:
        yield from (" " * (_INDENT + 2) + line for line in draw_picture(evidence.picture, page))


def _write_remedy(remedy: Remedy, page: Page) -> Iterator[str]:
    proven = "proven" if remedy.proven_on is None else f"proven on {remedy.proven_on}, not on this one"
    gain = f"{remedy.before:,} to {remedy.after:,} {remedy.quantity}"
    yield from wrap(page, f"remedy, {proven}: {remedy.title}: {gain}", _INDENT)
    if remedy.before_ns is not None and remedy.after_ns is not None:
        ratio = remedy.before_ns / remedy.after_ns
        times = f"{write_time(remedy.before_ns)} to {write_time(remedy.after_ns)}"
        yield from wrap(page, f"time, modelled: {times}, {ratio:.2f} times as fast", _INDENT + 2)
    for line in remedy.change.splitlines():
        yield " " * (_INDENT + 4) + tidy(page, line)
    for refusal in remedy.refused:
        yield from wrap(page, f"not: {refusal}", _INDENT + 2)
