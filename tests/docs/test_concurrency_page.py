"""The tables of docs/concurrency.md are what the model says, and what was measured."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from sectorwise.device import load_device
from sectorwise.model.roofline import Level, draw_roofline
from tests.model import test_concurrency as curve

PAGE = (Path(__file__).parents[2] / "docs" / "concurrency.md").read_text(encoding="utf-8")
READS = json.loads((curve.ROWS / "curves.json").read_text(encoding="utf-8"))["read_curve"]


@pytest.mark.parametrize(("warps", "loads"), [(4, 8), (8, 4), (16, 2), (32, 1)])
def test_sixteen_kibibytes_and_what_they_give(warps: int, loads: int) -> None:
    (row,) = (r for r in READS if (r["width"], r["unroll"], r["warps_per_sm"]) == (16, loads, warps))
    found = curve.predict(16, loads, warps)
    assert found.requested_bytes_per_sm == 16_384
    cells = (f"{found.in_flight_bytes_per_sm:,.0f}", f"{found.load_gbs / 1000:.2f}", f"{row['GBps'] / 1000:.2f}")
    assert f"| {warps} | {loads} | {' | '.join(cells)} |" in PAGE


def test_errors_by_width() -> None:
    known = {
        f"{width} bytes": [
            curve.predict(width, r["unroll"], r["warps_per_sm"]).load_gbs / r["GBps"] - 1
            for r in READS
            if r["width"] == width
        ]
        for width in (4, 16)
    }
    kept_back = [row for row in curve.read_measured_reads() if row["width_bytes"] == 8]
    known["8 bytes, measured after the prediction"] = [
        curve.predict(8, int(r["loads"]), int(r["threads"] * r["blocks_per_sm"] / 32)).load_gbs / r["gbs"] - 1
        for r in kept_back
    ]
    for name, errors in known.items():
        median, worst = float(np.median(np.abs(errors))), max(map(abs, errors))
        assert f"| {name} | {len(errors)} | {100 * median:.1f} % | {100 * worst:.1f} % |" in PAGE


def test_ridges_of_every_data_type_and_level() -> None:
    roofline = draw_roofline(load_device("h200"))
    for name, _ in roofline.peaks_gflops:
        ridges = (f"{roofline.ridge(name, level):.3g}" for level in Level)
        assert f"| {name} | {' | '.join(ridges)} |" in PAGE
