"""Turns a kernel into what is alike in all blocks of a launch: how each register differs between them, block by block.

The definitions of the instructions are run on likenesses instead of values, along the flow graph, to a fixed point.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER
from sectorwise.counting.request import Space
from sectorwise.machine.likeness import SAME, Likeness, relate, spoil, take_as_axis
from sectorwise.machine.native.aside_forms import moving_slots
from sectorwise.machine.native.flow import sees_others
from sectorwise.machine.native.lookups import know_specials, look_up
from sectorwise.machine.native.meetings import AXES, SAME_PREDICATE, Registers, bits_of, choose
from sectorwise.machine.native.relevance import guard_of
from sectorwise.machine.native.trace import BLOCK_SPECIALS
from sectorwise.machine.program import TERMINATORS
from sectorwise.machine.registers import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from sectorwise.machine.tables import combine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access
    from sectorwise.machine.native.detours import Detour
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.origins import Part, Reach
    from sectorwise.machine.native.relevance import Guard
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step
    from sectorwise.machine.tables import Table

Strides = tuple[int, int, int]
"""Blocks in a step along each axis of the grid, 0 where none is made."""


STRIDES = (1, 32, 64, 256, 1024, 4096)
"""Blocks in a step, tried in turn: indices are taken apart by powers of two."""

_FEWEST_STEPS = 8
"""An axis with fewer steps than this is not worth a stride."""


class SpoiledError(Exception):
    """A decision depends on where the block lies: blocks that differ along these axes are not alike."""

    def __init__(self, axes: frozenset[int]) -> None:
        """Names the axes to blame."""
        super().__init__(axes)
        self.axes = axes


class LikenessAlgebra:
    """An algebra over likenesses."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any operation of the algebra."""
        match name:
            case "word" | "long":
                bits = 32 if name == "word" else 64
                return lambda value: Likeness(bits=bits, known=value & ((1 << bits) - 1))
            case "predicate" | "number":
                bits = 1 if name == "predicate" else 32
                return lambda *values: Likeness(bits=bits, table=combine(name, values, {}))
            case "lane":
                return Likeness
            case "multiply_matrices":
                return lambda a, b, c, _form: [spoil([*a, *b, *c], 32)] * len(c)
            case _:
                return lambda *values, **options: relate(name, values, options)[0]


