"""Turns a kernel into what is alike in all blocks of a launch: how each register differs between them, block by block.

The definitions of the instructions are run on likenesses instead of values, along the flow graph, to a fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER
from sectorwise.machine.likeness import Likeness, relate, spoil
from sectorwise.machine.native.relevance import guard_of, reached_spaces
from sectorwise.machine.native.trace import BLOCK_SPECIALS, LANE_SPECIALS, VECTOR_SPECIALS
from sectorwise.machine.registers import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from sectorwise.machine.special import special_registers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access, Space
    from sectorwise.machine.likeness import Form
    from sectorwise.machine.native.flow import Flow
    from sectorwise.machine.native.relevance import Guard
    from sectorwise.machine.native.trace import Marks
    from sectorwise.machine.program import Step

AXES = frozenset({0, 1, 2})
_PREDICATE = Likeness(bits=1)

STRIDES = (1, 32, 64, 256, 1024, 4096)
"""Blocks in a step, tried in turn: indices are taken apart by powers of two."""

_FEWEST_STEPS = 8
"""An axis with fewer steps than this is not worth a stride."""

_SEES_OTHERS = frozenset({"SHFL", "LDSM", "MOVM"})
"""Opcodes that read registers of lanes which do not issue them."""


class SpoiledError(Exception):
    """A decision depends on where the block lies: blocks that differ along these axes are not alike."""

    def __init__(self, axes: frozenset[int]) -> None:
        """Names the axes to blame."""
        super().__init__(axes)
        self.axes = axes


@dataclass(slots=True)
class Registers:
    """Likenesses of slots; a slot that was written under a guard is as said where that guard holds, and there alone."""

    slots: dict[int, tuple[Likeness, Guard | None]] = field(default_factory=dict)

    def read(self, slot: int, guard: Guard | None) -> Likeness:
        """The likeness of a slot, as an instruction under a guard sees it."""
        found = self.slots.get(slot)
        if found is None:
            return Likeness(bits=_bits_of(slot))
        likeness, valid = found
        if valid is None or valid == guard:
            return likeness
        return Likeness(bits=likeness.bits, spoiled=AXES)

    def write(self, slot: int, likeness: Likeness, guard: Guard | None) -> None:
        """Sets a slot where a guard holds."""
        valid = guard
        if guard is not None:
            old = self.read(slot, None)
            if (old.form, old.spoiled) == (likeness.form, likeness.spoiled):
                known = likeness.known if likeness.known == old.known else None
                likeness, valid = Likeness(likeness.form, likeness.bits, known, likeness.spoiled), None
        self.slots[slot] = likeness, valid
        # Behind a change of its predicate, a guard says nothing of what it let through.
        for other, (value, condition) in list(self.slots.items()):
            if condition is not None and condition[0] == slot:
                self.slots[other] = Likeness(bits=value.bits, spoiled=AXES), None

    def join(self, other: Registers) -> bool:
        """Adds what another way brings to a place; says whether that changed anything."""
        changed = False
        for slot in self.slots.keys() | other.slots.keys():
            mine = self.slots.get(slot, (Likeness(bits=_bits_of(slot)), None))
            both = _join(mine, other.slots.get(slot, (Likeness(bits=_bits_of(slot)), None)))
            if both != mine:
                self.slots[slot] = both
                changed = True
        return changed


def _join(a: tuple[Likeness, Guard | None], b: tuple[Likeness, Guard | None]) -> tuple[Likeness, Guard | None]:
    if a == b:
        return a
    first, second = a[0], b[0]
    known = first.known if first.known == second.known else None
    if first.form == second.form and a[1] == b[1]:
        return Likeness(first.form, first.bits, known, first.spoiled | second.spoiled), a[1]
    if a[1] != b[1]:
        return Likeness(bits=first.bits, spoiled=AXES), None
    return spoil([first, second], first.bits), a[1]


def _bits_of(slot: int) -> int:
    return 1 if PREDICATE <= slot < UNIFORM_PREDICATE + 8 else 32


class LikenessAlgebra:
    """An algebra over likenesses."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Any operation of the algebra."""
        match name:
            case "word" | "long":
                bits = 32 if name == "word" else 64
                return lambda value: Likeness(bits=bits, known=value & ((1 << bits) - 1))
            case "predicate":
                return lambda _value: _PREDICATE
            case "number" | "lane":
                return lambda *_: Likeness()
            case "multiply_matrices":
                return lambda a, b, c, _form: [spoil([*a, *b, *c], 32)] * len(c)
            case _:
                return lambda *values, **options: relate(name, _likenesses(values), options)[0]


