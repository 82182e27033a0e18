"""Turns the compiler's sequences for division and square roots into the seeds whose last bits do not matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sectorwise.binary.ir import FloatImmediate, Immediate, Register, Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.binary.ir import Instruction, Kernel

_ROUNDED = re.compile(r"__cuda_sm\d+x?_(div|rcp|dblrcp|sqrt|dsqrt)_r[nzud]_")
"""The compiler's functions for correctly rounded quotients and roots: `$__internal_0_$__cuda_sm20_div_rn_f64_full`."""


def names_rounding(name: str) -> bool:
    """Whether a function of this name is the compiler's own for correctly rounded quotients or roots."""
    return _ROUNDED.search(name) is not None


def find_trusted_seeds(kernel: Kernel) -> frozenset[int]:
    """MUFU instructions whose result is refined so far that no error of it is left.

    These begin integer divisions, and quotients, reciprocals and square roots that are rounded correctly (CUDA C++
    Programming Guide, Floating-Point Standard): the result is the same for any approximation that is as good as the
    hardware's.
    """
    return find_division_seeds(kernel) | _find_rounded_seeds(kernel)


def _find_rounded_seeds(kernel: Kernel) -> frozenset[int]:
    """All within the compiler's own functions, and before a call of one those that begin an iteration as it has it."""
    instructions = kernel.instructions
    called = {name for instruction in instructions for name in _called_names(instruction)}
    roots = any(match[1] in ("sqrt", "dsqrt") for match in map(_ROUNDED.search, called) if match)
    quotients = any(match[1] in ("div", "rcp", "dblrcp") for match in map(_ROUNDED.search, called) if match)
    # The reciprocal root of a double looks alike, and is not rounded correctly.
    roots64 = roots and not any("drsqrt" in name for name in called)
    starts = sorted(kernel.functions.items(), key=lambda item: item[1])
    bounds = [*(offset for _, offset in starts), instructions[-1].offset + 1 if instructions else 0]
    inside = [(start, end) for (name, start), end in zip(starts, bounds[1:], strict=True) if _ROUNDED.search(name)]
    seeds: set[int] = set()
    for at, instruction in enumerate(instructions):
        if instruction.opcode != "MUFU":
            continue
        wanted = roots if instruction.has("RSQ") else roots64 if instruction.has("RSQ64H") else quotients
        refined = wanted and _is_refined(instructions, at)
        if refined or any(start <= instruction.offset < end for start, end in inside):
            seeds.add(at)
    return frozenset(seeds)


def _called_names(instruction: Instruction) -> Iterator[str]:
    if instruction.opcode == "CALL":
        for operand in instruction.operands:
            if isinstance(operand, Target) and operand.symbol:
                yield operand.symbol


def _is_refined(instructions: tuple[Instruction, ...], at: int) -> bool:
    """Whether the first step of Newton's iteration follows: 1 - b y for a quotient, y / 2 or y y for a root."""
    seed = instructions[at]
    target = seed.operands[0]
    if not isinstance(target, Register):
        return False
    # The pair of a double begins at the word before its upper one.
    y = target.index - 1 if seed.has("RCP64H") or seed.has("RSQ64H") else target.index
    for instruction in instructions[at + 1 : at + 1 + _REACH]:
        reads = [o.index for o in instruction.operands[1:] if isinstance(o, Register) and not o.uniform]
        values = {abs(value) for value in map(_number, instruction.operands[1:]) if value is not None}
        if y not in reads:
            continue
        if seed.has("RCP") or seed.has("RCP64H"):
            found = instruction.opcode in ("FFMA", "DFMA") and 1.0 in values
        elif seed.has("RSQ"):
            found = instruction.opcode == "FMUL" and 0.5 in values
        else:
            found = instruction.opcode == "DMUL" and reads.count(y) > 1
        if found:
            return True
    return False


def _number(operand: object) -> float | None:
    match operand:
        case FloatImmediate():
            return float(operand.value)
        case Immediate():
            return float(operand.value)
        case _:
            return None


def find_division_seeds(kernel: Kernel) -> frozenset[int]:
    """MUFU.RCP instructions that begin the compiler's integer division.

    Its sequence (convert rounding up, reciprocal, add 0x0ffffffe to the bits, convert back, then integer corrections)
    gives the exact quotient for any reciprocal within the hardware's error bound, so nothing inexact comes out of it.
    """
    seeds: set[int] = set()
    instructions = kernel.instructions
    for at, instruction in enumerate(instructions):
        if instruction.opcode != "MUFU" or not instruction.has("RCP"):
            continue
        target, source = instruction.operands[0], instruction.operands[-1]
        if not isinstance(target, Register) or not isinstance(source, Register):
            continue
        before = _last_writer(instructions, at, source)
        rounds_up = before is not None and before.opcode in ("I2F", "UI2F") and before.has("RP")
        if rounds_up and _is_biased(instructions, at, target):
            seeds.add(at)
    return frozenset(seeds)


_BIASES = frozenset({0x0FFFFFFE, 0x1FFFFFFE})
_REACH = 40


def _last_writer(instructions: tuple[Instruction, ...], at: int, source: Register) -> Instruction | None:
    for instruction in reversed(instructions[max(0, at - _REACH) : at]):
        first = instruction.operands[0] if instruction.operands else None
        if isinstance(first, Register) and (first.index, first.uniform) == (source.index, source.uniform):
            return instruction
    return None


def _is_biased(instructions: tuple[Instruction, ...], at: int, register: Register) -> bool:
    for instruction in instructions[at + 1 : at + 1 + _REACH]:
        reads = [o.index for o in instruction.operands[1:] if isinstance(o, Register) and not o.uniform]
        if register.index in reads:
            values = {getattr(operand, "value", None) for operand in instruction.operands}
            return instruction.opcode in ("IADD3", "VIADD", "IADD") and bool(values & _BIASES)
        first = instruction.operands[0] if instruction.operands else None
        if isinstance(first, Register) and first.index == register.index and not first.uniform:
            return False
    return False
