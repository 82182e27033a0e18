"""Turns the definition of each instruction into what it reads, writes, loads and stores, by running it on no values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER, ConvergenceBarrier, Predicate, Register
from sectorwise.counting.request import Space
from sectorwise.machine.atomics import is_order_visible, may_see_order
from sectorwise.machine.effects import destinations, slot_number
from sectorwise.machine.native.aside_forms import is_trial, read_aside
from sectorwise.machine.program import ASYNCHRONOUS, TERMINATORS, predicate_slot, register_slot
from sectorwise.machine.registers import BARRIER, PREDICATE, UNIFORM, UNIFORM_PREDICATE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.binary.ir import Instruction
    from sectorwise.counting.request import Access
    from sectorwise.machine.program import Step


class Marks(Struct):
    """What one instruction does: slots, memory, certainty.

    `ordered` says that its result depends on the order of warps, `stains` that what it leaves in memory does,
    `leaves_unknown` that what it leaves there is not known. Of what it reads, `awaits` says no more than which phase of
    a barrier is waited for, whose end depends on no order.
    """

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    inexact: bool = False
    unknown: bool = False
    ordered: bool = False
    stains: bool = False
    loads: Space | None = None
    stores: Space | None = None
    leaves_unknown: bool = False
    awaits: frozenset[int] = frozenset()


class _Nothing:
    """A value that is none."""


_NOTHING = _Nothing()


class _NoAlgebra:
    """An algebra whose operations all give nothing."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "multiply_matrices":
            return lambda _a, _b, c, _form: [_NOTHING] * len(c)
        return lambda *_operands, **_options: _NOTHING


