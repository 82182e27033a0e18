"""Turns a kernel and its issue counts into segments, each a loop's own body or what runs once, and their passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.model.schedule import find_spans

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sectorwise.binary.ir import Instruction, Kernel

SELDOM: Final = 0.5
"""An instruction that fewer passes issue is no part of the warp's usual way."""


class Segment(Struct, frozen=True):
    """Instructions that a warp issues one after the other `passes` times, inner loops left out.

    `weights` are how many warps issue each, a pass and warp: less than 1 where lanes part ways.
    """

    instructions: tuple[Instruction, ...]
    weights: tuple[float, ...]
    passes: float
    repeats: bool


def split_segments(kernel: Kernel, issued: Sequence[int], warps: int) -> tuple[Segment, ...]:
    """The loops of a kernel and the code outside of them, in the order of the code; `warps` are those of the launch."""
    code = kernel.instructions
    spans = sorted(
        (span for span in find_spans(code) if issued[code[span[1]].index]), key=lambda span: span[1] - span[0]
    )
    owner: dict[int, int] = {}
    for number, (first, last) in enumerate(spans):
        for place in range(first, last + 1):
            owner.setdefault(place, number)
    grouped: dict[int, list[Instruction]] = {}
    for place, instruction in enumerate(code):
        if issued[instruction.index]:
            grouped.setdefault(owner.get(place, -1), []).append(instruction)
    return tuple(
        _make_segment(
            group,
            issued,
            warps,
            max(1.0, issued[code[spans[number][1]].index] / warps) if number >= 0 else 1.0,
            repeats=number >= 0,
        )
        for number, group in sorted(grouped.items(), key=lambda item: item[1][0].index)
    )


def _make_segment(
    group: list[Instruction], issued: Sequence[int], warps: int, passes: float, *, repeats: bool
) -> Segment:
    weights = tuple(issued[each.index] / warps / passes for each in group)
    return Segment(tuple(group), weights, passes, repeats)


def list_usual(segment: Segment) -> tuple[Instruction, ...]:
    """The instructions that most passes issue."""
    pairs = zip(segment.instructions, segment.weights, strict=True)
    return tuple(instruction for instruction, weight in pairs if weight >= SELDOM)


_PIPES: Final[Mapping[str, frozenset[str]]] = {
    "fp32": frozenset({"FADD", "FMUL", "FFMA", "HADD2", "HMUL2", "HFMA2"}),
    "fp64": frozenset({"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}),
    "special": frozenset({"MUFU", "F2F", "F2I", "I2F", "POPC", "FLO", "BREV", "FRND"}),
    "int": frozenset(
        {
            "IADD3", "IADD", "LOP3", "SHF", "LEA", "ISETP", "FSETP", "IMNMX", "VIMNMX", "FMNMX", "SEL",
            "FSEL", "PRMT", "VIADD", "VIADDMNMX", "VIMNMX3",
            "PLOP3", "IABS", "F2FP", "IDP", "I2FP", "HSETP2", "HMNMX2", "SGXT", "BMSK",
        }
    ),
    "multiply": frozenset({"IMAD", "IMUL"}),
    "memory": frozenset(
        {
            "LDG", "STG", "LDS", "STS", "LDL", "STL", "LD", "ST", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "LDSM",
            "STSM", "LDGSTS", "SHFL", "LDC",
        }
    ),
}  # fmt: skip


def name_pipe(opcode: str) -> str | None:
    """The pipe of an SM that an opcode occupies; None where it hardly matters."""
    return next((name for name, opcodes in _PIPES.items() if opcode in opcodes), None)
