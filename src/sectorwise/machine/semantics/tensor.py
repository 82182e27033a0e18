"""Turns tensor-core opcodes into results of the right shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Register
from sectorwise.machine.effects import result_words
from sectorwise.machine.operands import unsupported, write_words

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port


def multiply_matrices(instruction: Instruction) -> Action:
    """HMMA, IMMA, DMMA, BMMA: the accumulator's registers are written; their values are not computed."""
    destination = instruction.operands[0]
    if not isinstance(destination, Register):
        raise unsupported(instruction, "a register is expected first")
    count = result_words(instruction)
    write = write_words(destination, count)

    def run(port: Port[Value]) -> None:
        port.mark_unknown("tensor-core results are not computed")
        write(port, [port.algebra.word(0)] * count)

    return run
