"""What changes where tiles are copied in longer rows: sectors, and the part of the time that they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from sectorwise.analysis.causes import Cause
from sectorwise.analysis.comparison import compare_analyses
from sectorwise.analyze import analyze

SOURCE = Path(__file__).parents[1] / "measured" / "tiles" / "tensor_copies.sm_90.cubin"
ROWS = "tensor_map(u32[2048, 2048], box={}), 4096, 0, 0, 0, 0, 0, {}, {}"


def test_longer_rows_move_fewer_sectors() -> None:
    short = analyze(SOURCE, f"store_2<<<(512, 8), 128, 5120>>>({ROWS.format('(4, 256)', 4, 256)})", follow_caches=True)
    long = analyze(SOURCE, f"store_2<<<(64, 64), 128, 5120>>>({ROWS.format('(32, 32)', 32, 32)})", follow_caches=True)
    (kernel,) = compare_analyses(short, long).kernels
    numbers = {each.name: (each.before, each.after) for each in kernel.numbers}
    assert numbers["bulk copies"] == (4096, 4096)
    assert numbers["bulk copies, sectors"] == (1 << 20, 1 << 19)
    assert numbers["bulk copies, sectors, ideal"] == (1 << 19, 1 << 19)
    causes = {each.cause: each for each in kernel.causes}
    assert (causes[Cause.SECTORS].amount_before, causes[Cause.SECTORS].amount_after) == (1 << 19, 0)
    assert kernel.estimate_ns_before is not None
    assert kernel.estimate_ns_after is not None
    changes = sum((each.ns_after or 0) - (each.ns_before or 0) for each in kernel.causes)
    assert changes == pytest.approx(kernel.estimate_ns_after - kernel.estimate_ns_before)
    assert kernel.estimate_ns_before > kernel.estimate_ns_after
