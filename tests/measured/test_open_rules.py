"""The launches whose counting rules are still looked for run through, and more of them are right than ever before.

`open_rules.json` holds, for each family, how many memory instructions were right when it was last written. A better
score replaces it: `python -m tests.measured.test_open_rules`. It is never lowered.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.measured.compare import analyze_row, list_counted, list_measured
from tests.measured.rows import Row, list_open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = Path(__file__).with_name("open_rules.json")
ROWS = list_open_rows()
FAMILIES = tuple(dict.fromkeys(row.family for row in ROWS))


def score_row(row: Row) -> tuple[str, int, int, int]:
    """Family, memory instructions that are right, those measured, and 1 if the whole row is right."""
    measured, counted = list_measured(row), list_counted(analyze_row(row))
    right = sum(a == b for a, b in zip(measured, counted, strict=False)) if len(measured) == len(counted) else 0
    return row.family, right, len(measured), int(measured == counted)


def add_scores(scores: Iterable[tuple[str, int, int, int]]) -> dict[str, dict[str, int]]:
    table: dict[str, dict[str, int]] = {}
    for family, right, measured, whole in scores:
        entry = table.setdefault(family, {"right": 0, "instructions": 0, "rows_right": 0, "rows": 0})
        entry["right"] += right
        entry["instructions"] += measured
        entry["rows_right"] += whole
        entry["rows"] += 1
    return table


def show_scores(table: dict[str, dict[str, int]]) -> str:
    lines = [f"{'family':<18}{'instructions right':>20}{'rows right':>14}"]
    for family, entry in table.items():
        instructions = f"{entry['right']} of {entry['instructions']}"
        lines.append(f"{family:<18}{instructions:>20}{entry['rows_right']:>8} of {entry['rows']}")
    return "\n".join(lines)


@pytest.mark.parametrize("family", FAMILIES)
def test_score_of_open_rules_does_not_fall(family: str) -> None:
    table = add_scores(score_row(row) for row in ROWS if row.family == family)
    print(show_scores(table))  # noqa: T201 - the score is what this test is for
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[family]
    assert table[family]["instructions"] == recorded["instructions"]
    assert table[family]["right"] >= recorded["right"]
    assert table[family]["rows_right"] >= recorded["rows_right"]


def main() -> None:
    """Print the score of all families, and record it where it is better."""
    with ProcessPoolExecutor() as pool:
        table = add_scores(pool.map(score_row, ROWS))
    sys.stdout.write(show_scores(table) + "\n")
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for family, entry in table.items():
        before = recorded.get(family, {"right": 0, "rows_right": 0})
        if entry["right"] < before["right"] or entry["rows_right"] < before["rows_right"]:
            sys.exit(f"{family} has become worse: nothing is recorded")
    RECORD.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
