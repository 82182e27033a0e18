"""Turns an instruction into the form of its memory access, or None where it is not a memory instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import TRUE_PREDICATE, Predicate
from sectorwise.counting.request import Access, Operation, Space

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction

_FORMS: dict[str, tuple[Space, Operation]] = {
    "LDG": (Space.GLOBAL, Operation.LOAD),
    "STG": (Space.GLOBAL, Operation.STORE),
    "LDS": (Space.SHARED, Operation.LOAD),
    "STS": (Space.SHARED, Operation.STORE),
    "LDL": (Space.LOCAL, Operation.LOAD),
    "STL": (Space.LOCAL, Operation.STORE),
    "LD": (Space.GENERIC, Operation.LOAD),
    "ST": (Space.GENERIC, Operation.STORE),
    "ATOMG": (Space.GLOBAL, Operation.ATOMIC),
    "ATOM": (Space.GENERIC, Operation.ATOMIC),
    "ATOMS": (Space.SHARED, Operation.ATOMIC),
    "REDG": (Space.GLOBAL, Operation.REDUCTION),
    "RED": (Space.GENERIC, Operation.REDUCTION),
    "REDS": (Space.SHARED, Operation.REDUCTION),
    "LDGSTS": (Space.GLOBAL, Operation.ASYNC_COPY),
    "LDSM": (Space.SHARED, Operation.MATRIX_LOAD),
    "STSM": (Space.SHARED, Operation.MATRIX_STORE),
    "TEX": (Space.TEXTURE, Operation.LOAD),
    "TLD": (Space.TEXTURE, Operation.LOAD),
    "TLD4": (Space.TEXTURE, Operation.LOAD),
    "TXD": (Space.TEXTURE, Operation.LOAD),
    "SULD": (Space.SURFACE, Operation.LOAD),
    "SUST": (Space.SURFACE, Operation.STORE),
    "SUATOM": (Space.SURFACE, Operation.ATOMIC),
    "SURED": (Space.SURFACE, Operation.REDUCTION),
}

_WIDTHS = {
    "U8": 1,
    "S8": 1,
    "U16": 2,
    "S16": 2,
    "32": 4,
    "64": 8,
    "U64": 8,
    "S64": 8,
    "F64": 8,
    "F32x2": 8,
    "F16x4": 8,
    "BF16x4": 8,
    "96": 12,
    "128": 16,
    "F32x4": 16,
    "F16x8": 16,
    "BF16x8": 16,
    "256": 32,
}

_MATRIX_ROW_BYTES = 16


def is_never_executed(instruction: Instruction) -> bool:
    """Whether the guard is `@!PT`: the profiler does not list such memory instructions."""
    guard = instruction.guard
    return guard is not None and guard.index == TRUE_PREDICATE and guard.negate


def access_of(instruction: Instruction) -> Access | None:
    """The access of a memory instruction, None for all others and for those that are guarded by `@!PT`.

    An async copy counts as an access of global memory, its source.
    """
    form = _FORMS.get(instruction.opcode)
    if form is None or is_never_executed(instruction):
        return None
    space, operation = form
    modifiers = instruction.modifiers
    if operation in (Operation.MATRIX_LOAD, Operation.MATRIX_STORE):
        matrices = next((int(name) for name in modifiers if name in ("2", "4")), 1)
        return Access(space, operation, _MATRIX_ROW_BYTES, instruction.opcode, modifiers, matrices)
    width = next((_WIDTHS[name] for name in modifiers if name in _WIDTHS), 4)
    if operation is not Operation.ASYNC_COPY:
        return Access(space, operation, width, instruction.opcode, modifiers)
    guard = instruction.guard
    negated = guard.negate if guard is not None and guard.index == 0 else None
    # Predicate 0 itself is what the profiler misreads (docs/counting-rules.md, "Predicates of copies around L1").
    predicate = next((operand for operand in instruction.operands if isinstance(operand, Predicate)), None)
    is_misread = "BYPASS" in modifiers and "ZFILL" not in modifiers
    taken = predicate.negate if predicate is not None and predicate.index == 0 and is_misread else None
    return Access(space, operation, width, instruction.opcode, modifiers, guard_negated=negated, taken_to_read=taken)
