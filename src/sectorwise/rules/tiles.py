"""Turns a kernel model into whether the kernel stages tiles in shared memory and computes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    from sectorwise.model.kernel_model import KernelModel

_LEAST_OPERATIONS: Final = 10_000_000
_READS: Final = frozenset({Operation.LOAD, Operation.MATRIX_LOAD})


def find_tiled(model: KernelModel) -> bool:
    """Whether shared memory is read, block barriers are passed, and there is arithmetic worth a tile."""
    reads = any(site.access.space is Space.SHARED and site.access.operation in _READS for site in model.execution.sites)
    barriers = any(
        instruction.opcode == "BAR" and model.execution.issued[instruction.index]
        for instruction in model.bound.kernel.instructions
    )
    return reads and barriers and model.pace.kernel_roofline.operations >= _LEAST_OPERATIONS
