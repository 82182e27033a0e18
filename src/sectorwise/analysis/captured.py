"""Turns nothing by itself: what is known of the launches that were captured from Python code."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis


@dataclass(frozen=True, slots=True)
class CapturedLaunch:
    """A launch that was met: its analysis, or why there is none."""

    kernel: str
    analysis: Analysis | None
    because: str | None = None


@dataclass(frozen=True, slots=True)
class Captured:
    """What was met so far: launches in their order, those that came again alike once; and what was replaced.

    `repeats` has for each launch how often it came again, with the same shapes, types and numbers. `passed_over` counts
    the operations on tensors for which PyTorch would have run kernels of its own: they ran on the CPU, not analysed.
    """

    device: str
    replaced: tuple[str, ...]
    launches: list[CapturedLaunch] = field(default_factory=list)
    repeats: list[int] = field(default_factory=list)
    passed_over: Counter[str] = field(default_factory=Counter)

    @property
    def analysis(self) -> Analysis | None:
        """All analysed launches in one document, None where there is none."""
        found = [launch.analysis for launch in self.launches if launch.analysis is not None]
        if not found:
            return None
        texts = {name: text for each in found for name, text in each.source_texts.items()}
        kernels = tuple(kernel for each in found for kernel in each.kernels)
        return replace(found[0], kernels=kernels, source_texts=texts)
