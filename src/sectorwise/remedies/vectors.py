"""Turns each thread's run of narrow accesses into vectors, by telling the compiler how buffers are aligned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.remedies.signatures import find_kernel_text
from sectorwise.remedies.workshop import Change, Gain, Refusal, find_helped, make_remedy, prove, waste_sectors
from sectorwise.rules.requests import SECTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

_CODE: Final = "SW105"
_VECTOR_BYTES: Final = 16


def find_vectors(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for SW105: buffers that are promised to be aligned to 16 bytes, as all of cudaMalloc are."""
    before = original.totals.l2_theoretical_sectors
    kernel = find_kernel_text(workshop.text, workshop.launch)
    if not before or kernel is None or all(finding.code != _CODE for finding in findings):
        return {}
    promises = [
        f"{each.name} = static_cast<{each.pointee}*>(__builtin_assume_aligned({each.name}, {_VECTOR_BYTES}));"
        for each in kernel.parameters
        if each.pointee is not None
    ]
    if not promises:
        return {}
    # On one line with the brace: lines keep their numbers.
    text = f"{workshop.text[: kernel.start]} {' '.join(promises)}{workshop.text[kernel.start :]}"
    change = Change(
        title=f"promise the compiler that buffers are aligned to {_VECTOR_BYTES} B, so that it makes vectors of runs",
        code="\n".join(promises),
        text=text,
        launch=workshop.launch,
    )
    outcome = prove(workshop, change, original)
    if isinstance(outcome, Refusal):
        return {}
    after = outcome.model.totals.l2_theoretical_sectors
    if after is None or after >= before:
        return {}
    remedy = make_remedy(workshop, original, change, Gain(SECTORS, before, after))
    return dict.fromkeys(find_helped(findings, {_CODE}, original, outcome.model, waste_sectors), (remedy,))
