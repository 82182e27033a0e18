"""Turns the names of special registers into loads of what the launch gives, or into operations on the lane's number."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sectorwise.machine.native.layout import CONTEXT, WORD_ROW
from sectorwise.machine.native.trace import BLOCK_SPECIALS, LAUNCH_SPECIALS, VECTOR_SPECIALS
from sectorwise.machine.native.values import Kind, Operand
from sectorwise.machine.native.writer import VECTOR

if TYPE_CHECKING:
    from sectorwise.machine.algebra import Algebra
    from sectorwise.machine.native.emitter import Emitter

V = TypeVar("V")


def read_lane_special(algebra: Algebra[V], name: str) -> V:
    """A special register that follows from the lane alone; zero for one that is not known."""
    lane = algebra.lane()
    one, full = algebra.word(1), algebra.word(-1)
    below = algebra.shift_left(full, lane)
    match name:
        case "SR_LANEID":
            return lane
        case "SR_EQMASK":
            return algebra.shift_left(one, lane)
        case "SR_GEMASK":
            return below
        case "SR_LTMASK":
            return algebra.invert(below)
        case "SR_GTMASK":
            return algebra.shift_left(below, one)
        case "SR_LEMASK":
            return algebra.invert(algebra.shift_left(below, one))
        case _:
            return algebra.word(0)


def read_special(algebra: Algebra[Operand], emitter: Emitter, name: str) -> Operand:
    """A special register: a word of each lane, or one for all."""
    if name in VECTOR_SPECIALS:
        place = emitter.pure(f"getelementptr i8, ptr %special, i64 {WORD_ROW * VECTOR_SPECIALS.index(name)}")
        return Operand(Kind.WORD, lanes=True, text=emitter.pure(f"load {VECTOR}, ptr {place}, align 128"))
    if name in LAUNCH_SPECIALS:
        place = emitter.pure(f"getelementptr i32, ptr %launch, i64 {LAUNCH_SPECIALS.index(name)}")
        return Operand(Kind.WORD, lanes=False, text=emitter.pure(f"load i32, ptr {place}"))
    if name in BLOCK_SPECIALS:
        offset = CONTEXT["block"] + 4 * BLOCK_SPECIALS.index(name)
        place = emitter.pure(f"getelementptr i8, ptr %ctx, i64 {offset}")
        return Operand(Kind.WORD, lanes=False, text=emitter.pure(f"load i32, ptr {place}"))
    return read_lane_special(algebra, name)
