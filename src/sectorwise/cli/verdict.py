"""Turns findings into the verdict on a run: what fails it, in words for stderr; nothing where it passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.baseline import Comparison, Worsening
    from sectorwise.analysis.data import Analysis, FindingReport
    from sectorwise.findings import Evidence

NEVER: Final = "never"

_ORDER: Final = tuple(Severity)


def judge(analysis: Analysis, fail_on: str, comparison: Comparison | None) -> list[str]:
    """Lines that say why the run fails; empty where it passes.

    Findings count from the severity `fail_on` up (`never`: none does); against a baseline, those that are new or worse.
    """
    if fail_on == NEVER:
        return []
    worst = _ORDER.index(Severity(fail_on))
    if comparison is not None:
        worse = [each for each in comparison.worse if _counts(each.finding, worst)]
        return [*(_describe(each) for each in worse), comparison.explanation] if worse else []
    failing = [finding for kernel in analysis.kernels for finding in kernel.findings if _counts(finding, worst)]
    return list(_summarise(failing)) if failing else []


def describe_better(comparison: Comparison, file: str) -> str:
    """How many accepted findings are gone or cheaper, and how to hold on to that."""
    number = len(comparison.better)
    findings = f"{number} finding{'s' if number > 1 else ''}"
    return f"{findings} of {file} got better or went away: --write-baseline keeps it so"


def _counts(finding: FindingReport, worst: int) -> bool:
    return _ORDER.index(finding.severity) <= worst


def _summarise(failing: list[FindingReport]) -> Iterator[str]:
    for severity in Severity:
        number = sum(finding.severity is severity for finding in failing)
        if number:
            yield f"{number} {severity}{'s' if number != 1 else ''}"


def _describe(worse: Worsening) -> str:
    finding = worse.finding
    place = "" if finding.location is None else f"{finding.location.file}:{finding.location.line}: "
    quantity = "excess" if finding.evidence is None else _name_excess(finding.evidence)
    change = (
        f"new, {worse.after:,.10g} {quantity}"
        if worse.before is None
        else f"{quantity}: {worse.before:,.10g} in the baseline, now {worse.after:,.10g}"
    )
    return f"{place}{finding.code} {finding.rule}: {change}"


def _name_excess(evidence: Evidence) -> str:
    side = "beyond" if evidence.real >= (evidence.ideal or 0) else "short of"
    return f"{evidence.quantity} {side} the ideal"
