"""Turns scattered global accesses into the same launch with threadIdx.x and threadIdx.y in each other's place."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.signatures import find_kernel_text
from sectorwise.remedies.workshop import Change, Gain, Refusal, find_helped, make_remedy, prove, waste_sectors
from sectorwise.rules.requests import SECTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

CODES: Final = frozenset({"SW101", "SW105", "SW106"})

_AXIS: Final = re.compile(r"\b(threadIdx|blockDim)\s*\.\s*([xy])\b")


def find_other_axes(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for each finding that it helps; none where other axes change a value or move no fewer sectors."""
    codes = {finding.code for finding in findings} & CODES
    before = original.totals.l2_theoretical_sectors
    kernel = find_kernel_text(workshop.text, workshop.launch)
    if not codes or not before or kernel is None:
        return {}
    first, last = kernel.start, kernel.end
    text = workshop.text[:first] + _swap(workshop.text[first:last]) + workshop.text[last:]
    if text == workshop.text:
        return {}
    x, y, z = workshop.launch.block
    launch = replace(workshop.launch, block=(y, x, z))
    block = f", and launch blocks of ({y}, {x})" if x != y else ""
    change = Change(
        title=f"let threadIdx.x and threadIdx.y change places{block}",
        code="// threadIdx.y, blockDim.y for threadIdx.x, blockDim.x in the kernel, and the other way round",
        text=text,
        launch=launch,
    )

    def saves_sectors(model: KernelModel) -> bool:
        sectors = model.totals.l2_theoretical_sectors
        return sectors is not None and sectors < before

    outcome = prove(workshop, change, original, saves_sectors)
    if isinstance(outcome, Refusal):
        return {}
    after = outcome.model.totals.l2_theoretical_sectors
    if after is None:
        return {}
    remedy = make_remedy(workshop, original, change, Gain(SECTORS, before, after))
    return dict.fromkeys(find_helped(findings, codes, original, outcome.model, waste_sectors), (remedy,))


def _swap(text: str) -> str:
    return _AXIS.sub(lambda found: f"{found[1]}.{'y' if found[2] == 'x' else 'x'}", text)
