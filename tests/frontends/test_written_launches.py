"""Turns launches of sources into launch files, and those back into the same counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from tools.write_launches import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", ["triton/vector_add.py", "cupy/kernels.py"])
def test_written_launches_count_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setattr(sys, "argv", ["write_launches", str(EXAMPLES / file), "-o", str(tmp_path)])
    main()
    whole = [kernel.totals for kernel in analyze(EXAMPLES / file, device="h200").kernels]
    written = sorted(tmp_path.glob("*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    assert len(written) == len(whole)
    for path, totals in zip(written, whole, strict=True):
        (kernel,) = analyze(path.with_suffix(".cubin"), path, device="h200").kernels
        assert kernel.totals == totals


def test_written_launches_of_cuda_count_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = EXAMPLES / "transpose.cu"
    monkeypatch.setattr(sys, "argv", ["write_launches", str(source), "-o", str(tmp_path)])
    main()
    written = analyze(tmp_path / "transpose.sm_90.cubin", tmp_path / "transpose.json", device="h200").kernels
    whole = analyze(source, device="h200").kernels
    assert [kernel.name for kernel in written] == [kernel.name for kernel in whole]
    for one, other in zip(written, whole, strict=True):
        assert one.totals.l2_theoretical_sectors == other.totals.l2_theoretical_sectors
        assert one.totals.shared_wavefronts == other.totals.shared_wavefronts