class TracePort(Struct):
    """A port that notes what it is asked for."""

    marks: Marks
    trusted: bool
    algebra: Any = field(default_factory=_NoAlgebra)

    def read_register(self, index: int, *, uniform: bool = False) -> Any:  # noqa: ANN401 - no value
        """Notes a read."""
        if index != ZERO_REGISTER:
            self.marks.reads.add(index + UNIFORM if uniform else index)
        return _NOTHING

    def read_predicate(self, index: int, *, uniform: bool = False) -> Any:  # noqa: ANN401 - no value
        """Notes a read."""
        if index != TRUE_PREDICATE:
            self.marks.reads.add(index + (UNIFORM_PREDICATE if uniform else PREDICATE))
        return _NOTHING

    def write_register(self, index: int, value: object, *, uniform: bool = False) -> None:
        """Notes a write."""
        del value
        if index != ZERO_REGISTER:
            self.marks.writes.add(index + UNIFORM if uniform else index)

    def write_predicate(self, index: int, value: object, *, uniform: bool = False) -> None:
        """Notes a write."""
        del value
        if index != TRUE_PREDICATE:
            self.marks.writes.add(index + (UNIFORM_PREDICATE if uniform else PREDICATE))

    def read_constant(self, bank: int, offset: object) -> Any:  # noqa: ANN401 - no value
        """Constants are known."""
        del bank, offset
        return _NOTHING

    def read_special(self, name: str) -> Any:  # noqa: ANN401 - no value
        """Notes whether the register is known."""
        self.marks.unknown |= name not in KNOWN_SPECIALS
        return _NOTHING

    def active(self) -> Any:  # noqa: ANN401 - no value
        """The lanes are known."""
        return _NOTHING

    def mark_inexact(self) -> None:
        """Notes an inexact result."""
        self.marks.inexact |= not self.trusted

    def mark_unknown(self, reason: str) -> None:
        """Notes an unknown result."""
        del reason
        self.marks.unknown = True

    def load(self, access: Access, address: object) -> Sequence[Any]:
        """Notes a load."""
        del address
        self.marks.loads = access.space
        self.marks.ordered |= may_see_order(access)
        return [_NOTHING] * max(1, access.width_bytes // 4)

    def store(self, access: Access, address: object, words: object) -> None:
        """Notes a store."""
        del address, words
        self.marks.stores = access.space

    def atomic(
        self, access: Access, address: object, update: object, words: int, *, inexact: bool = False
    ) -> Sequence[Any]:
        """Notes a load and a store."""
        del address, update
        self._note_atomic(access)
        self.marks.inexact |= inexact
        return [_NOTHING] * words

    def atomic_words(self, access: Access, address: object, updates: Sequence[object]) -> Sequence[Any]:
        """Notes a load and a store."""
        del address
        self._note_atomic(access)
        self.marks.inexact = True
        return [_NOTHING] * len(updates)

    def _note_atomic(self, access: Access) -> None:
        self.marks.loads = self.marks.stores = access.space
        self.marks.ordered = True
        self.marks.stains |= is_order_visible(access.modifiers)

    def copy_async(self, access: Access, shared_address: object, global_address: object, source_bytes: object) -> None:
        """Notes a load from one space and a store to another."""
        del access, shared_address, global_address, source_bytes
        self.marks.loads, self.marks.stores = Space.GLOBAL, Space.SHARED

    def load_matrix(self, access: Access, address: object) -> Sequence[Any]:
        """Notes a load."""
        del address
        self.marks.loads = access.space
        return [_NOTHING] * access.matrices

    def store_matrix(self, access: Access, address: object, words: object) -> None:
        """Notes a store."""
        del address, words
        self.marks.stores = access.space


LANE_SPECIALS = frozenset({"SR_LANEID", "SR_EQMASK", "SR_LTMASK", "SR_LEMASK", "SR_GTMASK", "SR_GEMASK"})
VECTOR_SPECIALS = ("SR_TID", "SR_TID.X", "SR_TID.Y", "SR_TID.Z")
"""Special registers that differ by lane, in the order of the table that a warp has of them."""
LAUNCH_SPECIALS = (
    "SR_NTID.X",
    "SR_NTID.Y",
    "SR_NTID.Z",
    "SR_NCTAID.X",
    "SR_NCTAID.Y",
    "SR_NCTAID.Z",
    "SR_GRIDID",
    "SR_CgaCtaId",
    "SR_CgaSize",
    "SR_SWINLO",
    "SR_SWINHI",
    "SR_LWINLO",
    "SR_LWINHI",
)
"""Special registers that are one number for the launch, in the order of their table."""
BLOCK_SPECIALS = ("SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z")
KNOWN_SPECIALS = LANE_SPECIALS | frozenset((*VECTOR_SPECIALS, *LAUNCH_SPECIALS, *BLOCK_SPECIALS))


def trace_step(step: Step) -> Marks:
    """What an instruction does, its guard included."""
    marks = Marks()
    if step.guard_slot is not None:
        marks.reads.add(step.guard_slot)
    if step.action is not None:
        step.action(TracePort(marks, step.trusted))
    elif step.instruction.opcode in ASYNCHRONOUS:
        _trace_aside(step.instruction, marks)
    elif step.is_control or step.instruction.opcode in TERMINATORS:
        _trace_control(step.instruction, marks)
    else:
        marks.unknown = True
        marks.writes.update(slot_number(slot) for slot in destinations(step.instruction))
    return marks


def _trace_aside(instruction: Instruction, marks: Marks) -> None:
    """What lies in memory that copies fill is not followed; what a barrier held depends on who came before."""
    aside = read_aside(instruction)
    if aside is None:
        _trace_control(instruction, marks)
        return
    marks.reads.update(aside.reads)
    marks.writes.update(aside.writes)
    marks.loads, marks.stores = aside.loads, aside.stores
    marks.leaves_unknown = aside.stores is not None
    marks.awaits = frozenset(aside.awaited)
    marks.ordered = bool(aside.writes) and not is_trial(instruction)


def _trace_control(instruction: Instruction, marks: Marks) -> None:
    """Branches and waits read all registers that they name; BSSY, BMOV and LEPC write their first."""
    writes = instruction.opcode in ("BSSY", "BMOV", "LEPC", "B2R")
    for place, operand in enumerate(instruction.operands):
        slots: tuple[int, ...] = ()
        match operand:
            case Register() if operand.index != ZERO_REGISTER:
                first = register_slot(operand)
                slots = (first, first + 1) if instruction.opcode == "LEPC" else (first,)
            case Predicate() if operand.index != TRUE_PREDICATE:
                slots = (predicate_slot(operand),)
            case ConvergenceBarrier():
                slots = (BARRIER + operand.index,)
            case _:
                pass
        if writes and (place == 0 or instruction.opcode == "B2R"):
            marks.writes.update(slots)
        else:
            marks.reads.update(slots)
    if instruction.opcode == "BREAK" or (instruction.opcode == "BMOV" and instruction.has("CLEAR")):
        barriers = {slot for slot in marks.reads | marks.writes if slot >= BARRIER}
        marks.reads |= barriers
