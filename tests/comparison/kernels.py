"""The example's three transposes, analysed once, and a kernel that spills under a register limit."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis, KernelAnalysis

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "transpose.cu"


@cache
def analyze_example() -> Analysis:
    return analyze(EXAMPLE, follow_caches=True)


def find_kernel(name: str) -> KernelAnalysis:
    return next(kernel for kernel in analyze_example().kernels if kernel.name == name)
