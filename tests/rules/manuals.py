"""Reads the examples of a rule's manual page as kernels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.analysis.data import Analysis
    from sectorwise.rules.rule import Rule

_SECTION = re.compile(r"^## (?P<title>[^\n]+)$(?P<text>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"```cuda\n(?P<code>.*?)```", re.DOTALL)


def read_sections(rule: Rule) -> dict[str, str]:
    return {found["title"]: found["text"] for found in _SECTION.finditer(rule.manual)}


def analyze_example(rule: Rule, title: str, folder: Path) -> Analysis:
    """What the kernel in that section of the manual does, launched as its comment says."""
    code = _CODE.search(read_sections(rule)[title])
    assert code is not None, f"{rule.code} has no code under {title!r}"
    source = folder / f"{rule.code}.cu"
    source.write_text(code["code"], encoding="utf-8")
    return analyze(source, follow_caches=rule.follows_caches)
