"""Turns what an opcode asks of the machine into operations on the registers and memories of the warps that run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER
from sectorwise.counting.request import Space
from sectorwise.machine.atomics import apply_atomic, find_order, is_order_visible
from sectorwise.machine.banks import read_bank
from sectorwise.machine.collisions import stain_collisions
from sectorwise.machine.encounters import COLLIDED, UNWRITTEN
from sectorwise.machine.lanes import as_signed, of_first_lane
from sectorwise.machine.memory import (
    BatchMemory,
    Request,
    check_matrix_rows,
    note_change,
    peek_words,
    resolve,
)
from sectorwise.machine.observers import tell_request
from sectorwise.machine.registers import PREDICATE, TRUE, UNIFORM, UNIFORM_PREDICATE, ZERO_WORD, Window
from sectorwise.machine.sites import Patterns, SiteCounter, find_first, record
from sectorwise.machine.spaces import split_spaces
from sectorwise.machine.special import UNKNOWN_REASONS
from sectorwise.machine.storage import Piece, keep_bytes, mark_written, read_words, stain_words, write_words
from sectorwise.machine.taint import (
    INEXACT,
    INEXACT_LEVEL,
    ORDERED_LEVEL,
    UNKNOWN,
    UNKNOWN_LEVEL,
    across_lanes,
    collect,
    find_unknown,
    join,
    level_of,
)
from sectorwise.machine.unwritten import ask_written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra
    from sectorwise.machine.observers import Observer
    from sectorwise.machine.program import Step
    from sectorwise.machine.taint import Levels

    Lanes = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]

_ROW = np.arange(32)


class NumpyPort(Struct):
    """`Port` for the warps `rows` of a batch; the engine sets the fields that change with each instruction.

    `group` are the lanes that issue together (None: all 32 of each warp), `lanes` those of them that the guard lets
    execute, `mask` those whose registers are written (None also where all others have exited), `kept` the same without
    the guard. `level` is the taint joined from what the instruction has read so far, `guard_level` that of its guard.
    """

    algebra: Algebra[Any]
    window: Window
    warps: int
    rows: npt.NDArray[np.intp] | None
    memory: BatchMemory
    banks: dict[int, npt.NDArray[np.uint32]]
    special: dict[str, Lanes]
    counters: dict[int, SiteCounter]
    origins: dict[int, str]
    observers: tuple[Observer, ...]
    issuing: int
    step: Step
    way: int = 0
    group: Mask | None = None
    kept: Mask | None = None
    guard_level: Levels | None = None
    lanes: Mask | None = None
    mask: Mask | None = None
    level: Levels | None = None
    constants: dict[tuple[int, int], Lanes] = field(default_factory=dict)

    def read_register(self, index: int, *, uniform: bool = False) -> Lanes:
        """Word of a register."""
        if index == ZERO_REGISTER:
            return ZERO_WORD
        return self._read_uniform(index + UNIFORM) if uniform else self._read(index)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Lanes:
        """Predicate register."""
        if index == TRUE_PREDICATE:
            return TRUE
        return self._read_uniform(index + UNIFORM_PREDICATE) if uniform else self._read(index + PREDICATE)

    def _read(self, slot: int) -> Lanes:
        window = self.window
        if window.taints:
            self.level = join(self.level, window.taints.get(slot))
        value = window.values[slot]
        if value is None:
            value = window.read(slot)
        return value

    def _read_uniform(self, slot: int) -> Lanes:
        """A value a warp: groups that have parted keep their own, so it is that of the group's first lane."""
        value = self._read(slot)
        return value if value.shape[1] == 1 else of_first_lane(value, self.group, self.warps)

    def write_register(self, index: int, value: Lanes, *, uniform: bool = False) -> None:
        """Writes a word in the active lanes."""
        if index != ZERO_REGISTER:
            self._write(index + UNIFORM if uniform else index, value, uniform=uniform)

    def write_predicate(self, index: int, value: Lanes, *, uniform: bool = False) -> None:
        """Writes a predicate in the active lanes."""
        if index != TRUE_PREDICATE:
            self._write(index + (UNIFORM_PREDICATE if uniform else PREDICATE), value, uniform=uniform)

    def _write(self, slot: int, value: Lanes, *, uniform: bool) -> None:
        mask = self.mask
        if uniform:
            # One value for the lanes that issue together, of the first active one; unchanged where none is active.
            if value.shape[1] != 1:
                value = of_first_lane(value, self.lanes, self.warps)
            mask = self._uniform_mask()
        self.window.write(slot, value, mask)
        level = self.level
        if level is not None or self.window.taints:
            if level is not None and (uniform or self.step.cross_lane):
                level = across_lanes(level, self.lanes if level.shape[1] != 1 else None)
            self.window.write_taint(slot, level, mask)
            if self.guard_level is not None:
                # Whether these lanes were written is no surer than the guard.
                self.window.write_taint(slot, join(self.window.taints.get(slot), self.guard_level), self.kept)

    def _uniform_mask(self) -> Mask | None:
        if self.mask is None or self.lanes is None:
            return None
        some_active: Mask = np.asarray(self.lanes.any(axis=1, keepdims=True))
        if self.group is not None:
            return some_active & self.group
        return None if some_active.all() else some_active

    def read_constant(self, bank: int, offset: Lanes | int) -> Lanes:
        """Word of a constant bank; past its end zero, and unknown."""
        cached = self.constants.get((bank, offset)) if isinstance(offset, int) else None
        if cached is not None:
            return cached
        words = self.banks.get(bank)
        if words is None:
            self.mark_unknown(f"constant bank {bank} is not known")
            return ZERO_WORD
        value, outside = read_bank(
            words, np.full((1, 1), offset) if isinstance(offset, int) else offset.astype(np.int64)
        )
        if outside is not None:
            self.level = join(self.level, np.where(outside, np.uint8(UNKNOWN), np.uint8(0)))
            self.origins.setdefault(self._index(), f"it reads past the end of constant bank {bank}")
        elif isinstance(offset, int):
            self.constants[bank, offset] = value
        return value

    def read_special(self, name: str) -> Lanes:
        """Word of a special register."""
        value = self.special.get(name)
        if value is None:
            self.mark_unknown(UNKNOWN_REASONS.get(name, f"special register {name} is not known"))
            return ZERO_WORD
        if self.rows is None or value.shape[0] == 1:
            return value
        gathered: Lanes = value[self.rows]
        return gathered

    def active(self) -> Lanes:
        """The lanes that execute this instruction."""
        return TRUE if self.lanes is None else self.lanes

    def mark_inexact(self) -> None:
        """From here on this instruction's results are inexact, unless its form is known to be corrected later."""
        if not self.step.trusted:
            self.level = join(self.level, INEXACT_LEVEL)

    def mark_unknown(self, reason: str) -> None:
        """From here on this instruction's results are unknown."""
        self.level = join(self.level, UNKNOWN_LEVEL)
        self.origins.setdefault(self._index(), reason)

    def load(self, access: Access, address: Lanes) -> Sequence[Lanes]:
        """Counts a request and reads."""
        pieces, active = self._access(access, as_signed(address), access.width_bytes)
        words, taint = read_words(pieces, access.width_bytes, self.warps)
        unsure = join(find_order(access, pieces), self._ask_written(access, pieces, access.width_bytes, active))
        self.level = join(self.level, join(taint, unsure))
        return words

    def _ask_written(self, access: Access, pieces: tuple[Piece, ...], width: int, active: Mask | None) -> Levels | None:
        """How sure what is read is, as nothing may have written it; notes where that is so."""
        found = ask_written(self.step.instruction, access, pieces, width, active, self.warps)
        self.counters[self._index()].met |= 0 if found is None else UNWRITTEN
        return found

    def store(self, access: Access, address: Lanes, words: Sequence[Lanes]) -> None:
        """Counts a request and writes."""
        pieces, active = self._access(access, as_signed(address), access.width_bytes)
        stored = (pieces, access.width_bytes, list(words), active)
        self._write_words(*stored, self.level)
        if access.space is not Space.LOCAL and stain_collisions(*stored, self.warps):
            self.counters[self._index()].met |= COLLIDED

    def atomic(
        self,
        access: Access,
        address: Lanes,
        update: Callable[[Algebra[Any], Lanes], Lanes],
        words: int,
        *,
        inexact: bool = False,
    ) -> Sequence[Lanes]:
        """Counts a request and updates lane after lane."""
        size_bytes = min(access.width_bytes, 4 * words)
        pieces, active = self._access(access, as_signed(address), size_bytes)
        seen = self._update(access, pieces, active, update, size_bytes, inexact=inexact)
        self.level = join(self.level, ORDERED_LEVEL)
        low = seen.astype(np.uint32)
        return [low] if words == 1 else [low, (seen >> np.uint64(32)).astype(np.uint32)]

    def atomic_words(
        self, access: Access, address: Lanes, updates: Sequence[Callable[[Algebra[Any], Lanes], Lanes]]
    ) -> Sequence[Lanes]:
        """Counts one request and updates word after word, each lane after lane."""
        pieces, active = self._access(access, as_signed(address), access.width_bytes)
        seen: list[Lanes] = []
        for k, update in enumerate(updates):
            words = tuple(Piece(piece.storage, piece.index + 4 * k, piece.where) for piece in pieces)
            seen.append(self._update(access, words, active, update, 4, inexact=True).astype(np.uint32))
        self.level = join(self.level, ORDERED_LEVEL)
        return seen

    def _update(
        self,
        access: Access,
        pieces: tuple[Piece, ...],
        active: Mask | None,
        update: Callable[[Algebra[Any], Lanes], Lanes],
        size_bytes: int,
        *,
        inexact: bool,
    ) -> Lanes:
        """What each lane sees of an update in lane order; memory becomes as doubtful as the update is."""
        if inexact:
            self.level = join(self.level, INEXACT_LEVEL)
        _, taint = read_words(pieces, size_bytes, self.warps)
        self.level = join(self.level, join(taint, self._ask_written(access, pieces, size_bytes, active)))
        before = peek_words(self.memory, pieces, size_bytes, self.warps)
        seen = apply_atomic(
            pieces, active, lambda old: update(self.algebra, old), size_bytes, access.modifiers, self.warps
        )
        note_change(self.memory, before, pieces, size_bytes, self.warps)
        if "EXCH" in access.modifiers:
            # Other updates go on from what is there, which stays as unsure as it was.
            mark_written(pieces, size_bytes, active, self.warps)
        if is_order_visible(access.modifiers):
            self.level = join(self.level, ORDERED_LEVEL)
        if self.level is not None:
            stain_words(pieces, size_bytes, active, self.warps, collect(self.level, None))
        return seen

    def copy_async(
        self, access: Access, shared_address: Lanes, global_address: Lanes, source_bytes: Lanes | None
    ) -> None:
        """Counts a cp.async request and copies at once: nobody may read the copy before waiting for it."""
        width = access.width_bytes
        sizes = None if source_bytes is None else np.minimum(source_bytes.astype(np.int64), width)
        target, source = as_signed(shared_address), as_signed(global_address)
        self._count(access, source, secondary=target, source_bytes=sizes)
        reads = None if sizes is None else np.broadcast_to(sizes > 0, (self.warps, 32))
        reading = self._request(Space.GLOBAL, reads)
        words, taint = read_words(resolve(self.memory, source, width, reading), width, self.warps)
        if sizes is not None:
            words = [keep_bytes(word, sizes - 4 * k) for k, word in enumerate(words)]
        level = join(self.level, taint)
        pieces = resolve(self.memory, target, width, self._request(Space.SHARED))
        self._write_words(pieces, width, words, self.lanes, level)

    def load_matrix(self, access: Access, address: Lanes) -> Sequence[Lanes]:
        """Counts an ldmatrix request; word of lane l of matrix m: bytes 4 * (l % 4) to + 3 of row l // 4."""
        addresses = np.broadcast_to(as_signed(address), (self.warps, 32))
        self._count(access, addresses)
        addresses = check_matrix_rows(self.memory, addresses, access.matrices, self._request(access.space))
        words: list[Lanes] = []
        for matrix in range(access.matrices):
            rows = addresses[:, 8 * matrix + _ROW // 4] + 4 * (_ROW % 4)
            pieces = resolve(self.memory, rows, 4, self._request(access.space))
            values, taint = read_words(pieces, 4, self.warps)
            self.level = join(self.level, join(taint, self._ask_written(access, pieces, 4, self.lanes)))
            words.append(values[0])
        return words

    def store_matrix(self, access: Access, address: Lanes, words: Sequence[Lanes]) -> None:
        """Counts an stmatrix request; inverse of `load_matrix`."""
        addresses = np.broadcast_to(as_signed(address), (self.warps, 32))
        self._count(access, addresses)
        addresses = check_matrix_rows(self.memory, addresses, access.matrices, self._request(access.space))
        for matrix, word in enumerate(words):
            rows = addresses[:, 8 * matrix + _ROW // 4] + 4 * (_ROW % 4)
            pieces = resolve(self.memory, rows, 4, self._request(access.space))
            self._write_words(pieces, 4, [word], self.lanes, self.level)

    def _write_words(
        self, pieces: tuple[Piece, ...], width_bytes: int, words: list[Lanes], active: Mask | None, level: Levels | None
    ) -> None:
        before = peek_words(self.memory, pieces, width_bytes, self.warps)
        if self.way:
            # Whether it is stored at all is no surer than the way here; what is stored is not unknown by that.
            level = join(level, level_of((self.way & ~UNKNOWN) or INEXACT))
        write_words(pieces, width_bytes, words, active, self.warps, level)
        note_change(self.memory, before, pieces, width_bytes, self.warps)

    def _access(
        self, access: Access, address: npt.NDArray[np.int64], width_bytes: int
    ) -> tuple[tuple[Piece, ...], Mask | None]:
        """Counts the request; returns its places and the lanes that access, those of unknown address left out."""
        known = self._count(access, address)
        request = self._request(access.space, known)
        pieces = resolve(self.memory, address, width_bytes, request)
        if len(pieces) != 1 or pieces[0].where is not None:
            self._mark_missing(pieces, request.active)
        return pieces, request.active

    def _mark_missing(self, pieces: tuple[Piece, ...], active: Mask | None) -> None:
        """What lanes with a wrong address would have read is not known."""
        missing = np.ones((self.warps, 32), np.bool_) if active is None else active.copy()
        for piece in pieces:
            missing &= False if piece.where is None else ~piece.where
        if missing.any():
            self.level = join(self.level, np.where(missing, np.uint8(UNKNOWN), np.uint8(0)))
            self.origins.setdefault(self._index(), "it reads outside of every buffer")

    def _count(
        self,
        access: Access,
        address: npt.NDArray[np.int64],
        *,
        secondary: npt.NDArray[np.int64] | None = None,
        source_bytes: npt.NDArray[np.int64] | None = None,
    ) -> Mask | None:
        """Counts the request; returns the lanes whose address is known, None for all."""
        counter = self.counters[self._index()]
        lanes = self.lanes if self.lanes is None else np.broadcast_to(self.lanes, (self.warps, 32))
        known = self._judge_address(counter, lanes)
        if known is not None:
            lanes = known if lanes is None else lanes & known
        spaces = split_spaces(self.memory, address, self.rows) if access.space is Space.GENERIC else None
        issued = (TRUE if self.group is None else self.group) if access.counts_stopped_lanes else None
        record(counter, Patterns(self.warps, self.issuing, address, lanes, secondary, source_bytes, spaces, issued))
        if counter.first is None:
            counter.first = find_first(address, lanes, self.rows, self.memory.warp_numbers)
        if self.observers:
            numbers = self.memory.warp_numbers
            numbers = numbers if self.rows is None else numbers[self.rows]
            tell_request(self.observers, self._index(), access, numbers, address, lanes)
        return known

    def _judge_address(self, counter: SiteCounter, lanes: Mask | None) -> Mask | None:
        counter.doubts |= self.way
        if not self.window.taints:
            return None
        level: Levels | None = None
        for slot in self.step.address_slots:
            level = join(level, self.window.taints.get(slot))
        found = collect(level, lanes)
        if self.guard_level is not None:
            # Also a lane that the guard stops might have accessed.
            level = join(level, self.guard_level)
            found |= collect(self.guard_level, self.group)
        counter.doubts |= found
        if level is None or not found & UNKNOWN:
            return None
        counter.unknown = True
        return np.broadcast_to(~find_unknown(level), (self.warps, 32))

    def _request(self, space: Space, known: Mask | None = None) -> Request:
        active = self.lanes if known is None else self._and(known)
        return Request(self.step.instruction, space, self.rows, self.warps, active)

    def _and(self, lanes: Mask) -> Mask:
        return lanes if self.lanes is None else lanes & self.lanes

    def _index(self) -> int:
        return self.step.instruction.index
