"""Turns what is in memory, and what a bulk copy adds to it, into what is there then: sums, extremes, bits (UTMAREDG).

A copy after the other: hardware makes each update of an element by itself, in no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sectorwise.machine.storage import read_words, write_words
from sectorwise.machine.taint import ORDERED, join, level_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.storage import Piece
    from sectorwise.machine.taint import Levels

    Lanes = npt.NDArray[np.bool_]
    Words = npt.NDArray[np.uint32]
    Elements = npt.NDArray[Any]

_OPERATIONS: Final = frozenset(("ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR"))
_TYPES: Final = {
    "u32": np.uint32,
    "i32": np.int32,
    "u64": np.uint64,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": np.uint16,
}
_NAMED: Final = {"S32": "i32", "U64": "u64", "S64": "i64", "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64"}
_FLOATS: Final = frozenset(("f16", "bf16", "f32", "f64"))
_UNIT_BYTES: Final = 16


def find_kind(instruction: Instruction) -> str:
    """The type of the elements that a reduction of a whole range names; without one these are u32."""
    return next((_NAMED[name] for name in instruction.modifiers if name in _NAMED), "u32")


def can_reduce(instruction: Instruction, kind: str) -> bool:
    """Whether this reduction of such elements is computed."""
    return kind in _TYPES and _find_operation(instruction) is not None


def reduce_words(
    pieces: tuple[Piece, ...],
    instruction: Instruction,
    kind: str,
    given: Sequence[Words],
    active: Lanes,
    level: Levels | None,
) -> None:
    """Updates 16 bytes of each active lane in memory by those that are `given`, four words `[rows, 32]`.

    `level` is how sure these are. Sums of floats depend on the order of the copies.
    """
    operation, rows = _find_operation(instruction) or "", len(active)
    update = _join([np.broadcast_to(word, active.shape) for word in given], kind)
    if kind in _FLOATS and operation == "ADD":
        level = join(level, level_of(ORDERED))
    for row in np.flatnonzero(active.any(axis=1)):
        mine = active & (np.arange(rows) == row)[:, None]
        words, taint = read_words(pieces, _UNIT_BYTES, rows)
        held = _join([np.broadcast_to(word, active.shape) for word in words], kind)
        made = held.copy()
        made[row] = _combine(operation, kind, held[row], update[row])
        write_words(pieces, _UNIT_BYTES, _split(made), mine, rows, join(level, taint))


def _find_operation(instruction: Instruction) -> str | None:
    return next((name for name in instruction.modifiers if name in _OPERATIONS), None)


def _join(words: Sequence[Words], kind: str) -> Elements:
    """Elements of each lane, `[rows, 32, elements]`."""
    return np.ascontiguousarray(np.stack(words, axis=-1)).view(_TYPES[kind])


def _split(elements: Elements) -> list[Words]:
    words = np.ascontiguousarray(elements).view(np.uint32)
    return [words[..., number] for number in range(words.shape[-1])]


def _combine(operation: str, kind: str, held: Elements, given: Elements) -> Elements:
    if kind == "bf16":
        singles = (_widen(each) for each in (held, given))
        return _narrow(_combine(operation, "f32", *singles))
    with np.errstate(all="ignore"):
        match operation:
            case "ADD":
                return held + given
            case "MIN":
                return np.fmin(held, given)
            case "MAX":
                return np.fmax(held, given)
            case "INC":
                return np.where(held >= given, 0, held + 1).astype(held.dtype)
            case "DEC":
                return np.where((held == 0) | (held > given), given, held - 1).astype(held.dtype)
            case "AND":
                return held & given
            case "OR":
                return held | given
            case _:
                return held ^ given


def _widen(halves: Elements) -> Elements:
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrow(singles: Elements) -> Elements:
    """Rounded to the nearest bfloat16, ties to even; a NaN stays one."""
    bits = np.ascontiguousarray(singles, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(singles), np.uint32(0x7FFF), rounded).astype(np.uint16)
