"""Turns products of warpgroups, whose operands tensor cores read of shared memory by themselves, into sites.

Where the operands lie, and how, is in descriptors, which are not followed; but neither does the profiler's source view
look at them: it counts the passes that the operands' bytes take if they lie without conflicts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.binary.ir import Handle
from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine.execution import Certainty, Site
from sectorwise.machine.sites import judge_doubts

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction, Kernel

PRODUCTS: Final = frozenset(("HGMMA", "IGMMA", "QGMMA", "BGMMA"))
"""Products of a warpgroup of four warps; A may be in registers, B is in shared memory."""

_SHAPE: Final = re.compile(r"(\d+)x(\d+)x(\d+)")
_DEPTH_BYTES: Final = 32
"""Of a row of A and of a column of B, whatever the elements are; of B twice that where A is sparse."""

_PASS_BYTES: Final = 128
_WARPS: Final = 4


def list_product_sites(
    kernel: Kernel, issued: npt.NDArray[np.int64], doubts: Mapping[int, int], *, is_sampled: bool
) -> list[Site]:
    """The sites of the products that warps issued.

    `issued` is how often, `doubts` all that was uncertain about the way there, by index of the instruction.
    """
    found = []
    for instruction in kernel.instructions:
        executed = int(issued[instruction.index])
        access = product_access_of(instruction)
        if not executed or access is None:
            continue
        passes = executed * count_operand_bytes(instruction) // (_WARPS * _PASS_BYTES)
        certainty = judge_doubts(doubts.get(instruction.index, 0))
        if certainty is Certainty.EXACT and instruction.has("SP"):  # not measured
            certainty = Certainty.MODELLED
        elif is_sampled:
            certainty = Certainty.SAMPLED
        found.append(Site(instruction.index, access, executed, 32 * executed, 0, 0, 0, passes, passes, 0, 0, certainty))
    return found


def product_access_of(instruction: Instruction) -> Access | None:
    """The access of a product, None for other instructions: its width is the lane's share of what it reads."""
    read_bytes = count_operand_bytes(instruction)
    if not read_bytes:
        return None
    width_bytes = read_bytes // (_WARPS * 32)
    return Access(Space.SHARED, Operation.MATRIX_LOAD, width_bytes, instruction.opcode, instruction.modifiers)


def count_operand_bytes(instruction: Instruction) -> int:
    """Return the bytes of shared memory that a product reads for its four warps, 0 for other instructions.

    `HGMMA.64x128x16.F32 R24, gdesc[UR8], R24` has both operands there, `R24, R88, gdesc[UR8], R24` the second alone.
    """
    shape = next((found for name in instruction.modifiers if (found := _SHAPE.fullmatch(name))), None)
    if instruction.opcode not in PRODUCTS or shape is None:
        return 0
    rows, columns = int(shape[1]), int(shape[2])
    in_shared = len(instruction.operands) > 1 and isinstance(instruction.operands[1], Handle)
    column_bytes = (2 if instruction.has("SP") else 1) * _DEPTH_BYTES
    return column_bytes * columns + (_DEPTH_BYTES * rows if in_shared else 0)
