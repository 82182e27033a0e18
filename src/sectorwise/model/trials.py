"""Turns a kernel compiled under a register limit into what the limit bought and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.model.occupancy import Occupancy
    from sectorwise.model.totals import Totals


@dataclass(frozen=True, slots=True)
class RegisterTrial:
    """A kernel compiled with at most `limit` registers a thread, or so that `min_blocks` fit an SM; None: not asked.

    `local_loads` and `local_stores` are the instructions in the code that access local memory, spills among them.
    `totals` are the counts of a launch, None where none was executed.
    """

    limit: int | None
    min_blocks: int | None
    kernel: str
    registers_per_thread: int
    local_bytes_per_thread: int
    local_loads: int
    local_stores: int
    occupancy: Occupancy
    totals: Totals | None

    @property
    def ignored(self) -> bool:
        """Whether the compiler used more registers than that: bounds of the source come first, or too few are left."""
        if self.min_blocks is not None:
            held = self.occupancy
            return min(held.limit_registers, held.limit_warps, held.limit_blocks) < self.min_blocks
        return self.limit is not None and self.registers_per_thread > self.limit


def describe_trial(
    kernel: Kernel, occupancy: Occupancy, totals: Totals | None, *, limit: int | None, min_blocks: int | None = None
) -> RegisterTrial:
    """What a compiled kernel says of its registers and spills, beside its occupancy and counts."""
    opcodes = [instruction.opcode for instruction in kernel.instructions]
    return RegisterTrial(
        limit=limit,
        min_blocks=min_blocks,
        kernel=kernel.readable_name or kernel.name,
        registers_per_thread=kernel.resources.registers_per_thread,
        local_bytes_per_thread=kernel.resources.local_bytes_per_thread,
        local_loads=opcodes.count("LDL"),
        local_stores=opcodes.count("STL"),
        occupancy=occupancy,
        totals=totals,
    )
