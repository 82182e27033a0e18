"""Turns writes of registers, under guards and on several ways, into how each slot differs between blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.machine.likeness import ALL_AXES, Likeness, relate, spoil, take_along_one_axis
from sectorwise.machine.registers import PREDICATE, UNIFORM_PREDICATE

if TYPE_CHECKING:
    from sectorwise.machine.native.relevance import Guard

PREDICATE_LIKENESS = Likeness(bits=1)


class Registers(Struct):
    """Likenesses of slots; a slot that was written under a guard is as said where that guard holds, and there alone."""

    slots: dict[int, tuple[Likeness, Guard | None]] = field(default_factory=dict)

    def read(self, slot: int, guard: Guard | None) -> Likeness:
        """The likeness of a slot, as an instruction under a guard sees it."""
        found = self.slots.get(slot)
        if found is None:
            return Likeness(bits=bits_of(slot))
        likeness, valid = found
        if valid is None or valid == guard:
            return likeness
        return Likeness(bits=likeness.bits, spoiled=ALL_AXES)

    def write(self, slot: int, likeness: Likeness, guard: Guard | None, holds: Likeness = PREDICATE_LIKENESS) -> None:
        """Sets a slot where a guard holds; `holds` is the likeness of its predicate."""
        valid = guard
        if guard is not None:
            old = self.read(slot, None)
            both = choose(holds, likeness, old, negated=guard[1])
            if both.table is not None or not both.spoiled:
                likeness, valid = both, None
        self.slots[slot] = likeness, valid
        # Behind a change of its predicate, a guard says nothing of what it let through.
        for other, (value, condition) in list(self.slots.items()):
            if condition is not None and condition[0] == slot:
                self.slots[other] = Likeness(bits=value.bits, spoiled=ALL_AXES), None

    def join(self, other: Registers) -> bool:
        """Adds what another way brings to a place; says whether that changed anything."""
        changed = False
        for slot in self.slots.keys() | other.slots.keys():
            mine = self.slots.get(slot, (Likeness(bits=bits_of(slot)), None))
            both = _join(mine, other.slots.get(slot, (Likeness(bits=bits_of(slot)), None)))
            if both != mine:
                self.slots[slot] = both
                changed = True
        return changed


def _join(a: tuple[Likeness, Guard | None], b: tuple[Likeness, Guard | None]) -> tuple[Likeness, Guard | None]:
    if a == b:
        return a
    first, second = a[0], b[0]
    table = first.table if first.table == second.table else None
    if a[1] != b[1]:
        return Likeness(bits=first.bits, spoiled=ALL_AXES), None
    if table is None:
        # What begins as a number of a table may go on by steps that are the same: what is left of a block's rounds.
        first, second = take_along_one_axis(first, second)
    known = first.known if first.known == second.known else None
    if first.form == second.form:
        return Likeness(first.form, first.bits, known, first.spoiled | second.spoiled, table), a[1]
    return spoil([first, second], first.bits, table), a[1]


def choose(holds: Likeness, new: Likeness, old: Likeness, *, negated: bool) -> Likeness:
    """What is new where a predicate holds (or does not, if negated), else what is old."""
    values = [holds, old, new] if negated else [holds, new, old]
    table = relate("select", values, {})[0].table
    if holds.is_same and (old.form, old.spoiled) == (new.form, new.spoiled) and not new.spoiled:
        known = new.known if new.known == old.known else None
        return Likeness(new.form, new.bits, known, table=table)
    return spoil([new, old, Likeness(bits=1, spoiled=holds.axes)], new.bits, table)


def bits_of(slot: int) -> int:
    """How wide a slot is."""
    return 1 if PREDICATE <= slot < UNIFORM_PREDICATE + 8 else 32
