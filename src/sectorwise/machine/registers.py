"""Turns reads and writes of registers by some warps of a batch into array operations on one register file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[np.generic]
    Levels = npt.NDArray[np.uint8]

# One numbering for all that a warp can hold: R, UR, P, UP, and the convergence barriers B.
STACK_POINTER = 1
UNIFORM = 256
PREDICATE = 512
UNIFORM_PREDICATE = 520
BARRIER = 528
SLOTS = 544

ZERO_WORD: npt.NDArray[np.uint32] = np.zeros((1, 1), np.uint32)
TRUE: npt.NDArray[np.bool_] = np.ones((1, 1), np.bool_)
FALSE: npt.NDArray[np.bool_] = np.zeros((1, 1), np.bool_)
_ZERO_BARRIER: npt.NDArray[np.uint32] = np.zeros((1, 1), np.uint32)


def _initial_values() -> list[Array]:
    words: list[Array] = [ZERO_WORD] * PREDICATE
    predicates: list[Array] = [FALSE] * (BARRIER - PREDICATE)
    barriers: list[Array] = [_ZERO_BARRIER] * (SLOTS - BARRIER)
    values = words + predicates + barriers
    values[PREDICATE + TRUE_PREDICATE] = values[UNIFORM_PREDICATE + TRUE_PREDICATE] = TRUE
    return values


class RegisterFile(Struct):
    """What the warps of a batch hold: one array a slot, of any shape that broadcasts to `[warps, 32]`.

    A value that is the same in all lanes, all warps or both stays small (`[warps, 1]`, `[1, 32]`, `[1, 1]`), so
    uniform arithmetic costs next to nothing. `taints` has an entry only for slots that are not wholly known.
    Arrays are never changed in place while a window shares them; `private` names those that nothing else shares.
    """

    warps: int
    values: list[Array] = field(default_factory=_initial_values)
    taints: dict[int, Levels] = field(default_factory=dict)
    private: set[int] = field(default_factory=set)


class Window(Struct):
    """The registers of the warps `rows` (None: all of them, in order) while they run; `close` writes back."""

    file: RegisterFile
    rows: npt.NDArray[np.intp] | None
    values: list[Array | None]
    taints: dict[int, Levels]
    written: set[int] = field(default_factory=set)

    def read(self, slot: int) -> Array:
        """Value of a slot, of a shape that broadcasts to `[rows, 32]`; not to be changed in place."""
        value = self.values[slot]
        if value is None:
            value = self.file.values[slot]
            if value.shape[0] != 1:
                value = value[self.rows]
            self.values[slot] = value
        return value

    def read_predicate(self, slot: int) -> npt.NDArray[np.bool_]:
        """Value of a predicate's slot."""
        value: npt.NDArray[np.bool_] = self.read(slot)  # type: ignore[assignment]
        return value

    def write(self, slot: int, value: Array, mask: npt.NDArray[np.bool_] | None) -> None:
        """Sets a slot where `mask` holds (None: everywhere)."""
        self.values[slot] = value if mask is None else np.where(mask, value, self.read(slot))
        if self.rows is not None:
            self.written.add(slot)

    def write_taint(self, slot: int, level: Levels | None, mask: npt.NDArray[np.bool_] | None) -> None:
        """Sets the taint of a slot where `mask` holds; a level of None is known."""
        if mask is not None:
            old = self.taints.get(slot)
            if old is None and level is None:
                return
            level = np.where(mask, _NONE if level is None else level, _NONE if old is None else old)
        if level is not None and level.any():
            self.taints[slot] = level
        else:
            self.taints.pop(slot, None)

    def close(self) -> None:
        """Writes what changed back to the register file."""
        if self.rows is None:
            return
        for slot in self.written:
            value = self.values[slot]
            if value is not None:
                _scatter(self.file, slot, self.rows, value)
        for slot in self.written | self.taints.keys():
            _scatter_taint(self.file, slot, self.rows, self.taints.get(slot))


_NONE: Levels = np.zeros((1, 1), np.uint8)


def open_window(file: RegisterFile, rows: npt.NDArray[np.intp] | None) -> Window:
    """Window on some warps; with `rows` None it works on the register file itself."""
    if rows is None:
        # From here on values may be shared between slots.
        file.private.clear()
        return Window(file, None, file.values, file.taints)  # type: ignore[arg-type]
    taints = {slot: level if level.shape[0] == 1 else level[rows] for slot, level in file.taints.items()}
    return Window(file, rows, [None] * SLOTS, taints)


def _scatter(file: RegisterFile, slot: int, rows: npt.NDArray[np.intp], value: Array) -> None:
    old = file.values[slot]
    lanes = max(old.shape[1], value.shape[1])
    if slot not in file.private or old.shape != (file.warps, lanes):
        old = np.array(np.broadcast_to(old, (file.warps, lanes)))
        file.values[slot] = old
        file.private.add(slot)
    old[rows] = value


def _scatter_taint(file: RegisterFile, slot: int, rows: npt.NDArray[np.intp], level: Levels | None) -> None:
    old = file.taints.get(slot)
    if level is None:
        if old is None:
            return
        level = _NONE
    full = np.array(np.broadcast_to(_NONE if old is None else old, (file.warps, 32)))
    full[rows] = level
    if full.any():
        file.taints[slot] = full
    else:
        file.taints.pop(slot, None)
