"""Turns the findings of an analysis into a SARIF 2.1.0 log, as code hosts and editors read it."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from sectorwise.analysis.identity import identify_findings
from sectorwise.rules.table import RULES

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis, FindingReport, KernelAnalysis
    from sectorwise.analysis.identity import Identity
    from sectorwise.binary.ir import Location
    from sectorwise.report.json import Plain
    from sectorwise.rules.rule import Rule

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_RANKS: Final = {rule.code: number for number, rule in enumerate(RULES)}


def render(analysis: Analysis) -> str:
    """The log as text with a final newline; it has every rule, also those that found nothing."""
    driver: dict[str, Plain] = {
        "name": analysis.tool.name,
        "version": analysis.tool.version,
        "rules": [_describe_rule(rule) for rule in RULES],
    }
    run: dict[str, Plain] = {
        "tool": {"driver": driver},
        "results": [_describe(analysis, *found) for found in identify_findings(analysis)],
        "columnKind": "unicodeCodePoints",
    }
    log: dict[str, Plain] = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _describe_rule(rule: Rule) -> dict[str, Plain]:
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "help": {"text": rule.manual, "markdown": rule.manual},
        "defaultConfiguration": {"level": str(rule.severity)},
    }


def _describe(
    analysis: Analysis, identity: Identity, kernel: KernelAnalysis, finding: FindingReport
) -> dict[str, Plain]:
    place = finding.location
    locations = [_describe_place(analysis.source, 1) if place is None else _describe_place(place.file, place.line)]
    result: dict[str, Plain] = {
        "ruleId": finding.code,
        "ruleIndex": _RANKS[finding.code],
        "level": str(finding.severity),
        "message": {"text": f"{kernel.name}: {finding.message}. Help: {finding.advice}."},
        "locations": [*locations],
        "partialFingerprints": {"sectorwise/v1": identity.fingerprint},
        "properties": {"costNs": finding.cost_ns, "launch": identity.launch},
    }
    if place is not None and place.inlined_at:
        result["relatedLocations"] = [
            _describe_caller(caller, number) for number, caller in enumerate(place.inlined_at)
        ]
    return result


def _describe_place(file: str, line: int) -> dict[str, Plain]:
    region: dict[str, Plain] = {"startLine": max(1, line)}
    return {"physicalLocation": {"artifactLocation": {"uri": _make_uri(file)}, "region": region}}


def _describe_caller(caller: Location, number: int) -> dict[str, Plain]:
    return {
        "id": number,
        "message": {"text": "inlined here"},
        **_describe_place(caller.file, caller.line),
    }


def _make_uri(file: str) -> str:
    """A relative reference, or a file URI for an absolute path."""
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
