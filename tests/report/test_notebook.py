from __future__ import annotations

import html
import re
import subprocess
import sys
from dataclasses import replace

import pytest

import sectorwise as sw
from sectorwise.advise.tiles import plan_tiles
from sectorwise.analysis.causes import split_time
from sectorwise.errors import ArgumentError
from sectorwise.findings import Picture, Scene
from tests.comparison.kernels import analyze_example, find_kernel
from tests.report.samples import BECAUSE, COPYING, UNKNOWN, make_analysis


def list_cells(page: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def test_analysis_is_a_table_of_its_lines() -> None:
    shown = analyze_example()._repr_html_()
    cells = list_cells(shown)
    turned = "out[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];"
    assert ["36", turned, "shared load 4 B, 4 times", "8,192", "-", "-", "32.0", "1.0", "3 %", ""] in cells
    assert "SW101" in shown
    assert "<script" not in shown


def test_bulk_copies_are_rows() -> None:
    cells = list_cells(make_analysis(COPYING)._repr_html_())
    assert [row[2:9] for row in cells if row and row[2].startswith("bulk")] == [
        ["bulk tile load 8,192 B", "64", "512.0", "256.0", "-", "-", "50 %"],
        ["bulk tile load 8,192 B", "32", "512.0", "512.0", "-", "-", "100 %"],
        ["bulk range prefetch 528 B", "64", "-", "-", "-", "-", "-"],
        ["bulk tile store ? B", "64", "?", "?", "-", "-", "?"],
    ]


def test_source_and_reasons_are_text() -> None:
    evil = "<img src=x onerror=alert(1)>\n" * 9
    shown = make_analysis(UNKNOWN, source_texts={"sample.cu": evil})._repr_html_()
    assert "<img" not in shown
    assert "&lt;img src=x" in shown
    assert f"unknown: {BECAUSE}" in shown
    assert ["7", evil.splitlines()[0].replace("<", "&lt;").replace(">", "&gt;"), "global atomic 4 B"] in [
        row[:3] for row in list_cells(shown)
    ]


def test_launch_and_finding_show_themselves() -> None:
    tile = find_kernel("transpose_tile")
    assert list_cells(tile._repr_html_())[1][2:4] == ["global load 4 B, 4 times", "8,192"]
    (finding,) = tile.findings
    shown = finding._repr_html_()
    assert "L1 wavefronts shared: 262,144, ideal 8,192" in shown
    assert 'aria-label="32 passes over 32 banks"' in shown


@pytest.mark.parametrize(
    ("scene", "step", "width", "rows", "used", "moved"),
    [
        (Scene.SECTORS, 4, 4, 1, 32, 0),
        (Scene.SECTORS, 128, 4, 32, 32, 7 * 32),
        (Scene.SECTORS, 8, 4, 2, 32, 32),
        (Scene.BANKS, 4, 4, 1, 32, 0),
        (Scene.BANKS, 8, 4, 2, 32, 0),
        (Scene.BANKS, 16, 16, 4, 128, 0),
        (Scene.BANKS, 0, 4, 1, 1, 0),
    ],
)
def test_pictures_have_a_cell_for_every_word(
    scene: Scene, step: int, width: int, rows: int, used: int, moved: int
) -> None:
    lanes = tuple(step * lane for lane in range(32))
    shown = Picture(scene, width, lanes, min(32, 128 // width), 1)._repr_html_()
    colors = re.findall(r'fill="(#\w+)"', shown)
    assert colors.count("#80808030") == 4 * rows
    assert (colors.count("#2f7fc1"), colors.count("#f0b48f")) == (used, moved)


def test_advice_shows_its_text_and_the_picture_of_an_access() -> None:
    cost = sw.access("lane * 128", width=4)
    shown = cost._repr_html_()
    assert str(cost).splitlines()[0] in shown
    assert 'aria-label="32 128-byte lines, four sectors each"' in shown
    for advice in (sw.advise_gemv(256, 512), plan_tiles(512, 512, 512)):
        shown = html.unescape(advice._repr_html_())
        assert str(advice) in shown
        assert "<svg" not in shown


def test_figures_have_the_kernel_on_them() -> None:
    plots = analyze_example().plot
    (axes,) = plots.occupancy(1).axes
    ((x, y),) = axes.lines[0].get_xydata().tolist()
    tile = find_kernel("transpose_tile")
    assert (x, y) == (tile.resources.registers_per_thread, tile.occupancy.warps_per_sm)
    (axes,) = plots.time(1).axes
    assert [bar.get_width() for bar in axes.patches] == [(part.ns or 0) / 1000 for part in split_time(tile) if part.ns]
    (axes,) = plots.bytes_in_flight(1).axes
    assert tile.concurrency is not None
    assert axes.lines[1].get_xdata()[0] == tile.concurrency.in_flight_bytes_per_sm


def test_roofline_has_a_point_at_each_level() -> None:
    analysis = make_analysis()
    (axes,) = analysis.plot.roofline().axes
    points = [line.get_xydata().tolist()[0] for line in axes.lines if line.get_marker() == "o"]
    roof = analysis.kernels[0].roofline
    assert points == [
        [level.intensity, level.attainable_gflops]
        for level in roof.levels
        if level.level != "issue" and level.intensity and level.attainable_gflops
    ]
    assert len(points) >= 2


def test_figures_that_cannot_be_drawn_say_why() -> None:
    plots = analyze_example().plot
    with pytest.raises(ArgumentError, match="transpose_naive does no arithmetic"):
        plots.roofline()
    with pytest.raises(ArgumentError, match="no launch 3; there are 3, from 0 on"):
        plots.time(3)
    with pytest.raises(ArgumentError, match="one of registers, shared, warps, got 'moon'"):
        plots.occupancy(0, over="moon")
    whole = analyze_example()
    with pytest.raises(ArgumentError, match="follow_caches=True"):
        replace(whole, kernels=tuple(replace(kernel, time=None) for kernel in whole.kernels)).plot.time()


def test_notebooks_need_no_matplotlib() -> None:
    script = "import sys; from sectorwise.report import notebook; print('matplotlib' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
