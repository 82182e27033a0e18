"""Turns the manual pages of all rules into docs/rules.md.

python tools/write_rules.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.rules.table import RULES

if TYPE_CHECKING:
    from sectorwise.rules.rule import Rule

PAGE: Final = Path(__file__).parents[1] / "docs" / "rules.md"
_FAMILIES: Final = {
    "SW1": "Global memory",
    "SW2": "Shared memory",
    "SW3": "Local memory",
    "SW4": "Concurrency",
    "SW5": "Tiling",
    "SW9": "Wrong, not slow",
}
_HEAD: Final = """\
# Rules

All that `sectorwise check` can find, as `sectorwise explain CODE` prints it. How findings are ranked, selected, allowed
and compared with a baseline is in [findings.md](findings.md). This page is written by `tools/write_rules.py`.

"""


def render() -> str:
    """The page: a table of all rules, then the manual of each."""
    rows = ["| code | name | severity | |", "|---|---|---|---|"]
    for rule in RULES:
        caches = ", with `--caches`" if rule.follows_caches else ""
        rows.append(f"| [{rule.code}](#{_anchor(rule)}) | {rule.name} | {rule.severity}{caches} | {rule.summary} |")
    parts = [_HEAD + "\n".join(rows)]
    family = ""
    for rule in RULES:
        if rule.code[:3] != family:
            family = rule.code[:3]
            parts.append(f"## {_FAMILIES[family]}")
        parts.append(f"### {rule.code} {rule.name}\n\n{_lower_headings(rule.manual.strip())}")
    return "\n\n".join(parts) + "\n"


def _anchor(rule: Rule) -> str:
    """The fragment that code hosts make of the heading."""
    return f"{rule.code.lower()}-{rule.name}"


def _lower_headings(manual: str) -> str:
    return re.sub(r"^## ", "#### ", manual, flags=re.MULTILINE)


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
