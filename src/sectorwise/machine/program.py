"""Turns a kernel's instructions into basic blocks of steps that are decoded once and run many times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Address,
    Instruction,
    Kernel,
    Predicate,
    Register,
    Target,
)
from sectorwise.counting.request import Operation, Space
from sectorwise.errors import ArgumentError
from sectorwise.machine.divisions import find_trusted_seeds
from sectorwise.machine.forms import access_of
from sectorwise.machine.operands import UnsupportedFormError
from sectorwise.machine.registers import PREDICATE, UNIFORM, UNIFORM_PREDICATE
from sectorwise.machine.semantics.table import SEMANTICS

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.counting.request import Access
    from sectorwise.machine.port import Port

    Action = Callable[[Port[Any]], None]

# Instructions on mbarriers, clusters and whole ranges of memory, behind which lanes may have to wait.
ASYNCHRONOUS = frozenset(
    (
        "ARRIVES",
        "STAS",
        "SYNCS",
        "UBLKCP",
        "UBLKPF",
        "UBLKRED",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "UTCBAR",
        "UTMALDG",
        "UTMAPF",
        "UTMAREDG",
        "UTMASTG",
    )
)
# Instructions that decide where lanes go next; they end a basic block.
TERMINATORS = ASYNCHRONOUS | frozenset(
    (
        "BRA",
        "BRX",
        "BRXU",
        "JMP",
        "JMX",
        "JMXU",
        "EXIT",
        "BSYNC",
        "WARPSYNC",
        "ENDCOLLECTIVE",
        "CALL",
        "RET",
        "BAR",
        "KILL",
        "BPT",
    )
)
# Instructions that only the engine can run, since they work on convergence state; lanes go on behind them.
INLINE_CONTROL = frozenset({"BSSY", "BREAK", "BMOV", "B2R", "LEPC"})
# Scheduling hints.
HINTS = frozenset({"YIELD", "NANOSLEEP", "PREEXIT"})

_TENSOR_MEMORY = "tensor memory is not followed"
_TENSOR_CORES = "what tensor cores read of shared memory is neither computed nor counted"
_WARPGROUP_PRODUCT = "what tensor cores read of shared memory is counted by its size, not computed"
# What is known of opcodes that are not executed.
_NOT_EXECUTED = {
    **dict.fromkeys(("HGMMA", "IGMMA", "QGMMA", "BGMMA"), _WARPGROUP_PRODUCT),
    **dict.fromkeys(("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "UTCCP"), _TENSOR_CORES),
    **dict.fromkeys(("LDTM", "STTM", "UTCSHIFT", "UTCATOMSWS"), _TENSOR_MEMORY),
}

# Opcodes whose result in one lane is made from other lanes.
_CROSS_LANE = frozenset(("SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "CREDUX", "R2UR", "ELECT", "LDSM", "MOVM"))


class Step(Struct, frozen=True):
    """One instruction, decoded: its guard as a register slot, what runs it (None: opcode not known), its access.

    `address_slots` are the registers that its address is made of; `cross_lane` says that a lane's result depends on
    other lanes, `is_control` that the engine runs it, `trusted` that nothing inexact comes out of it.
    """

    instruction: Instruction
    guard_slot: int | None
    guard_negated: bool
    action: Action | None
    access: Access | None
    address_slots: tuple[int, ...]
    cross_lane: bool
    is_control: bool
    trusted: bool
    unknown_because: str = ""


class BasicBlock(Struct, frozen=True):
    """Steps from `start` to before `stop`; the last one decides where lanes go if it is a terminator."""

    start: int
    stop: int
    steps: tuple[Step, ...]
    terminator: Step | None

    @property
    def all_steps(self) -> tuple[Step, ...]:
        """The steps with the terminator."""
        return self.steps if self.terminator is None else (*self.steps, self.terminator)


class Program(Struct):
    """A kernel, decoded as far as it has been reached."""

    kernel: Kernel
    index_of_offset: dict[int, int]
    leaders: frozenset[int]
    seeds: frozenset[int]
    blocks: dict[int, BasicBlock] = field(default_factory=dict)


def decode(kernel: Kernel) -> Program:
    """A program with nothing decoded yet: basic blocks are made where lanes arrive."""
    index_of_offset = {instruction.offset: instruction.index for instruction in kernel.instructions}
    targets: set[int] = set()
    for instruction in kernel.instructions:
        for operand in instruction.operands:
            if isinstance(operand, Target) and operand.offset in index_of_offset:
                targets.add(index_of_offset[operand.offset])
    return Program(kernel, index_of_offset, frozenset(targets), find_trusted_seeds(kernel))


def block_at(program: Program, start: int) -> BasicBlock:
    """The basic block that begins at an instruction."""
    block = program.blocks.get(start)
    if block is None:
        block = _make_block(program, start)
        program.blocks[start] = block
    return block


def _make_block(program: Program, start: int) -> BasicBlock:
    instructions = program.kernel.instructions
    steps: list[Step] = []
    terminator: Step | None = None
    stop = start
    while stop < len(instructions) and (stop == start or stop not in program.leaders):
        step = make_step(instructions[stop], trusted=stop in program.seeds)
        stop += 1
        if step.instruction.opcode in TERMINATORS:
            terminator = step
            break
        steps.append(step)
    return BasicBlock(start, stop, tuple(steps), terminator)


def make_step(instruction: Instruction, *, trusted: bool = False) -> Step:
    """Decodes one instruction; an opcode or form without a definition gets no action."""
    guard = instruction.guard
    slot: int | None = None
    negated = False
    if guard is not None and (guard.index != TRUE_PREDICATE or guard.negate):
        slot, negated = predicate_slot(guard), guard.negate
    action: Action | None = None
    because = ""
    if instruction.opcode in HINTS:
        action = _do_nothing
    elif instruction.opcode not in TERMINATORS | INLINE_CONTROL:
        define = SEMANTICS.get(instruction.opcode)
        if define is None:
            because = f"{instruction.opcode} is not known"
            if instruction.opcode in _NOT_EXECUTED:
                because = f"{instruction.opcode}: {_NOT_EXECUTED[instruction.opcode]}"
        else:
            try:
                action = define(instruction)
            except (UnsupportedFormError, ArgumentError) as error:
                because = str(error)
            except (ValueError, IndexError):
                # An operand list that does not fit the opcode shows as one of these when it is taken apart.
                because = f"{instruction.text}: this form is not known"
    return Step(
        instruction,
        slot,
        negated,
        action,
        access_of(instruction),
        _address_slots(instruction),
        instruction.opcode in _CROSS_LANE,
        instruction.opcode in INLINE_CONTROL,
        trusted,
        because,
    )


def _do_nothing(_port: Port[Any]) -> None:
    pass


def predicate_slot(predicate: Predicate) -> int:
    """Slot of a predicate register."""
    return (UNIFORM_PREDICATE if predicate.uniform else PREDICATE) + predicate.index


def register_slot(register: Register) -> int:
    """Slot of a register."""
    return register.index + (UNIFORM if register.uniform else 0)


def _address_slots(instruction: Instruction) -> tuple[int, ...]:
    slots: list[int] = []
    access = access_of(instruction)
    is_short = access is not None and access.space in (Space.SHARED, Space.LOCAL)
    # The first address of a copy is its target in shared memory: one register.
    copies = access is not None and access.operation is Operation.ASYNC_COPY
    for place, operand in enumerate(instruction.operands):
        if isinstance(operand, Address):
            is_word = is_short or (copies and place == 0)
            for register in (operand.base, operand.uniform):
                if register is not None and register.index != ZERO_REGISTER:
                    first = register_slot(register)
                    slots.extend((first,) if is_word or "U32" in operand.base_suffixes else (first, first + 1))
    return tuple(slots)
