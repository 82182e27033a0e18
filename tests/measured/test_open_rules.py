"""The launches whose counting rules are still looked for run through, and more of them are right than ever before.

`open_rules.json` holds, for each family, how much was right when it was last written: memory instructions, whole rows,
and totals. A better score replaces it: `python -m tests.measured.test_open_rules`. It is never lowered.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.measured.compare import analyze_row, list_counted, list_counted_totals, list_measured, list_measured_totals
from tests.measured.rows import EXACT_TOTALS, PIPE_TOTALS, Row, list_open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORD = Path(__file__).with_name("open_rules.json")
ROWS = list_open_rows()
FAMILIES = tuple(dict.fromkeys(row.family for row in ROWS))
SCORED = ("instructions", "rows", "totals")


def score_row(row: Row) -> Counter[str]:
    """What is right in a row, and what there is."""
    kernel = analyze_row(row)
    measured, counted = list_measured(row), list_counted(kernel)
    names = (*EXACT_TOTALS, *PIPE_TOTALS)
    expected, totals = list_measured_totals(row, names), list_counted_totals(kernel, row, names)
    matched = zip(measured, counted, strict=True) if len(measured) == len(counted) else ()
    return Counter(
        instructions=len(measured),
        instructions_right=sum(left == right for left, right in matched),
        rows=1,
        rows_right=int(measured == counted),
        totals=len(expected),
        totals_right=sum(expected[name] == totals[name] for name in expected),
    )


def add_scores(rows: Iterable[Row], scores: Iterable[Counter[str]]) -> dict[str, Counter[str]]:
    table: dict[str, Counter[str]] = {}
    for row, score in zip(rows, scores, strict=True):
        table.setdefault(row.family, Counter()).update(score)
    return table


def show_scores(table: dict[str, Counter[str]]) -> str:
    lines = ["right of measured".ljust(18) + "".join(name.rjust(16) for name in SCORED)]
    for family, score in table.items():
        shares = (f"{score[f'{name}_right']} of {score[name]}" for name in SCORED)
        lines.append(family.ljust(18) + "".join(share.rjust(16) for share in shares))
    return "\n".join(lines)


@pytest.mark.parametrize("family", FAMILIES)
def test_score_of_open_rules_does_not_fall(family: str) -> None:
    rows = [row for row in ROWS if row.family == family]
    table = add_scores(rows, [score_row(row) for row in rows])
    print(show_scores(table))  # noqa: T201 - the score is what this test is for
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[family]
    for name in SCORED:
        assert table[family][name] == recorded[name]
        assert table[family][f"{name}_right"] >= recorded[f"{name}_right"]


def main() -> None:
    """Print the score of all families, and record it where nothing has become worse."""
    with ProcessPoolExecutor() as pool:
        table = add_scores(ROWS, pool.map(score_row, ROWS))
    sys.stdout.write(show_scores(table) + "\n")
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    for family, before in recorded.items():
        if any(table[family][name] < right for name, right in before.items()):
            sys.exit(f"{family} has become worse: nothing is recorded")
    RECORD.write_text(json.dumps(table, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
