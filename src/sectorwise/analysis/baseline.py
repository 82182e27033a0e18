"""Turns the findings of an analysis into a baseline file, and a later analysis into what got worse since."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sectorwise.analysis.identity import Identity, identify_findings, name_launch
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from sectorwise.analysis.data import Analysis, FindingReport

SCHEMA: Final = "sectorwise.baseline/1"


@dataclass(frozen=True, slots=True)
class Baseline:
    """What was accepted: the excess of each finding, and from which compiler and source it came."""

    compiler: str | None
    source_hash: str
    excess: Mapping[Identity, float]


@dataclass(frozen=True, slots=True)
class Worsening:
    """A finding that is new (`before` is None), or whose excess over its ideal grew."""

    finding: FindingReport
    before: float | None
    after: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """What got worse since a baseline, and what may be why: the compiler or the source changed, or neither.

    `better` are the accepted findings that are gone or cost less.
    """

    worse: tuple[Worsening, ...]
    better: tuple[Identity, ...]
    compiler_changed: str | None
    """`NVRTC 12.9 -> NVRTC 13.0`; None where it did not."""
    source_changed: bool

    @property
    def explanation(self) -> str:
        """In words."""
        match (self.source_changed, self.compiler_changed):
            case (False, None):
                return "neither source nor compiler changed since the baseline: launches, device or rules did"
            case (True, None):
                return "the source changed since the baseline"
            case (False, compiler):
                return f"the compiler changed since the baseline ({compiler}), the source did not"
            case (_, compiler):
                return f"both source and compiler ({compiler}) changed since the baseline"


def write_baseline(analysis: Analysis) -> str:
    """The text of a baseline file: a line for each finding, in an order that does not follow the line numbers."""
    found = sorted((identity, _excess(finding)) for identity, _, finding in identify_findings(analysis))
    head = {"schema": SCHEMA, "compiler": analysis.tool.compiler, "source": _hash(analysis)}
    rows = [
        json.dumps(
            {
                "kernel": identity.kernel,
                "launch": identity.launch,
                "code": identity.code,
                "line": identity.line,
                "inlined": list(identity.inlined),
                "ordinal": identity.ordinal,
                "excess": excess,
            },
            ensure_ascii=False,
        )
        for identity, excess in found
    ]
    opening = json.dumps(head, indent=2, ensure_ascii=False).removesuffix("\n}")
    listed = ",\n    ".join(rows)
    return f'{opening},\n  "findings": [\n    {listed}\n  ]\n}}\n' if rows else f'{opening},\n  "findings": []\n}}\n'


def read_baseline(path: Path) -> Baseline:
    """The baseline that a file holds.

    Raises:
        ArgumentError: it cannot be read, is no baseline, or one of another schema.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        message = f"cannot read the baseline {path}: {error.strerror}; --write-baseline {path} makes one"
        raise ArgumentError(message) from None
    except ValueError as error:
        raise ArgumentError(f"{path} is no baseline: {error}") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise ArgumentError(f"{path}: expected a baseline of schema {SCHEMA!r}, got {schema!r}; nothing was changed")
    try:
        excess = {_read_identity(row): float(row["excess"]) for row in document["findings"]}
        return Baseline(document["compiler"], str(document["source"]), excess)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(f"{path} is no whole baseline: {type(error).__name__}: {error}") from None


def compare(analysis: Analysis, baseline: Baseline, codes: Collection[str] | None = None) -> Comparison:
    """What is new or dearer in `analysis` than in the baseline, and what is gone or cheaper.

    A finding whose line was edited takes the place of one of its rule that is gone from the same launch, if it costs
    no more. Launches that were not analysed, and rules other than `codes`, where these are given, are not gone.
    """
    found = {identity: finding for identity, _, finding in identify_findings(analysis)}
    launches = {name_launch(kernel) for kernel in analysis.kernels}
    gone = {
        identity: excess
        for identity, excess in baseline.excess.items()
        if identity not in found
        and (identity.kernel, identity.launch) in launches
        and (codes is None or identity.code in codes)
    }
    better: list[Identity] = []
    worse = []
    for identity, finding in found.items():
        before, after = baseline.excess.get(identity), _excess(finding)
        if before is None and (former := _find_former(identity, after, gone)) is not None:
            before = gone.pop(former)
        if before is None or after > before:
            worse.append(Worsening(finding, before, after))
        elif after < before:
            better.append(identity)
    compiler = analysis.tool.compiler
    changed = None if compiler == baseline.compiler else f"{baseline.compiler} -> {compiler}"
    return Comparison(tuple(worse), (*better, *gone), changed, _hash(analysis) != baseline.source_hash)


def _find_former(identity: Identity, excess: float, gone: Mapping[Identity, float]) -> Identity | None:
    """What a finding may have been before its line was edited: of those that cost no less, the cheapest."""
    wanted = (identity.kernel, identity.launch, identity.code)
    alike = [each for each in gone if (each.kernel, each.launch, each.code) == wanted and gone[each] >= excess]
    return min(alike, key=lambda each: (gone[each], each), default=None)


def _excess(finding: FindingReport) -> float:
    """How far a finding's number is from what it could be: above it, as sectors are, or below, as active lanes are."""
    evidence = finding.evidence
    return 0 if evidence is None else abs(evidence.real - (evidence.ideal or 0))


def _read_identity(row: dict[str, Any]) -> Identity:
    inlined = tuple(str(line) for line in row["inlined"])
    return Identity(
        str(row["kernel"]), str(row["launch"]), str(row["code"]), str(row["line"]), inlined, int(row["ordinal"])
    )


def _hash(analysis: Analysis) -> str:
    """Of all source files that locations name."""
    digest = hashlib.sha256()
    for name in sorted(analysis.source_texts):
        digest.update(analysis.source_texts[name].encode() + b"\0")
    return digest.hexdigest()[:16]
