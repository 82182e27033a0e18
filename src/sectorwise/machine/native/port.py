"""Turns what an opcode asks of the machine into LLVM code over a warp's state in memory.

Registers lie in memory between basic blocks, and are values within one: loaded where they are first read, written
back where the block ends. What a block writes in lanes that do not issue is dropped there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.native.layout import CONTEXT, SITE_BYTES, WORD_ROW
from sectorwise.machine.native.specials import read_special
from sectorwise.machine.native.unsupported import UnsupportedError, require_plain
from sectorwise.machine.native.updates import choose_fold, name_resolver, update_one_by_one
from sectorwise.machine.native.values import LANES, Kind, Operand
from sectorwise.machine.native.watch import likeness_of, tabulate_words
from sectorwise.machine.native.writer import VECTOR, Writer
from sectorwise.machine.native.written import choose_written_routine
from sectorwise.machine.registers import BARRIER, PREDICATE, UNIFORM, UNIFORM_PREDICATE
from sectorwise.machine.sites import COPY_PERIOD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra
    from sectorwise.machine.native.alike import LikenessPort
    from sectorwise.machine.native.meetings import Motion
    from sectorwise.machine.native.watch import Watcher
    from sectorwise.machine.program import Step


class BlockState(Struct):
    """Registers of the basic block that is being written: values now, slots read before written, slots written."""

    values: dict[int, Operand] = field(default_factory=dict)
    entry: dict[int, Operand] = field(default_factory=dict)
    needs: set[int] = field(default_factory=set)
    written: dict[int, None] = field(default_factory=dict)


class LlvmPort(Struct):
    """`Port` that writes code. `offsets` places slots in a warp's state; `sites` numbers memory instructions.

    `tracked` are memories of which it is noted what was written, `sized` copies with a source size of their own.
    `group` names the i32 mask of the lanes that issue; `guard` is what the instruction's guard says of each. Where an
    instruction's values do not matter (`computes` is False), its memory access is counted and checked, no more. `alike`
    and `watcher` follow how values differ between blocks. `numbers` are those of basic blocks, by first instruction,
    `asides` what Python runs between them.
    """

    algebra: Algebra[Operand]
    writer: Writer
    offsets: dict[int, int]
    sites: dict[int, int]
    banks: dict[int, int]
    tracked: frozenset[Space] = frozenset()
    racing: frozenset[int] = frozenset()
    sized: set[int] = field(default_factory=set)
    group: str = ""
    guard: Operand | None = None
    step: Step | None = None
    state: BlockState = field(default_factory=BlockState)
    computes: bool = True
    alike: LikenessPort | None = None
    watcher: Watcher | None = None
    numbers: dict[int, int] = field(default_factory=dict)
    asides: dict[int, Motion] = field(default_factory=dict)

    # Registers.
    def read_register(self, index: int, *, uniform: bool = False) -> Operand:
        """Word of a register."""
        require_plain(index)
        if index == ZERO_REGISTER:
            return self.algebra.word(0)
        return self.read_slot(index + UNIFORM if uniform else index)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Operand:
        """Predicate register."""
        if index == TRUE_PREDICATE:
            return self.algebra.predicate(True)  # noqa: FBT003 - a value
        return self.read_slot(index + (UNIFORM_PREDICATE if uniform else PREDICATE))

    def write_register(self, index: int, value: Operand, *, uniform: bool = False) -> None:
        """Writes a word in the active lanes."""
        require_plain(index)
        if index != ZERO_REGISTER:
            self._write_slot(index + UNIFORM if uniform else index, value)

    def write_predicate(self, index: int, value: Operand, *, uniform: bool = False) -> None:
        """Writes a predicate in the active lanes."""
        if index != TRUE_PREDICATE:
            self._write_slot(index + (UNIFORM_PREDICATE if uniform else PREDICATE), value)

    def read_slot(self, slot: int) -> Operand:
        """Value of a slot."""
        value = self._read_value(slot)
        return value if self.alike is None else replace(value, likeness=self.alike.read_slot(slot))

    def _read_value(self, slot: int) -> Operand:
        state = self.state
        value = state.values.get(slot)
        if value is None:
            state.needs.add(slot)
            value = self.load_slot(slot)
            state.values[slot] = state.entry[slot] = value
        elif slot < UNIFORM and slot in state.written and self.step is not None and self.step.cross_lane:
            # What other lanes see of lanes that do not issue is what these held before.
            inside = Operand(Kind.PREDICATE, lanes=True, text=self.group)
            value = self.algebra.select(inside, value, self.entry_value(slot))
        return value

    def entry_value(self, slot: int) -> Operand:
        """Value of a slot at the block's begin."""
        value = self.state.entry.get(slot)
        if value is None:
            value = self.state.entry[slot] = self.load_slot(slot)
        return value

    def place_of(self, slot: int) -> str:
        """Pointer to a slot of the warp's state."""
        offset = self.offsets.get(slot)
        if offset is None:
            offset = self.offsets[slot] = len(self.offsets) * WORD_ROW
        return self.writer.emitter.pure(f"getelementptr i8, ptr %state, i64 {offset}")

    def load_slot(self, slot: int) -> Operand:
        """Value of a slot in memory."""
        emitter, place = self.writer.emitter, self.place_of(slot)
        if slot < UNIFORM:
            return Operand(Kind.WORD, lanes=True, text=emitter.result(f"load {VECTOR}, ptr {place}, align 128"))
        if slot < PREDICATE or slot >= BARRIER:
            # One a warp: groups that have parted keep their own, so it is that of the group's first lane.
            first = emitter.pure(f"getelementptr i32, ptr {place}, i64 {self.first_lane()}")
            return Operand(Kind.WORD, lanes=False, text=emitter.result(f"load i32, ptr {first}"))
        mask = emitter.result(f"load i32, ptr {place}")
        if slot < UNIFORM_PREDICATE:
            return Operand(Kind.PREDICATE, lanes=True, text=mask)
        lane = emitter.pure(f"trunc i64 {self.first_lane()} to i32")
        bit = emitter.pure(f"lshr i32 {mask}, {lane}")
        return Operand(Kind.PREDICATE, lanes=False, text=emitter.pure(f"trunc i32 {bit} to i1"))

    def first_lane(self) -> str:
        """The lowest lane that issues, as i64."""
        emitter = self.writer.emitter
        lane = emitter.pure(f"call i32 @llvm.cttz.i32(i32 {self.group}, i1 true)")
        return emitter.pure(f"zext i32 {lane} to i64")

    def _write_slot(self, slot: int, value: Operand) -> None:
        if not self.computes:
            return
        uniform = UNIFORM <= slot < PREDICATE or slot >= UNIFORM_PREDICATE
        if uniform and value.lanes:
            value = self.algebra.first_active(value, self.active())
        likeness = likeness_of(value)
        if self.guard is not None:
            condition = self.guard
            if uniform:
                mask = self.active_mask()
                text = self.writer.emitter.pure(f"icmp ne i32 {mask}, 0")
                condition = Operand(Kind.PREDICATE, lanes=False, text=text)
            value = self.algebra.select(condition, value, self.read_slot(slot))
        self.set_slot(slot, value)
        if self.alike is not None:
            self.alike.write_slot(slot, likeness)

    def set_slot(self, slot: int, value: Operand) -> None:
        """Sets a slot in all lanes that issue."""
        self.state.values[slot] = value
        self.state.written[slot] = None

    def store_slot(self, slot: int) -> None:
        """Writes a slot back to memory, in the lanes that issue."""
        emitter, writer, place = self.writer.emitter, self.writer, self.place_of(slot)
        value = self.state.values[slot]
        if PREDICATE <= slot < BARRIER:
            old = emitter.result(f"load i32, ptr {place}")
            others = emitter.pure(f"and i32 {old}, {emitter.pure(f'xor i32 {self.group}, -1')}")
            own = emitter.pure(f"and i32 {writer.mask(value)}, {self.group}")
            emitter.effect(f"store i32 {emitter.pure(f'or i32 {others}, {own}')}, ptr {place}")
            return
        inside = writer.text(Operand(Kind.PREDICATE, lanes=True, text=self.group), lanes=True)
        words = writer.typed(value, lanes=True)
        emitter.effect(
            f"call void @llvm.masked.store.v32i32.p0({words}, ptr {place}, i32 128, <{LANES} x i1> {inside})"
        )

    # Constants and special registers.
    def read_constant(self, bank: int, offset: Operand | int) -> Operand:
        """Word of a constant bank; past its end it is not known."""
        emitter = self.writer.emitter
        size = self.banks.get(bank)
        if size is None:
            raise UnsupportedError(f"constant bank {bank} is not known")
        if isinstance(offset, Operand):
            if offset.constant is None or offset.lanes:
                return self._read_indexed_constant(bank, size, offset)
            offset = int(offset.constant[0, 0])
        if offset + 4 > size + (-size % 4):
            raise UnsupportedError("a read past the end of a constant bank")
        place = emitter.pure(f"getelementptr i8, ptr %bank{bank}, i64 {offset}")
        word = Operand(Kind.WORD, lanes=False, text=emitter.pure(f"load i32, ptr {place}, align 1"))
        return word if self.alike is None else replace(word, likeness=self.alike.read_constant(bank, offset))

    def _read_indexed_constant(self, bank: int, size: int, offset: Operand) -> Operand:
        emitter, writer = self.writer.emitter, self.writer
        words = writer.typed(offset, lanes=True)
        routine = emitter.require("constant")
        arguments = f"ptr %ctx, ptr %bank{bank}, i32 {size}, {words}, i32 {self.active_mask()}"
        text = emitter.result(f"call {VECTOR} {routine}({arguments})")
        return Operand(Kind.WORD, lanes=True, text=text)

    def read_special(self, name: str) -> Operand:
        """Word of a special register."""
        value = read_special(self.algebra, self.writer.emitter, name)
        if self.alike is None or value.constant is not None:
            return value
        return replace(value, likeness=self.alike.read_special(name))

    # Lanes and certainty.
    def active_mask(self) -> str:
        """The lanes that execute this instruction, an i32."""
        if self.guard is None:
            return self.group
        return self.writer.emitter.pure(f"and i32 {self.group}, {self.writer.mask(self.guard)}")

    def watched_mask(self) -> str:
        """The lanes whose values a condition concerns: of what crosses lanes, all that issue."""
        is_across = self.step is not None and self.step.cross_lane
        return self.group if is_across else self.active_mask()

    def active(self) -> Operand:
        """The lanes that execute this instruction."""
        return Operand(Kind.PREDICATE, lanes=True, text=self.active_mask())

    def mark_inexact(self) -> None:
        """Results are right in shape only."""

    def mark_unknown(self, reason: str) -> None:
        """Results are not known."""
        del reason

    # Memory.
    def load(self, access: Access, address: Operand) -> Sequence[Operand]:
        """Counts a request and reads."""
        words = max(1, access.width_bytes // 4)
        if not self.computes:
            self._touch(access, address)
            return [self.algebra.word(0)] * words
        self._request(access, address, f"load.{access.space}.{access.width_bytes}")
        found = self._data(words)
        return found if self.alike is None else tabulate_words(found, self.alike.load(access, likeness_of(address)))

    def store(self, access: Access, address: Operand, words: Sequence[Operand]) -> None:
        """Counts a request and writes."""
        if not self.computes:
            self._touch(access, address)
            return
        self._give_data(words)
        self._request(access, address, f"store.{access.space}.{access.width_bytes}")

    def atomic_words(self, access: Access, address: Operand, updates: Sequence[object]) -> Sequence[Operand]:
        """Counts a request; sums of several words a lane are left to the reference engine where they matter."""
        if self.computes:
            raise UnsupportedError("an atomic of several words a lane")
        self._touch(access, address)
        return [self.algebra.word(0)] * len(updates)

    def atomic(
        self,
        access: Access,
        address: Operand,
        update: Callable[[Algebra[Operand], Operand], Operand],
        words: int,
        *,
        inexact: bool = False,
    ) -> Sequence[Operand]:
        """Counts a request and updates lane after lane."""
        del inexact
        size = min(access.width_bytes, 4 * words)
        if not self.computes:
            self._touch(access, address)
            return [self.algebra.word(0)] * words
        if size not in (4, 8):
            raise UnsupportedError("an atomic of this form")
        self._watch(address, access, self.active_mask())
        self._place("addresses", address, wide=access.space is not Space.SHARED)
        self._note_written(access)
        resolve = self.writer.emitter.require(name_resolver(self.step, access, size, self.racing))
        arguments = f"ptr %ctx, ptr {self._site()}, i32 {self.active_mask()}"
        pending = self.writer.emitter.result(f"call i32 {resolve}({arguments})")
        fold = choose_fold(access.modifiers, signed_bits=8 * size)
        if fold is None:
            return update_one_by_one(self, access.modifiers, update, words, pending)
        operation, identity = fold
        neutral = self.algebra.word(identity) if size == 4 else self.algebra.long(identity)
        operand = update(self.algebra, neutral)
        self._give_data([operand] if size == 4 else [self.algebra.low(operand), self.algebra.high(operand)])
        routine = self.writer.emitter.require(f"fold.{operation}.{size}")
        self.writer.emitter.effect(f"call void {routine}(ptr %ctx, i32 {pending})")
        return self._data(words)

    def copy_async(
        self, access: Access, shared_address: Operand, global_address: Operand, source_bytes: Operand | None
    ) -> None:
        """Counts a cp.async request and copies at once."""
        width = access.width_bytes
        assert self.step is not None  # noqa: S101 - narrows the type
        if source_bytes is not None:
            self.sized.add(self.step.instruction.index)
        self._place("others", shared_address, wide=False)
        self._place("sizes", self.algebra.word(width) if source_bytes is None else source_bytes, wide=False)
        # Under a negated guard the profiler counts all lanes that issue a copy.
        issued = self.group if access.guard_negated else self.active_mask()
        routine = f"copy.{width}" if self.computes else f"copy_touch.{width}"
        if self.watcher is not None:
            self.watcher.follow_address(shared_address, Space.SHARED, width, issued)
            self.watcher.follow_address(global_address, Space.GLOBAL, width, issued, COPY_PERIOD_BYTES)
        self._request(access, global_address, routine, f", i32 {issued}")

    def load_matrix(self, access: Access, address: Operand) -> Sequence[Operand]:
        """Counts an ldmatrix request."""
        if not self.computes:
            self._request(access, address, f"matrix.touch.{access.matrices}")
            return [self.algebra.word(0)] * access.matrices
        self._request(access, address, f"matrix.load.{access.matrices}")
        return self._data(access.matrices)

    def store_matrix(self, access: Access, address: Operand, words: Sequence[Operand]) -> None:
        """Counts an stmatrix request."""
        if not self.computes:
            self._request(access, address, f"matrix.touch.{access.matrices}")
            return
        self._give_data(words)
        self._request(access, address, f"matrix.store.{access.matrices}")

    def _touch(self, access: Access, address: Operand) -> None:
        whole = access.space is Space.GENERIC and access.operation in (Operation.ATOMIC, Operation.REDUCTION)
        self._request(access, address, f"touch.{'whole' if whole else access.space}.{access.width_bytes}")

    def _request(self, access: Access, address: Operand, routine: str, more: str = "") -> None:
        if access.space not in (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.GENERIC):
            raise UnsupportedError(f"{access.space} memory")
        if access.operation is Operation.LOAD and access.width_bytes not in (1, 2, 4, 8, 16):
            raise UnsupportedError("a load of this width")
        if access.operation is not Operation.ASYNC_COPY:
            self._watch(address, access, self.active_mask())
        self._place("addresses", address, wide=access.space in (Space.GLOBAL, Space.GENERIC))
        self._note_written(access)
        self._call(routine, more)

    def _note_written(self, access: Access) -> None:
        """Marks what is about to be written, or looks whether what is about to be read was."""
        assert self.step is not None  # noqa: S101 - narrows the type
        routine = choose_written_routine(self.step.instruction, access, self.tracked) if self.computes else None
        if routine is not None:
            self._call(routine)

    def _call(self, routine: str, more: str = "") -> None:
        emitter = self.writer.emitter
        arguments = f"ptr %ctx, ptr {self._site()}, i32 {self.active_mask()}"
        emitter.effect(f"call void {emitter.require(routine)}({arguments}{more})")

    def _watch(self, address: Operand, access: Access, mask: str) -> None:
        if self.watcher is not None:
            self.watcher.follow_address(address, access.space, access.width_bytes, mask)

    def _site(self) -> str:
        """Pointer to the instruction's site; a generic access has three, one a space."""
        assert self.step is not None  # noqa: S101 - narrows the type
        number = self.sites.setdefault(self.step.instruction.index, 3 * len(self.sites))
        return self.writer.emitter.pure(f"getelementptr i8, ptr %sites, i64 {SITE_BYTES * number}")

    def _place(self, row: str, value: Operand, *, wide: bool) -> None:
        """Puts a value of each lane into a row of the context."""
        if wide and value.kind is Kind.WORD:
            value = self.algebra.extend_zero(value)
        if not wide and value.kind is Kind.LONG:
            value = self.algebra.low(value)
        emitter = self.writer.emitter
        place = emitter.pure(f"getelementptr i8, ptr %ctx, i64 {CONTEXT[row]}")
        emitter.effect(f"store {self.writer.typed(value, lanes=True)}, ptr {place}, align 128")

    def _data_place(self, word: int) -> str:
        return self.writer.emitter.pure(f"getelementptr i8, ptr %ctx, i64 {CONTEXT['data'] + WORD_ROW * word}")

    def _give_data(self, words: Sequence[Operand]) -> None:
        for number, word in enumerate(words):
            text = self.writer.typed(word, lanes=True)
            self.writer.emitter.effect(f"store {text}, ptr {self._data_place(number)}, align 128")

    def _data(self, words: int) -> list[Operand]:
        emitter = self.writer.emitter
        loads = [emitter.result(f"load {VECTOR}, ptr {self._data_place(word)}, align 128") for word in range(words)]
        return [Operand(Kind.WORD, lanes=True, text=text) for text in loads]
