"""Whatever operands an opcode comes with, it decodes to an action or to the reason why there is none."""

from __future__ import annotations

import pytest

from sectorwise.machine.program import ASYNCHRONOUS, HINTS, INLINE_CONTROL, TERMINATORS, make_step
from sectorwise.machine.semantics.table import SEMANTICS
from tests.machine.lanes import instruction

OPERANDS = (
    "",
    " R2",
    " P0",
    " 0x4",
    " [R2]",
    " c[0x0][0x10]",
    " R2, R4",
    " P0, P1",
    " [R2], R4",
    " R2, [R4]",
    " R2, P0, R4",
    " P0, R2, R4, R6, R8, R10, P1, P2",
    " UR4, UP0, UR6",
    " R2, 1.5, -QNAN",
    " desc[UR4][R2.64], tmem[UR4], gdesc[UR6]",
    " B0, `(.L_x_1)",
)


@pytest.mark.parametrize("opcode", sorted({*SEMANTICS, *TERMINATORS, *ASYNCHRONOUS, *INLINE_CONTROL, *HINTS}))
def test_strange_operands_do_not_crash(opcode: str) -> None:
    for operands in OPERANDS:
        for modifiers in ("", ".E.64", ".F32.FTZ", ".X.WIDE"):
            step = make_step(instruction(opcode + modifiers + operands))
            engine = opcode in TERMINATORS or opcode in INLINE_CONTROL
            assert engine or (step.action is None) == bool(step.unknown_because), step.instruction.text
