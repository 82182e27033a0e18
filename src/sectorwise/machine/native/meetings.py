"""Turns how registers differ between blocks, some of them under guards, into how they do where ways meet.

And where copies are issued: how the places that are copied move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.machine.likeness import ALL_AXES, SAME, Form, Likeness, relate, spoil, take_along_one_axis, take_as_axis
from sectorwise.machine.registers import PREDICATE, UNIFORM_PREDICATE
from sectorwise.machine.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.machine.native.aside_forms import Aside
    from sectorwise.machine.native.relevance import Guard

AXES = ALL_AXES
SAME_PREDICATE = Likeness(bits=1)

Known = tuple[Likeness, "Guard | None"]
"""The likeness of a slot, and the guard under which it holds (None: everywhere)."""


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
        return Likeness(bits=likeness.bits, spoiled=AXES)

    def write(self, slot: int, likeness: Likeness, guard: Guard | None, holds: Likeness = SAME_PREDICATE) -> None:
        """Sets a slot where a guard holds; `holds` is the likeness of its predicate."""
        if guard is not None and _is_always(self.slots.get(guard[0]), holds=not guard[1]):
            guard = None
        valid = guard
        if guard is not None:
            # What was there stays where the guard does not hold.
            old = self.read(slot, (guard[0], not guard[1]))
            both = choose(holds, likeness, old, negated=guard[1])
            if both.table is not None or not both.spoiled:
                likeness, valid = both, None
        self.slots[slot] = likeness, valid
        # Behind a change of its predicate, a guard says nothing of what it let through.
        for other, (value, condition) in list(self.slots.items()):
            if condition is not None and condition[0] == slot:
                self.slots[other] = Likeness(bits=value.bits, spoiled=AXES), None

    def join(self, other: Registers) -> bool:
        """Adds what another way brings to a place; says whether that changed anything."""
        changed = False
        never, others_never = self._never(), other._never()
        for slot in self.slots.keys() | other.slots.keys():
            mine = self.slots.get(slot, (Likeness(bits=bits_of(slot)), None))
            theirs = other.slots.get(slot, (Likeness(bits=bits_of(slot)), None))
            both = _join_apart(mine, theirs, never, others_never)
            if both != mine:
                self.slots[slot] = both
                changed = True
        return changed

    def _never(self) -> list[Guard]:
        """Guards that hold in no lane."""
        some = [(slot, known) for slot, known in self.slots.items() if known[0].bits == 1]
        return [(slot, holds) for slot, known in some for holds in (False, True) if _is_always(known, holds=holds)]


def _is_always(known: Known | None, *, holds: bool) -> bool:
    """Whether a predicate holds, or does not, in all lanes of all blocks."""
    if known is None or known[1] is not None or known[0].table is None or known[0].table.varies:
        return False
    return bool(read_table(known[0].table)[0, 0]) == holds


def _join_apart(a: Known, b: Known, never_a: Sequence[Guard], never_b: Sequence[Guard]) -> Known:
    """As `_join`; what holds under a guard is not disturbed by a way on which that guard never holds."""
    if a == b:
        return a
    if a[1] is not None and a[1] in never_b:
        return a
    if b[1] is not None and b[1] in never_a:
        return b
    if (a[1] is None) != (b[1] is None):
        # What holds everywhere holds under the other's guard too.
        guard = a[1] or b[1]
        return _join((a[0], guard), (b[0], guard))
    both = _join(a, b)
    if both[0].spoiled and not (a[0].spoiled and b[0].spoiled):
        kept, never, others = (a, never_b, never_a) if b[0].spoiled else (b, never_a, never_b)
        guard = next((each for each in never if each not in others), None)
        if kept[1] is None and guard is not None:
            return kept[0], guard
    return both


def _join(a: tuple[Likeness, Guard | None], b: tuple[Likeness, Guard | None]) -> tuple[Likeness, Guard | None]:
    if a == b:
        return a
    first, second = a[0], b[0]
    table = first.table if first.table == second.table else None
    if a[1] != b[1]:
        return Likeness(bits=first.bits, spoiled=AXES), None
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
    """The bits of what a slot holds: 1 for predicates."""
    return 1 if PREDICATE <= slot < UNIFORM_PREDICATE + 8 else 32


class Motion(Struct, frozen=True):
    """How places of copies move between blocks: the coordinates of a tile, or an address and its lower word.

    `tabulated` are the coordinates, or the address, that are numbers of a table in themselves.
    """

    corner: tuple[Form, ...] = ()
    address: Form = SAME
    low: Form = SAME
    tabulated: tuple[bool, ...] = ()

    @property
    def forms(self) -> tuple[Form, ...]:
        """All forms."""
        return (*self.corner, self.address, self.low)


def find_motion(aside: Aside, registers: Registers) -> Motion:
    """How the places of a copy move, from how registers do where it is issued."""
    if aside.address is not None:
        low, high = (registers.read(aside.address + step, None) for step in (0, 1))
        found = relate("join", [low, high], {})[0]
        taken = take_as_axis(found)
        return Motion((), taken.form, take_as_axis(low).form, (taken is not found,))
    corner = [registers.read(slot, None) for slot in aside.corner]
    taken_corner = [take_as_axis(each) for each in corner]
    tabulated = tuple(one is not other for one, other in zip(corner, taken_corner, strict=True))
    return Motion(tuple(each.form for each in taken_corner), tabulated=tabulated)
