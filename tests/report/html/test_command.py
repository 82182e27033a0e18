from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.report import json as document
from tests.cli.commands import run
from tests.comparison.kernels import EXAMPLE, analyze_example
from tests.report.html.test_page import read_data

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_check_writes_a_page_with_an_estimate_of_the_time(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    outcome = run(capsys, "check", EXAMPLE, "--kernel", "transpose_tile", "--format", "html", "-o", page)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    (kernel,) = read_data(text)["kernels"]
    assert kernel["time"]["estimate_ns"] > 0
    assert kernel["traffic"]["dram_bytes_read"] >= 512 * 512 * 4
    assert sum(part["ns"] for part in kernel["parts"]) > 0


def test_compare_writes_a_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    stored = tmp_path / "stored.json"
    stored.write_text(document.render(analyze_example()), encoding="utf-8")
    kernels = ("--kernel", "transpose_tile", "--kernel", "transpose_padded")
    outcome = run(capsys, "compare", stored, stored, *kernels, "--format", "html")
    assert (outcome.code, outcome.err) == (0, "")
    assert "<h1>transpose_tile → transpose_padded</h1>" in outcome.out
    assert "bank conflicts" in outcome.out
    assert outcome.out.count("<script>") == 1