def _likenesses(values: Sequence[object]) -> list[Likeness]:
    return [value for value in values if isinstance(value, Likeness)]


@dataclass(slots=True)
class LikenessPort:
    """A port whose values are likenesses; `strides` are the blocks in a step along each axis, 0 where none is made."""

    bound: BoundLaunch
    registers: Registers
    strides: Form
    mutable: frozenset[Space]
    specials: dict[str, int | None]
    guard: Guard | None = None
    sees_others: bool = False
    writes: bool = True
    algebra: Any = field(default_factory=LikenessAlgebra)

    def begin(self, step: Step) -> None:
        """The instruction that reads and writes from now on."""
        self.guard, self.sees_others = guard_of(step), sees_others(step)

    def read_slot(self, slot: int) -> Likeness:
        """Likeness of a slot; where other lanes are seen, the instruction's guard says nothing of theirs."""
        return self.registers.read(slot, None if self.sees_others else self.guard)

    def read_register(self, index: int, *, uniform: bool = False) -> Likeness:
        """Likeness of a register."""
        if index == ZERO_REGISTER:
            return Likeness(known=0)
        return self.read_slot(index + UNIFORM if uniform else index)

    def read_predicate(self, index: int, *, uniform: bool = False) -> Likeness:
        """Likeness of a predicate."""
        if index == TRUE_PREDICATE:
            return _PREDICATE
        return self.read_slot(index + (UNIFORM_PREDICATE if uniform else PREDICATE))

    def write_register(self, index: int, value: Likeness, *, uniform: bool = False) -> None:
        """Sets a register's likeness."""
        if self.writes and index != ZERO_REGISTER:
            self.registers.write(index + UNIFORM if uniform else index, value, self.guard)

    def write_predicate(self, index: int, value: Likeness, *, uniform: bool = False) -> None:
        """Sets a predicate's likeness."""
        if self.writes and index != TRUE_PREDICATE:
            self.registers.write(index + (UNIFORM_PREDICATE if uniform else PREDICATE), value, self.guard)

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
        if name in BLOCK_SPECIALS:
            axis = BLOCK_SPECIALS.index(name)
            x, y, z = (self.strides[axis] if axis == each else 0 for each in range(3))
            return Likeness((x, y, z))
        return Likeness(known=self.specials.get(name))

    def active(self) -> Likeness:
        """Lanes go the same ways in blocks that are alike."""
        return _PREDICATE

    def mark_inexact(self) -> None:
        """What is inexact is so in all blocks."""

    def mark_unknown(self, reason: str) -> None:
        """What is not known reaches no decision."""
        del reason

    def load(self, access: Access, address: Likeness) -> Sequence[Likeness]:
        """What lies at one address in memory that nobody writes is the same for all blocks."""
        decide(address)
        likeness = spoil([address], 32)
        if reached_spaces(access.space) & self.mutable:
            likeness = Likeness(spoiled=AXES)
        return [likeness] * max(1, access.width_bytes // 4)

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
        if source_bytes is not None and not source_bytes.is_same:
            raise SpoiledError(source_bytes.axes)

    def load_matrix(self, access: Access, address: Likeness) -> Sequence[Likeness]:
        """As `load`."""
        return list(self.load(access, address))[:1] * access.matrices

    def store_matrix(self, access: Access, address: Likeness, words: object) -> None:
        """As `store`."""
        self.store(access, address, words)


def sees_others(step: Step) -> bool:
    """Whether an instruction reads registers of lanes that do not issue it."""
    return step.instruction.opcode in _SEES_OTHERS


def decide(likeness: Likeness) -> None:
    """A value on which counts depend must be linear."""
    if likeness.spoiled:
        raise SpoiledError(likeness.spoiled)


@dataclass(frozen=True, slots=True)
class Alike:
    """What blocks have in common: registers where each basic block begins, and which blocks are compared.

    Those are blocks that lie whole steps of `strides` blocks apart along each axis (0: at the same place). `mutable`
    are the spaces to which values are stored that matter.
    """

    strides: Form
    mutable: frozenset[Space]
    begins: dict[int, Registers]


def find_alike_registers(flow: Flow, relevant: frozenset[int], bound: BoundLaunch) -> Alike | None:
    """How registers differ between the blocks of a launch; None where no two blocks are alike."""
    x, y, z = (int(count > 1) for count in bound.launch.grid)
    strides: Form = (x, y, z)
    mutable: set[Space] = set()
    for step in flow.steps():
        marks = flow.marks[step.instruction.index]
        if step.instruction.index in relevant and marks.stores is not None:
            mutable |= reached_spaces(marks.stores)
    while any(strides):
        try:
            begins = _follow(flow, relevant, bound, strides, frozenset(mutable))
            return Alike(strides, frozenset(mutable), begins)
        except SpoiledError as error:
            x, y, z = (_widen(strides, bound.launch.grid, axis, error.axes) for axis in range(3))
            strides = x, y, z
    return None


def _widen(strides: Form, grid: Form, axis: int, spoiled: frozenset[int]) -> int:
    """The next stride to try along an axis; 0 where there is none."""
    if axis not in spoiled:
        return strides[axis]
    wider = (stride for stride in STRIDES if stride > strides[axis] > 0 and grid[axis] >= _FEWEST_STEPS * stride)
    return next(wider, 0)


def _follow(
    flow: Flow, relevant: frozenset[int], bound: BoundLaunch, strides: Form, mutable: frozenset[Space]
) -> dict[int, Registers]:
    begins = {0: Registers()}
    specials = known_specials(bound)
    waiting = [0]
    while waiting:
        start = waiting.pop()
        registers = Registers(dict(begins[start].slots))
        port = LikenessPort(bound, registers, strides, mutable, specials)
        block = flow.blocks[start]
        for step in block.steps:
            _follow_step(port, step, flow.marks[step.instruction.index], relevant)
        if block.terminator is not None:
            for slot in flow.marks[block.terminator.instruction.index].reads:
                _decide_whether(registers.read(slot, None))
        for successor in flow.leads[start]:
            if successor not in begins:
                begins[successor] = Registers(dict(registers.slots))
                waiting.append(successor)
            elif begins[successor].join(registers):
                waiting.append(successor)
    return begins


def known_specials(bound: BoundLaunch) -> dict[str, int | None]:
    """Special registers that are one number for the launch."""
    known: dict[str, int | None] = {}
    for name, value in special_registers(bound, 0, 1).items():
        if name not in BLOCK_SPECIALS and name not in LANE_SPECIALS and name not in VECTOR_SPECIALS:
            known[name] = int(np.asarray(value)[0, 0])
    return known


def _follow_step(port: LikenessPort, step: Step, marks: Marks, relevant: frozenset[int]) -> None:
    port.writes = step.instruction.index in relevant
    if not port.writes and step.access is None:
        return
    port.begin(step)
    if step.guard_slot is not None:
        _decide_whether(port.registers.read(step.guard_slot, None))
    if step.action is not None:
        step.action(port)
        return
    likeness = spoil([port.read_slot(slot) for slot in marks.reads], 32)
    for slot in marks.writes:
        port.registers.write(slot, likeness, port.guard)


def _decide_whether(likeness: Likeness) -> None:
    """A condition must come out the same."""
    if not likeness.is_same:
        raise SpoiledError(likeness.axes)
