from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

from sectorwise.analysis.comparison import compare_analyses
from sectorwise.report.html.compare import render
from tests.comparison.kernels import analyze_example, find_kernel

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page


@pytest.fixture
def compared(folder: Path) -> str:
    whole = analyze_example()
    sides = [replace(whole, kernels=(find_kernel(f"transpose_{name}"),)) for name in ("tile", "padded")]
    path = folder / "compared.html"
    path.write_text(render(compare_analyses(*sides)), encoding="utf-8")
    return path.as_uri()


def test_says_what_changed_and_why(page: Page, compared: str) -> None:
    page.goto(compared)
    assert page.locator("h1").inner_text() == "transpose_tile → transpose_padded"
    assert "times as fast" in page.locator(".verdict").inner_text()
    causes = [row.split("\t")[0] for row in page.locator("table.causes tbody tr").all_inner_texts()]
    # What the launches wait for besides is L1 before and data after: one cause, which changes less than the conflicts.
    assert causes[1].strip().splitlines() == [
        "waiting or busy, beyond the least",
        "L1 and shared memory, then waiting for data",
    ]
    assert causes[0] == "bank conflicts"
    rows = page.locator(".card").nth(1).locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[:3] for row in rows if row.startswith("shared wavefronts")] == [
        ["shared wavefronts", "270,336", "16,384"]
    ]
    first = page.locator(".change-line").first
    assert "examples/transpose.cu:36 → 52" in first.inner_text()
    assert first.locator("tbody tr", has_text="wavefronts").inner_text().split("\t")[:3] == [
        "wavefronts",
        "262,144",
        "8,192",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_serious_stands_in_the_way(page: Page, compared: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]  # one of the two
    page.goto(compared)
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical"}] == []


@pytest.mark.parametrize("width", [360, 1280])
def test_fits_the_width(page: Page, compared: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(compared)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_source_is_shown_and_not_run(page: Page, folder: Path) -> None:
    evil = "<script>window.run = true</script>\n" * 60
    whole = analyze_example()
    before = replace(
        whole, kernels=(find_kernel("transpose_tile"),), source_texts=dict.fromkeys(whole.source_texts, evil)
    )
    after = replace(whole, kernels=(find_kernel("transpose_padded"),))
    path = folder / "evil_comparison.html"
    path.write_text(render(compare_analyses(before, after)), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.evaluate("window.run") is None
    assert "<script>window.run = true</script>" in page.locator(".diff").first.inner_text()
