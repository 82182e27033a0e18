"""Turns a finding into what it is recognised by after the source has moved or the compiler changed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.data import Analysis, FindingReport, KernelAnalysis
    from sectorwise.binary.ir import Location


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """The launch, the rule, the text of the line and of the lines it was inlined into, without line numbers.

    `ordinal` counts findings that are equal in all else, in the order of their lines. `launch` is the case's name, or
    grid and block.
    """

    kernel: str
    launch: str
    code: str
    line: str
    inlined: tuple[str, ...]
    ordinal: int

    @property
    def fingerprint(self) -> str:
        """A hash that is equal where all of this is."""
        parts = "\x1f".join((self.kernel, self.launch, self.code, self.line, *self.inlined, str(self.ordinal)))
        return hashlib.sha256(parts.encode()).hexdigest()[:32]


def identify_findings(analysis: Analysis) -> list[tuple[Identity, KernelAnalysis, FindingReport]]:
    """All findings of all launches with their identities, in the order of the analysis."""
    identified = []
    for kernel in analysis.kernels:
        ordinals: dict[Identity, int] = {}
        by_line = sorted(kernel.findings, key=_place)
        names = {}
        for finding in by_line:
            first = _identify(kernel, finding, analysis.source_texts)
            ordinal = ordinals.get(first, 0)
            ordinals[first] = ordinal + 1
            names[id(finding)] = Identity(first.kernel, first.launch, first.code, first.line, first.inlined, ordinal)
        identified += [(names[id(finding)], kernel, finding) for finding in kernel.findings]
    return identified


def name_launch(kernel: KernelAnalysis) -> tuple[str, str]:
    """By what a launch is known: its kernel, and its case or shape."""
    shape = f"{_write_extent(kernel.launch.grid)} {_write_extent(kernel.launch.block)}"
    return kernel.name, kernel.case or shape


def _identify(kernel: KernelAnalysis, finding: FindingReport, texts: Mapping[str, str]) -> Identity:
    place = finding.location
    name, launch = name_launch(kernel)
    return Identity(
        kernel=name,
        launch=launch,
        code=finding.code,
        line="" if place is None else _read_line(place, texts),
        inlined=() if place is None else tuple(_read_line(caller, texts) for caller in place.inlined_at),
        ordinal=0,
    )


def _read_line(place: Location, texts: Mapping[str, str]) -> str:
    """The text of a line, its spaces made one; of a file that is not there, its name and number."""
    lines = texts.get(place.file, "").splitlines()
    if not 0 < place.line <= len(lines):
        return f"{place.file}:{place.line}"
    return " ".join(lines[place.line - 1].split())


def _place(finding: FindingReport) -> tuple[str, int]:
    return ("", 0) if finding.location is None else (finding.location.file, finding.location.line)


def _write_extent(extent: tuple[int, int, int]) -> str:
    return "x".join(map(str, extent))
