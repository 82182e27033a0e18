"""The notebooks of docs run, and print what they are shown to print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.run_notebooks import read_sources, run_cells

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
MOST_LINES = 3
"""Longer outputs are reports with modelled times, which may change; shorter ones are counts, which may not."""


def list_counts(outputs: list[dict[str, object]]) -> list[object]:
    texts = [output["text"] for output in outputs if output["output_type"] == "stream"]
    return [text for text in texts if isinstance(text, list) and len(text) <= MOST_LINES]


@pytest.mark.parametrize("name", ["transpose", "gemv", "learn"])
def test_notebook_runs_and_counts_as_it_shows(name: str) -> None:
    path = FOLDER / f"{name}.ipynb"
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    found = run_cells(read_sources(path))
    shown = [cell["outputs"] for cell in cells]
    assert [list_counts(each) for each in found] == [list_counts(each) for each in shown]
    assert [[output["output_type"] for output in each] for each in found] == [
        [output["output_type"] for output in each] for each in shown
    ]
    assert any(list_counts(each) for each in found)