class LikenessPort(Struct):
    """A port whose values are likenesses; `strides` are the blocks in a step along each axis.

    `splits` collects the tables by which blocks are told apart: what decides where lanes go, or how much is copied.
    `detours` are branches that decide no count of memory, `gone` what runs on the ways of those that may differ.
    """

    bound: BoundLaunch
    registers: Registers
    strides: Strides
    reach: Reach
    mutable: frozenset[Part]
    specials: dict[str, Likeness]
    marks: Mapping[int, Marks]
    detours: Mapping[int, Detour] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    splits: dict[Table, None] = field(default_factory=dict)
    found: dict[tuple[Table, int], tuple[Table, ...]] = field(default_factory=dict)
    guard: Guard | None = None
    holds: Likeness = SAME_PREDICATE
    sees_others: bool = False
    loads_mutable: bool = False
    writes: bool = True
    algebra: Any = field(default_factory=LikenessAlgebra)

    def begin(self, step: Step) -> None:
        """The instruction that reads and writes from now on."""
        self.guard, self.sees_others = guard_of(step), sees_others(step)
        self.loads_mutable = not self.mutable.isdisjoint(self.reach.loaded(step.instruction.index))
        self.holds = SAME_PREDICATE if self.guard is None else self.registers.read(self.guard[0], None)

    def read_slot(self, slot: int) -> Likeness:
        """Likeness of a slot; where other lanes are seen, the instruction's guard says nothing of theirs."""
        return self.registers.read(slot, None if self.sees_others else self.guard)

    def write_slot(self, slot: int, likeness: Likeness) -> None:
        """Sets a slot's likeness where the instruction's guard holds."""
        holds = self.holds
        if self.guard is not None and not holds.is_same and holds.table is None:
            # Where it holds hangs on the block, and so does what the slot is, in all lanes.
            likeness = choose(holds, likeness, self.registers.read(slot, None), negated=self.guard[1])
            self.registers.write(slot, likeness, None)
            return
        if self.guard is not None and not holds.is_same and holds.table is not None and not likeness.spoiled:
            old = self.registers.read(slot, None)
            if old.form == likeness.form and not old.spoiled and (old.table is None or likeness.table is None):
                # Neither a form nor a table would be left: blocks are told apart by the predicate instead.
                self.settle(holds)
                holds = SAME_PREDICATE
        self.registers.write(slot, likeness, self.guard, holds)

    def settle(self, likeness: Likeness) -> None:
        """Sees to it that a value on which it hangs what lanes do is the same in blocks that are compared."""
        if likeness.is_same:
            return
        if likeness.table is None:
            raise SpoiledError(likeness.axes)
        self.splits[likeness.table] = None

    def settle_step(self, step: Step) -> None:
        """The same for guards of accesses, and for all that branches and waits read; places of copies may move."""
        if step.action is None:
            if not self.may_detour(step):
                moves = moving_slots(step.instruction)
                for slot in self.marks[step.instruction.index].reads:
                    (decide if slot in moves else self.settle)(self.registers.read(slot, None))
        elif step.guard_slot is not None and step.access is not None:
            self.settle(self.holds)

    def may_detour(self, step: Step) -> bool:
        """Whether a branch decides no count of memory, by something that differs between blocks otherwise."""
        index = step.instruction.index
        read = [self.registers.read(slot, None) for slot in self.marks[index].reads] if index in self.detours else []
        return any(not each.is_same and each.table is None for each in read)

    def take_detour(self, step: Step | None) -> Detour | None:
        """From such a branch to where its ways meet: what they write may be anything then."""
        if step is None or not self.may_detour(step):
            return None
        detour = self.detours[step.instruction.index]
        self.gone |= detour.inside
        for slot in detour.writes:
            self.registers.write(slot, Likeness(bits=bits_of(slot), spoiled=AXES), None)
        return detour

    def read_register(self, index: int, *, uniform: bool = False) -> Likeness:
        """Likeness of a register."""
        if index == ZERO_REGISTER:
            return Likeness(known=0)
        return self.read_slot(index + UNIFORM if uniform else index)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Likeness:
        """Likeness of a predicate."""
        if index == TRUE_PREDICATE:
            return SAME_PREDICATE
        return self.read_slot(index + (UNIFORM_PREDICATE if uniform else PREDICATE))

    def write_register(self, index: int, value: Likeness, *, uniform: bool = False) -> None:
        """Sets a register's likeness."""
        if self.writes and index != ZERO_REGISTER:
            self.write_slot(index + UNIFORM if uniform else index, value)

    def write_predicate(self, index: int, value: Likeness, *, uniform: bool = False) -> None:
        """Sets a predicate's likeness."""
        if self.writes and index != TRUE_PREDICATE:
            self.write_slot(index + (UNIFORM_PREDICATE if uniform else PREDICATE), value)

    def read_constant(self, bank: int, offset: Likeness | int) -> Likeness:
        """Constants are known, where the place is."""
        place = offset if isinstance(offset, int) else offset.known
        if place is None:
            assert isinstance(offset, Likeness)  # noqa: S101 - narrows the type
            return spoil([offset], 32)
        content = self.bound.banks.get(bank, b"")[place : place + 4]
        return Likeness(known=int.from_bytes(content, "little"))

    def read_special(self, name: str) -> Likeness:
        """The block's place moves; all else is the same in all blocks."""
        found = self.specials.get(name, Likeness())
        if name in BLOCK_SPECIALS:
            axis = BLOCK_SPECIALS.index(name)
            return replace(found, form=((axis, self.strides[axis]),) if self.strides[axis] else SAME)
        return found

    def active(self) -> Likeness:
        """Lanes go the same ways in blocks that are alike."""
        return SAME_PREDICATE

    def mark_inexact(self) -> None:
        """What is inexact is so in all blocks."""

    def mark_unknown(self, reason: str) -> None:
        """What is not known reaches no decision."""
        del reason

    def load(self, access: Access, address: Likeness) -> Sequence[Likeness]:
        """What lies at one address in memory that nobody writes is the same for all blocks."""
        decide(address)
        likeness, count = spoil([address], 32), max(1, access.width_bytes // 4)
        if self.loads_mutable:
            return [Likeness(spoiled=AXES)] * count
        tables = self._look_up(access, address)
        return [replace(likeness, table=table) for table in tables] if tables else [likeness] * count

    def _look_up(self, access: Access, address: Likeness) -> tuple[Table, ...]:
        """What each block finds in a buffer that nobody writes; nothing where that is not known."""
        if access.space is not Space.GLOBAL or address.is_same or address.table is None:
            return ()
        key = address.table, access.width_bytes
        if key not in self.found:
            found = look_up(self.bound, *key)
            self.found[key] = () if found is None or found[0] in self.mutable else found[1]
        return self.found[key]

    def store(self, access: Access, address: Likeness, words: object) -> None:
        """The address decides."""
        del access, words
        decide(address)

    def atomic(
        self, access: Access, address: Likeness, update: object, words: int, *, inexact: bool = False
    ) -> Sequence[Likeness]:
        """The address decides; what was there depends on other blocks."""
        del access, update, inexact
        decide(address)
        return [Likeness(spoiled=AXES)] * words

    def atomic_words(self, access: Access, address: Likeness, updates: Sequence[object]) -> Sequence[Likeness]:
        """As `atomic`."""
        del access
        decide(address)
        return [Likeness(spoiled=AXES)] * len(updates)

    def copy_async(
        self, access: Access, shared_address: Likeness, global_address: Likeness, source_bytes: Likeness | None
    ) -> None:
        """Both addresses and the size decide."""
        del access
        decide(shared_address)
        decide(global_address)
        if source_bytes is not None:
            self.settle(source_bytes)

    def load_matrix(self, access: Access, address: Likeness) -> Sequence[Likeness]:
        """As `load`."""
        return list(self.load(access, address))[:1] * access.matrices

    def store_matrix(self, access: Access, address: Likeness, words: object) -> None:
        """As `store`."""
        self.store(access, address, words)


def decide(likeness: Likeness) -> None:
    """A value on which counts depend must be linear, or may be an axis of its own."""
    if take_as_axis(likeness).spoiled:
        raise SpoiledError(likeness.spoiled)


class Alike(Struct, frozen=True):
    """What blocks have in common: registers where each basic block begins, and the port that found them.

    Blocks are compared that lie whole steps of the port's `strides` apart along each axis (0: at the same place), and
    have the same in its `splits`.
    """

    port: LikenessPort
    begins: dict[int, Registers]


def find_alike_registers(flow: Flow, relevant: frozenset[int], bound: BoundLaunch, reach: Reach) -> Alike | None:
    """How registers differ between the blocks of a launch; None where no two blocks are alike."""
    x, y, z = (int(count > 1) for count in bound.launch.grid)
    strides: Strides = (x, y, z)
    mutable: frozenset[Part] = frozenset().union(*(reach.stored(index) for index in relevant))
    specials = know_specials(bound)
    while any(strides):
        port = LikenessPort(bound, Registers(), strides, reach, mutable, specials, flow.marks, flow.detours)
        try:
            return Alike(port, _follow(flow, relevant, port))
        except SpoiledError as error:
            x, y, z = (_widen(strides, bound.launch.grid, axis, error.axes) for axis in range(3))
            strides = x, y, z
    return None


def _widen(strides: Strides, grid: tuple[int, int, int], axis: int, spoiled: frozenset[int]) -> int:
    """The next stride to try along an axis; 0 where there is none."""
    if axis not in spoiled:
        return strides[axis]
    wider = (stride for stride in STRIDES if stride > strides[axis] > 0 and grid[axis] >= _FEWEST_STEPS * stride)
    return next(wider, 0)


def _follow(flow: Flow, relevant: frozenset[int], port: LikenessPort) -> dict[int, Registers]:
    begins = {0: Registers()}
    waiting = [0]
    while waiting:
        start = waiting.pop()
        port.registers = registers = Registers(dict(begins[start].slots))
        for step in flow.blocks[start].all_steps:
            _follow_step(port, step, relevant)
        detour = port.take_detour(flow.blocks[start].terminator)
        for successor in flow.leads[start] if detour is None else (detour.meeting,):
            if successor not in begins:
                begins[successor] = Registers(dict(registers.slots))
                waiting.append(successor)
            elif begins[successor].join(registers):
                waiting.append(successor)
    return begins


def _follow_step(port: LikenessPort, step: Step, relevant: frozenset[int]) -> None:
    is_end = step.instruction.opcode in TERMINATORS
    port.writes = is_end or step.instruction.index in relevant
    if not port.writes and step.access is None:
        return
    port.begin(step)
    port.settle_step(step)
    marks = port.marks[step.instruction.index]
    if step.action is not None:
        step.action(port)
    elif is_end:
        # What barriers say is the same where all that is done to them is.
        for slot in marks.writes:
            port.write_slot(slot, Likeness(bits=bits_of(slot)))
    else:
        likeness = spoil([port.read_slot(slot) for slot in marks.reads], 32)
        for slot in marks.writes:
            port.write_slot(slot, likeness)
