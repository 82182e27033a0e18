"""Turns the `// sectorwise: allow SW201` comments of source lines into findings that are not reported."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.rules.selection import find_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.data import FindingReport, KernelAnalysis
    from sectorwise.binary.ir import Location

_COMMENT = re.compile(r"(?://|#|/\*)\s*sectorwise\s*:\s*allow\b(?P<codes>[\s\w,-]*)", re.ASCII)


def drop_allowed(kernel: KernelAnalysis, texts: Mapping[str, str]) -> KernelAnalysis:
    """The kernel without findings whose line, or a line that it was inlined into, allows their code.

    `texts` are the source files by the names that locations use.

    Raises:
        ArgumentError: a comment allows a code that no rule has.
    """
    kept = tuple(finding for finding in kernel.findings if not _is_allowed(finding, texts))
    return replace(kernel, findings=kept)


def _is_allowed(finding: FindingReport, texts: Mapping[str, str]) -> bool:
    if finding.location is None:
        return False
    places = (finding.location, *finding.location.inlined_at)
    return any(finding.code in read_allowed(place, texts) for place in places)


def read_allowed(place: Location, texts: Mapping[str, str]) -> frozenset[str]:
    """The codes that the line at a place allows: `// sectorwise: allow SW201, SW1`."""
    lines = texts.get(place.file, "").splitlines()
    if not 0 < place.line <= len(lines):
        return frozenset()
    found = _COMMENT.search(lines[place.line - 1])
    if found is None:
        return frozenset()
    words = re.findall(r"[\w-]+", found["codes"].replace("*/", " "))
    if not words:
        raise ArgumentError(f"{place.file}:{place.line}: 'allow' names no code; for one: allow SW201")
    try:
        return frozenset(rule.code for word in words for rule in find_rules(word))
    except ArgumentError as error:
        raise ArgumentError(f"{place.file}:{place.line}: {error}") from None
