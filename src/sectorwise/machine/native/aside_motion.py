"""Turns how registers differ between blocks, where a copy is issued, into how the places that it copies do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.machine.likeness import SAME, Form, relate, take_as_axis

if TYPE_CHECKING:
    from sectorwise.machine.native.aside_forms import Aside
    from sectorwise.machine.native.meetings import Registers


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
