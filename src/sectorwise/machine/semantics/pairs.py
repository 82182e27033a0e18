"""Turns arithmetic on pairs of singles (FADD2, FMUL2, FFMA2), and of singles with halves (FHADD, FHFMA), into lanes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from sectorwise.binary.ir import ZERO_REGISTER, Register
from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.operands import unsupported, write_word
from sectorwise.machine.semantics.floats import finish_single, read_single, rounding_of
from sectorwise.machine.semantics.half import format_of, read_half

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction, Operand
    from sectorwise.machine.algebra import Algebra, Value
    from sectorwise.machine.operands import Action, Reader
    from sectorwise.machine.port import Port

Compute = Callable[["Algebra[Value]", "list[Value]", Rounding, bool], "Value"]


def _halves_of_pair(operand: Operand, instruction: Instruction) -> tuple[Reader, Reader]:
    """Readers of the two singles of a register pair; `HI_LO` says that both are taken in order."""
    if not isinstance(operand, Register):
        raise unsupported(instruction, "a register pair is expected")
    plain = [name for name in operand.suffixes if name not in ("F32x2", "HI_LO", "64")]
    if plain:
        raise unsupported(instruction, f"the selection {plain[0]} is not known")
    step = 0 if operand.index == ZERO_REGISTER else 1
    low, high = replace(operand, suffixes=()), replace(operand, index=operand.index + step, suffixes=())
    return read_single(low, instruction), read_single(high, instruction)


def _on_pairs(instruction: Instruction, compute: Compute) -> Action:
    destination, *operands = instruction.operands
    pairs = [_halves_of_pair(operand, instruction) for operand in operands]
    lows, highs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    write_low, write_high = write_word(destination), write_word(destination, 1)
    finish, rounding, flushes = finish_single(instruction), rounding_of(instruction), instruction.has("FTZ")

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        low = compute(algebra, [read(port) for read in lows], rounding, flushes)
        high = compute(algebra, [read(port) for read in highs], rounding, flushes)
        write_low(port, finish(algebra, low))
        write_high(port, finish(algebra, high))

    return run


def add(instruction: Instruction) -> Action:
    """FADD2: two sums."""
    return _on_pairs(
        instruction, lambda algebra, values, rounding, _: algebra.float_add(values[0], values[1], rounding)
    )


def multiply(instruction: Instruction) -> Action:
    """FMUL2: two products."""
    return _on_pairs(
        instruction,
        lambda algebra, values, rounding, flush: algebra.float_multiply(values[0], values[1], rounding, flush=flush),
    )


def multiply_add(instruction: Instruction) -> Action:
    """FFMA2: two fused multiply-adds."""
    return _on_pairs(
        instruction,
        lambda algebra, values, rounding, flush: algebra.float_fma(
            values[0], values[1], values[2], rounding, flush=flush
        ),
    )


def add_half(instruction: Instruction) -> Action:
    """FHADD: a half, or with BF16 a bfloat16, plus a single."""
    destination, a, b = instruction.operands
    kind = format_of(instruction)
    half, single, write = read_half(a, kind, instruction), read_single(b, instruction), write_word(destination)
    finish, rounding = finish_single(instruction), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        wide = algebra.convert_float(half(port), Float.F32, Rounding.NEAREST)
        write(port, finish(algebra, algebra.float_add(wide, single(port), rounding)))

    return run


def multiply_add_halves(instruction: Instruction) -> Action:
    """FHFMA: the product of two halves, or with BF16 of two bfloat16s, plus a single."""
    destination, a, b, c = instruction.operands
    kind = format_of(instruction)
    first, second = read_half(a, kind, instruction), read_half(b, kind, instruction)
    single, write = read_single(c, instruction), write_word(destination)
    finish, rounding = finish_single(instruction), rounding_of(instruction)

    def run(port: Port[Value]) -> None:
        algebra = port.algebra
        x, y = (algebra.convert_float(read(port), Float.F32, Rounding.NEAREST) for read in (first, second))
        write(port, finish(algebra, algebra.float_fma(x, y, single(port), rounding)))

    return run
