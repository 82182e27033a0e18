"""Turns the wrong accesses of a launch into findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.machine.execution import Certainty

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.machine.execution import FaultKind
    from sectorwise.model.kernel_model import KernelModel


def report_faults(model: KernelModel, kind: FaultKind, code: str, advice: str) -> Iterator[Finding]:
    """One finding for each instruction with faults of this kind."""
    for fault in model.execution.faults:
        if fault.kind is kind:
            lanes = "1 lane" if fault.occurrences == 1 else f"{fault.occurrences:,} lanes"
            where = f"block {fault.block}, warp {fault.warp}, lane {fault.lane}"
            yield Finding(
                code=code,
                severity=Severity.ERROR if fault.certainty is Certainty.EXACT else Severity.WARNING,
                message=f"access of {fault.width_bytes} B: {fault.message}; {lanes}, first {where}",
                advice=advice,
                instructions=(fault.instruction,),
                evidence=Evidence("faulting lanes", fault.occurrences, 0),
            )
