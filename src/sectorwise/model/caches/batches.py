"""Turns the code of a kernel into how many requests before it each memory instruction shares its wait with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation
from sectorwise.machine.forms import access_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.binary.ir import Instruction

_LOADS: Final = frozenset({Operation.LOAD, Operation.ASYNC_COPY})


def find_depths(instructions: Iterable[Instruction]) -> dict[int, int]:
    """How many requests of its warp go before each memory instruction, all issued without waiting for a load's data.

    What they bring is still on its way when the instruction asks for it. Code is taken as it stands: whether a branch
    leads around a wait does not matter.
    """
    depths: dict[int, int] = {}
    depth, awaited = 0, 0
    for each in instructions:
        if each.control.wait_mask & awaited:
            depth, awaited = 0, 0
        access = access_of(each)
        if access is None:
            continue
        depths[each.index] = depth
        depth += 1
        if access.operation in _LOADS:
            awaited |= 1 << each.control.write_barrier
    return depths
