"""Turns the code of a kernel into which of its requests a warp makes one after the other, waiting for none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.counting.request import Operation
from sectorwise.machine.forms import access_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.model.caches.lines import Lines

_WARP_BITS: Final = 16
_POSITION_BITS: Final = 32

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


def find_depths(instructions: Iterable[Instruction]) -> dict[int, int]:
    """How many requests of its warp go before each memory instruction, all issued without waiting for a load's data.

    What they bring is still on its way when the instruction asks for it. At a barrier a block's warps wait for what all
    of them asked for before. Code is taken as it stands: whether a branch leads around a wait does not matter.
    """
    depths: dict[int, int] = {}
    depth, awaited = 0, 0
    for each in instructions:
        if each.control.wait_mask & awaited or each.opcode == "BAR":
            depth, awaited = 0, 0
        access = access_of(each)
        if access is None:
            continue
        depths[each.index] = depth
        depth += 1
        if access.operation in _LOADS:
            awaited |= 1 << each.control.write_barrier
    return depths


def find_turns(lines: Lines, depths: Mapping[int, int]) -> npt.NDArray[np.int64]:
    """When a warp's turn comes to make each request: int64 [lines], the position of the first of its batch.

    A warp that waits for nothing in between makes all of a batch in one turn. Turns of a warp never go back, whatever
    its branches leave out.
    """
    table = np.zeros(1 + max(*depths, int(lines.instruction.max(initial=0)), 0), np.int64)
    table[list(depths)] = list(depths.values())
    order = np.lexsort((lines.position, lines.warp, lines.block))
    warp = (lines.block.astype(np.int64) << _WARP_BITS | lines.warp)[order]
    begins = np.maximum(0, lines.position - table[lines.instruction])[order]
    number = np.cumsum(np.diff(warp, prepend=-1) != 0) << _POSITION_BITS
    turns = np.empty(lines.line.size, np.int64)
    turns[order] = np.maximum.accumulate(number + begins) - number
    return turns
