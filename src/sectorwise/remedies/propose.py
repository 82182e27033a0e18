"""Turns the findings of a launch into the same findings with remedies, where changes of the source were proven."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sectorwise.remedies.axes import find_other_axes
from sectorwise.remedies.records import find_aligned_records
from sectorwise.remedies.shared import find_layouts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Finding
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop


def propose(workshop: Workshop, original: KernelModel, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings in their order; each remedy was compiled and executed, and changed no bit of any buffer.

    A launch with wrong accesses, or of which not all is known, has none: there is nothing to be equal to.
    """
    if original.execution.faults or original.execution.limitations:
        return tuple(findings)
    found = find_layouts(workshop, original, findings)
    found |= find_other_axes(workshop, original, findings)
    found |= find_aligned_records(workshop, original, findings)
    return tuple(
        replace(finding, remedies=found[finding.code]) if finding.code in found else finding for finding in findings
    )
