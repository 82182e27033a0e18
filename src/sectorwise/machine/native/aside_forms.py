"""Turns instructions on mbarriers and whole ranges of memory into the registers that they read and write, by their use.

Machine code leaves these to the reference engine's own functions (`native/asides.py`): they are few, and no lane asks
memory for anything there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER, Address, Predicate, Register
from sectorwise.counting.request import Space
from sectorwise.machine.named_registers import FIRST_CORNER, count_axes, following, last_register, name_places
from sectorwise.machine.program import predicate_slot, register_slot

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction

RANGES = frozenset(("UBLKCP", "UBLKPF", "UBLKRED"))
TILES = frozenset(("UTMALDG", "UTMAPF", "UTMAREDG", "UTMASTG"))


class Aside(Struct, frozen=True):
    """Slots that an instruction reads and writes.

    `alike` are those on which hangs what it does: places in shared memory, sizes, maps, words for barriers. `awaited`
    says which phase of a barrier is waited for. `corner` are the coordinates of a tile by the map whose address begins
    in `tensor_map`; `address` is the first word of a place in global memory, from or to which as much is copied as
    `size` says (None: a tile is). By these places copies of different blocks may be apart. `place` is that in shared
    memory, `barrier` what is told. `loads` and `stores` are the spaces between which it copies; what it leaves there
    is not followed.
    """

    alike: tuple[int, ...] = ()
    awaited: tuple[int, ...] = ()
    corner: tuple[int, ...] = ()
    tensor_map: int = -1
    address: int | None = None
    size: int = -1
    place: int | None = None
    barrier: int | None = None
    writes: tuple[int, ...] = ()
    loads: Space | None = None
    stores: Space | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it copies, or fetches, a tile or a range."""
        return bool(self.corner) or self.address is not None

    @property
    def reads(self) -> tuple[int, ...]:
        """All slots that it reads."""
        address = () if self.address is None else (self.address, self.address + 1)
        return (*self.alike, *self.awaited, *self.corner, *address)


def read_aside(instruction: Instruction) -> Aside | None:
    """What an instruction reads and writes; None for those that the reference engine alone runs."""
    if instruction.has("MULTICAST"):
        return None
    match instruction.opcode:
        case "SYNCS" | "ARRIVES":
            return _read_barrier(instruction)
        case opcode if opcode in TILES:
            return _read_tile(instruction)
        case opcode if opcode in RANGES:
            return _read_range(instruction)
        case _:
            return None


def is_trial(instruction: Instruction) -> bool:
    """Whether lanes that execute it may have to wait, and then execute it again."""
    return instruction.opcode == "SYNCS" and instruction.has("PHASECHK") and instruction.has("TRYWAIT")


def moving_slots(instruction: Instruction) -> tuple[int, ...]:
    """Slots by which copies of different blocks may be apart, and count alike all the same."""
    aside = read_aside(instruction) if instruction.opcode in TILES | RANGES else None
    if aside is None:
        return ()
    return (*aside.corner, *(() if aside.address is None else (aside.address, aside.address + 1)))


def _slots(register: Register, count: int = 1) -> tuple[int, ...]:
    if register.index == ZERO_REGISTER:
        return ()
    return tuple(register_slot(register) + step for step in range(count))


def _read_barrier(instruction: Instruction) -> Aside | None:
    if instruction.has("CCTL"):
        return Aside()
    address = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
    if address is None:
        return None
    named = [each for each in (address.base, address.uniform) if each is not None]
    place = tuple(slot for register in named for slot in _slots(register))
    target = instruction.operands[0]
    written = _slots(target, 2) if isinstance(target, Register) else ()
    if instruction.opcode == "ARRIVES":
        return Aside(alike=place)
    if instruction.has("EXCH"):
        return Aside(alike=(*place, *_slots(last_register(instruction), 2)), writes=written)
    if instruction.has("ARRIVE"):
        return Aside(alike=(*place, *_slots(last_register(instruction))), writes=written)
    if not is_trial(instruction):
        return None
    if isinstance(target, Predicate) and target.index != TRUE_PREDICATE:
        written = (predicate_slot(target),)
    return Aside(alike=place, awaited=_slots(last_register(instruction)), writes=written)


def _read_tile(instruction: Instruction) -> Aside | None:
    places, axes = name_places(instruction), count_axes(instruction)
    if len(places) < 2 or not axes:
        return None
    first = FIRST_CORNER.get(instruction.opcode, 1)
    start = register_slot(places[0])
    corner = tuple(start + step for step in range(first, first + axes))
    alike = (*range(start, start + first), *_slots(places[1], 2))
    found = Aside(alike=alike, corner=corner, tensor_map=register_slot(places[1]))
    match instruction.opcode:
        case "UTMALDG":
            return replace(found, place=start, barrier=start + 1, loads=Space.GLOBAL, stores=Space.SHARED)
        case "UTMAPF":
            return found
        case _:
            return replace(found, place=start, loads=Space.SHARED, stores=Space.GLOBAL)


def _read_range(instruction: Instruction) -> Aside | None:
    places = name_places(instruction)
    size = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if size is None or not places:
        return None
    units = register_slot(size)
    if instruction.opcode == "UBLKPF":
        return Aside(alike=_slots(size), address=register_slot(places[0]), size=units)
    ways = tuple(name for name in instruction.modifiers if name in ("S", "G"))
    if len(places) < 2:
        return None
    match ways:
        case ("S", "G"):
            alike = (*_slots(size), *_slots(places[0]), *_slots(following(places[0])))
            place = register_slot(places[0])
            found = Aside(alike=alike, address=register_slot(places[1]), size=units, place=place, barrier=place + 1)
            return replace(found, loads=Space.GLOBAL, stores=Space.SHARED)
        case ("G", "S"):
            alike = (*_slots(size), *_slots(places[1]))
            place = register_slot(places[1])
            found = Aside(alike=alike, address=register_slot(places[0]), size=units, place=place)
            return replace(found, loads=Space.SHARED, stores=Space.GLOBAL)
        case _:
            return None
