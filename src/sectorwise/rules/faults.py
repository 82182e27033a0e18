"""Turns the wrong accesses of a launch into findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.findings import Evidence, Finding, Severity
from sectorwise.machine.execution import Certainty

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from sectorwise.machine.execution import Fault, FaultKind
    from sectorwise.model.kernel_model import KernelModel


def report_faults(model: KernelModel, kind: FaultKind, code: str, advice: str) -> Iterator[Finding]:
    """One finding for each line with faults of this kind, as certain as each of them."""
    lines: dict[Hashable, list[Fault]] = {}
    for fault in model.execution.faults:
        if fault.kind is kind:
            instruction = model.bound.kernel.instructions[fault.instruction]
            lines.setdefault((instruction.location or instruction.index, fault.certainty), []).append(fault)
    for faults in lines.values():
        first, occurrences = faults[0], sum(fault.occurrences for fault in faults)
        lanes = "1 lane" if occurrences == 1 else f"{occurrences:,} lanes"
        of = f" of {len(faults)} instructions" if len(faults) > 1 else ""
        where = f"block {first.block}, warp {first.warp}, lane {first.lane}"
        yield Finding(
            code=code,
            severity=Severity.ERROR if first.certainty is Certainty.EXACT else Severity.WARNING,
            message=f"access of {first.width_bytes} B: {first.message}; {lanes}{of}, first {where}",
            advice=advice,
            instructions=tuple(fault.instruction for fault in faults),
            evidence=Evidence("faulting lanes", occurrences, 0),
        )
