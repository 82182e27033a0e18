"""Turns the findings of a launch into the same findings with remedies, where changes of the source were proven."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.axes import find_other_axes
from sectorwise.remedies.loops import find_unrolling
from sectorwise.remedies.records import find_aligned_records
from sectorwise.remedies.rows import find_staged_rows
from sectorwise.remedies.shared import find_layouts
from sectorwise.remedies.staging import find_staging
from sectorwise.remedies.vectors import find_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

_FINDERS: Final = (
    find_layouts,
    find_staging,
    find_staged_rows,
    find_other_axes,
    find_aligned_records,
    find_vectors,
    find_unrolling,
)
"""Each gives remedies by the place of the finding that they are for, in the sequence of all findings."""


def propose(workshop: Workshop, original: KernelModel, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; each remedy was compiled and executed, and changed no bit of any buffer.

    A launch with wrong accesses, that hangs, or of which not all is known, has none: there is nothing to be equal to.
    """
    if original.execution.faults or original.execution.limitations or original.execution.hangs:
        return tuple(findings)
    found: list[tuple[Remedy, ...]] = [()] * len(findings)
    for find in _FINDERS:
        for place, remedies in find(workshop, original, findings).items():
            found[place] = (*found[place], *remedies)
    return tuple(replace(finding, remedies=remedies) for finding, remedies in zip(findings, found, strict=True))
