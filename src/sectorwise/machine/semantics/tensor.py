"""Turns tensor-core opcodes into products of matrices; where a form is not computed, into results of its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import Register
from sectorwise.machine.algebra import MatrixForm
from sectorwise.machine.effects import result_words
from sectorwise.machine.operands import raw_words, unsupported, write_words

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.algebra import Value
    from sectorwise.machine.operands import Action
    from sectorwise.machine.port import Port

_SHAPES: dict[tuple[str, str], tuple[int, int]] = {
    ("HMMA", "16816"): (4, 2),
    ("HMMA", "1688"): (2, 1),
    ("HMMA", "1688.TF32"): (4, 2),
    ("HMMA", "1684.TF32"): (2, 1),
    ("IMMA", "8816"): (1, 1),
    ("IMMA", "16816"): (2, 1),
    ("IMMA", "16832"): (4, 2),
    ("DMMA", "8x8x4"): (2, 2),
    ("DMMA", "884"): (2, 2),
}
"""Words of A and of B by opcode and shape."""

_INPUTS = ("F16", "BF16", "TF32", "S8", "U8")


def multiply_matrices(instruction: Instruction) -> Action:
    """HMMA, IMMA, DMMA: D = A B + C. Floats are summed in another order than the hardware's, so they are inexact."""
    registers = [operand for operand in instruction.operands if isinstance(operand, Register)]
    if len(registers) < 4:
        raise unsupported(instruction, "four registers are expected")
    form = _form(instruction)
    count = result_words(instruction)
    sizes = None if form is None else _SHAPES.get((instruction.opcode, _shape(instruction)))
    write = write_words(registers[0], count)
    if form is None or sizes is None:
        return lambda port: _write_unknown(port, instruction, count)
    a, b = (raw_words(register, size) for register, size in zip(registers[1:3], sizes, strict=True))
    c = raw_words(registers[3], count)
    exact = form.accumulator == "S32"

    def run(port: Port[Value]) -> None:
        left, right, addend = ([read(port) for read in readers] for readers in (a, b, c))
        if not exact:
            port.mark_inexact()
        write(port, list(port.algebra.multiply_matrices(left, right, addend, form)))

    return run


def _shape(instruction: Instruction) -> str:
    shape = next((name for name in instruction.modifiers if name[0].isdigit()), "")
    return f"{shape}.TF32" if instruction.has("TF32") else shape


def _form(instruction: Instruction) -> MatrixForm | None:
    """The formats of a product, None where they are not computed (4-bit and 1-bit integers, sparse matrices)."""
    modifiers = instruction.modifiers
    if any(name in ("SP", "S4", "U4", "B1", "XOR", "AND", "E4M3", "E5M2") for name in modifiers):
        return None
    inputs = [name for name in modifiers if name in _INPUTS]
    match instruction.opcode:
        case "DMMA":
            return MatrixForm("F64", "F64", "F64")
        case "IMMA" if len(inputs) == 2:
            return MatrixForm(inputs[0], inputs[1], "S32", saturates=instruction.has("SAT"))
        case "HMMA":
            kind = next((name for name in inputs if name in ("BF16", "TF32")), "F16")
            return MatrixForm(kind, kind, "F32" if instruction.has("F32") else "F16")
        case _:
            return None


def _write_unknown(port: Port[Value], instruction: Instruction, count: int) -> None:
    port.mark_unknown("this tensor-core product is not computed")
    write_words(instruction.operands[0], count)(port, [port.algebra.word(0)] * count)
