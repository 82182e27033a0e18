"""Turns an instruction into the form of its bulk copy, or None where it is none: what is copied from where to where."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sectorwise.counting.request import Access, Operation, Space
from sectorwise.machine.forms import is_never_executed

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction


class CopyOperation(StrEnum):
    """What a bulk copy does: an exchange goes from shared memory to that of a block of the cluster."""

    LOAD = "load"
    STORE = "store"
    REDUCTION = "reduction"
    PREFETCH = "prefetch"
    EXCHANGE = "exchange"


class Place(StrEnum):
    """Where bytes of a bulk copy come from or go to."""

    GLOBAL = "global"
    SHARED = "shared"
    L2 = "l2"


class Shape(StrEnum):
    """What is copied at once: a tile that a tensor map names, or a range of bytes."""

    TILE = "tile"
    RANGE = "range"


class CopyForm(Struct, frozen=True):
    """The form of a bulk copy; `multicast`: to the same place in several blocks of the cluster."""

    operation: CopyOperation
    source: Place
    target: Place
    shape: Shape
    multicast: bool = False


_LOAD: Final = (CopyOperation.LOAD, Place.GLOBAL, Place.SHARED)
_STORE: Final = (CopyOperation.STORE, Place.SHARED, Place.GLOBAL)
_REDUCTION: Final = (CopyOperation.REDUCTION, Place.SHARED, Place.GLOBAL)
_PREFETCH: Final = (CopyOperation.PREFETCH, Place.GLOBAL, Place.L2)
_EXCHANGE: Final = (CopyOperation.EXCHANGE, Place.SHARED, Place.SHARED)
_REDUCTION_WITHIN: Final = (CopyOperation.REDUCTION, Place.SHARED, Place.SHARED)

_TILES: Final = {"UTMALDG": _LOAD, "UTMASTG": _STORE, "UTMAREDG": _REDUCTION, "UTMAPF": _PREFETCH}
_RANGES: Final = {
    ("UBLKCP", "S", "G"): _LOAD,
    ("UBLKCP", "G", "S"): _STORE,
    ("UBLKCP", "S", "S"): _EXCHANGE,
    ("UBLKRED", "G", "S"): _REDUCTION,
    ("UBLKRED", "S", "S"): _REDUCTION_WITHIN,
}


def copy_form_of(instruction: Instruction) -> CopyForm | None:
    """The form of a bulk copy; None for all other instructions and for those that are guarded by `@!PT`."""
    if is_never_executed(instruction):
        return None
    multicast = instruction.has("MULTICAST")
    if (ways := _TILES.get(instruction.opcode)) is not None:
        return CopyForm(*ways, Shape.TILE, multicast)
    if instruction.opcode == "UBLKPF":
        return CopyForm(*_PREFETCH, Shape.RANGE)
    named = (instruction.opcode, *(name for name in instruction.modifiers if name in ("S", "G")))
    found = _RANGES.get(named[:3]) if len(named) == 3 else None
    return None if found is None else CopyForm(*found, Shape.RANGE, multicast)


_SECTOR_BYTES: Final = 32
_OPERATIONS: Final = {
    CopyOperation.LOAD: Operation.LOAD,
    CopyOperation.PREFETCH: Operation.LOAD,
    CopyOperation.STORE: Operation.STORE,
    CopyOperation.REDUCTION: Operation.REDUCTION,
}


def global_access_of(instruction: Instruction) -> Access | None:
    """What a bulk copy does to global memory, a sector a lane, as requests that go around L1; None where nothing."""
    form = copy_form_of(instruction)
    if form is None or Place.GLOBAL not in (form.source, form.target):
        return None
    modifiers = ("BYPASS", *instruction.modifiers)
    return Access(Space.GLOBAL, _OPERATIONS[form.operation], _SECTOR_BYTES, instruction.opcode, modifiers)
