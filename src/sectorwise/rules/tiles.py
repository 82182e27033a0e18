"""Turns a kernel model into whether the kernel stages tiles in shared memory and computes with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space

if TYPE_CHECKING:
    from sectorwise.model.kernel_model import KernelModel

_LEAST_OPERATIONS: Final = 10_000_000
_STAGED: Final = 0.25
"""The part of the loaded bytes that go to shared memory, at least."""


def find_tiled(model: KernelModel, least_uses: int = 1) -> bool:
    """Whether what is loaded is staged in shared memory and used from there, with arithmetic worth a tile.

    A reduction, which passes a few sums through shared memory, has no tile; a scan, which works there, stores as often
    as it loads, and has none of `least_uses`. Matrix loads are a tile's, however often.
    """
    barriers = any(
        instruction.opcode == "BAR" and model.execution.issued[instruction.index]
        for instruction in model.bound.kernel.instructions
    )
    return barriers and _stages_tiles(model, least_uses) and model.pace.kernel_roofline.operations >= _LEAST_OPERATIONS


def _stages_tiles(model: KernelModel, least_uses: int) -> bool:
    loaded_bytes = staged_bytes = read_bytes = 0
    for site in model.execution.sites:
        size_bytes = site.lanes * site.access.width_bytes
        match site.access.space, site.access.operation:
            case _, Operation.MATRIX_LOAD:
                return True
            case _, Operation.ASYNC_COPY:
                loaded_bytes += size_bytes
                staged_bytes += size_bytes
            case Space.SHARED, Operation.STORE:
                staged_bytes += size_bytes
            case Space.SHARED, Operation.LOAD:
                read_bytes += size_bytes
            case Space.GLOBAL, Operation.LOAD:
                loaded_bytes += size_bytes
    return staged_bytes >= _STAGED * loaded_bytes and read_bytes >= least_uses * staged_bytes
