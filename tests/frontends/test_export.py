"""Turns launches of Python kernels into launch files, and those back into the same counts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sectorwise.analyze import analyze
from tools.export_launches import main

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", ["triton/vector_add.py", "cupy/kernels.py"])
def test_exported_launches_count_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setattr(sys, "argv", ["export_launches", str(EXAMPLES / file), "-o", str(tmp_path)])
    main()
    whole = [kernel.totals for kernel in analyze(EXAMPLES / file, device="h200").kernels]
    exported = sorted(tmp_path.glob("*.json"), key=lambda path: int(path.stem.rpartition("_")[2]))
    assert len(exported) == len(whole)
    for path, totals in zip(exported, whole, strict=True):
        (kernel,) = analyze(path.with_suffix(".cubin"), path, device="h200").kernels
        assert kernel.totals == totals
