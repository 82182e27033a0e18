"""Turns a kernel's instructions into what one warp issues over and over, what it loads, and where it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.binary.ir import Immediate, Target

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sectorwise.binary.ir import Instruction, Kernel

WARP_LANES = 32
NO_BARRIER = 7
"""The number of a scoreboard that means none, in the encoding."""

_COPY = "LDGSTS"
_GLOBAL_LOADS = frozenset({"LDG", "LD", _COPY})
_FETCHES = frozenset({"ATOMG", "ATOM"})
_GLOBAL_STORES = frozenset({"STG", "ST", "RED", "REDG"})
_WIDTHS_BYTES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}


class Shares(Struct, frozen=True):
    """The parts of an instruction's sectors that come from, or go to, DRAM and the L2, and the rest hits in L1.

    `waiting` is the part that finds its line in the L2, but on its way from DRAM. `late` is the part of its requests
    that ask for a line that L1 does not have at the time, whether it is missed or on its way, and `late_lines` the part
    of its lines.
    """

    dram: float
    l2: float
    waiting: float
    late: float
    late_lines: float


class Access(Struct, frozen=True):
    """What one global memory instruction of a warp moves, on average over the warps that issue it.

    `request_bytes` is what the warp asks for, in whole sectors, in so many `places` that are not neighbours;
    `dram_share` is the part of these bytes that comes from DRAM. So is `l2_share` of the L2: with `dram_share` it is
    the part of the requests that wait for more than L1. `waiting_share` is the part of `l2_share` that waits for DRAM,
    as another warp or SM asked first.
    """

    request_bytes: float
    places: int = 1
    dram_share: float = 1.0
    l2_share: float = 0.0
    waiting_share: float = 0.0


class Slot(Struct, frozen=True):
    """One issue of a warp: it waits for scoreboards, issues, and lets the next follow `stall_cycles` later.

    `waits_for` are the scoreboards (0 to 5) that must be clear first; `sets` is the one that clears when the result
    is there, `frees` the one that clears when the operands are read; None: none. `load` and `store` are set for
    global memory; `is_block_barrier` marks where a block's warps wait for each other. What a load of `copies` brings
    goes past registers: it joins a group that is open until a slot `commits` it; `groups_left` waits until so many of
    the groups at most, the last ones, are on their way (None: it does not wait).
    """

    stall_cycles: int
    waits_for: tuple[int, ...] = ()
    sets: int | None = None
    frees: int | None = None
    load: Access | None = None
    store: Access | None = None
    is_block_barrier: bool = False
    branches: bool = False
    copies: bool = False
    commits: bool = False
    groups_left: int | None = None


class Schedule(Struct, frozen=True):
    """What one warp issues over and over: a loop's body, or a whole kernel that a next block repeats."""

    slots: tuple[Slot, ...]
    repeats: bool

    @property
    def load_bytes(self) -> float:
        """Bytes that a warp loads from global memory in one pass."""
        return sum(slot.load.request_bytes for slot in self.slots if slot.load)

    @property
    def dram_bytes(self) -> float:
        """Bytes that a warp moves from and to DRAM in one pass."""
        accesses = (access for slot in self.slots for access in (slot.load, slot.store) if access)
        return sum(access.request_bytes * access.dram_share for access in accesses)

    @property
    def written_share(self) -> float:
        """The part of these bytes that goes to DRAM."""
        written = sum(slot.store.request_bytes * slot.store.dram_share for slot in self.slots if slot.store)
        return written / self.dram_bytes if written else 0.0


def schedule_loop(
    kernel: Kernel, accesses: Mapping[int, Access] | None = None, issued: Sequence[int] | None = None
) -> Schedule:
    """The schedule of the innermost loop that loads the most from global memory, else that of the whole kernel.

    `accesses` says what the memory instruction of that index moves a warp; an instruction that is not in it is taken
    as 32 neighbouring lanes of its own width, all from DRAM. `issued` [instructions] says how many warps issued each
    instruction of a launch: then that loop counts which loaded the most over the launch, if it loaded more than the
    code outside of it, and instructions that no warp issued are left out.
    """
    code = [each for each in kernel.instructions if issued is None or issued[each.index] or each.opcode == "EXIT"]
    loops = find_loops(code)
    schedules = [_schedule(loop, accesses or {}, repeats=True) for loop in loops]
    loading = [(schedule, loop) for schedule, loop in zip(schedules, loops, strict=True) if schedule.load_bytes]
    whole = _schedule(_cut_at_end(code), accesses or {}, repeats=False)
    if not loading:
        return whole
    if issued is None:
        return max(loading, key=lambda pair: pair[0].load_bytes)[0]
    loaded = [_load_bytes(loop, accesses or {}, issued) for _, loop in loading]
    most = max(loaded)
    return loading[loaded.index(most)][0] if 2 * most >= _load_bytes(code, accesses or {}, issued) else whole


def schedule_instructions(
    instructions: Sequence[Instruction], accesses: Mapping[int, Access], *, repeats: bool
) -> Schedule:
    """The schedule of these instructions, one after the other, over and over or once.

    What runs once waits in the end for all that it asked for: a loop that it asks for beforehand does.
    """
    schedule = _schedule(instructions, accesses, repeats=repeats)
    if repeats or not schedule.load_bytes:
        return schedule
    return Schedule((*schedule.slots, Slot(1, commits=True), Slot(1, tuple(range(6)), groups_left=0)), repeats)


def find_spans(instructions: Sequence[Instruction]) -> tuple[tuple[int, int], ...]:
    """First and last place of each loop, inner ones too: from a branch's target up to the branch."""
    index_of = {instruction.offset: position for position, instruction in enumerate(instructions)}
    spans: list[tuple[int, int]] = []
    for position, instruction in enumerate(instructions):
        target = instruction.operands[-1] if instruction.opcode == "BRA" and instruction.operands else None
        if isinstance(target, Target) and target.offset is not None:
            first = index_of.get(target.offset)
            if first is not None and first < position:
                spans.append((first, position))
    return tuple(spans)


def find_loops(instructions: Sequence[Instruction]) -> tuple[tuple[Instruction, ...], ...]:
    """The bodies of innermost loops in code order: from a branch's target up to the branch, no other loop inside."""
    spans = find_spans(instructions)
    innermost = [
        span
        for span in spans
        if not any(other != span and span[0] <= other[0] and other[1] <= span[1] for other in spans)
    ]
    return tuple(tuple(instructions[first : last + 1]) for first, last in innermost)


def _load_bytes(instructions: Sequence[Instruction], accesses: Mapping[int, Access], issued: Sequence[int]) -> float:
    """Bytes that the instructions loaded from global memory over the launch."""
    slots = (_read_slot(instruction, accesses) for instruction in instructions)
    return sum(
        slot.load.request_bytes * int(issued[instruction.index])
        for instruction, slot in zip(instructions, slots, strict=True)
        if slot.load
    )


def load_width_bytes(instruction: Instruction) -> int:
    """Bytes that each lane of a memory instruction moves, from its modifiers."""
    return next((_WIDTHS_BYTES[name] for name in instruction.modifiers if name in _WIDTHS_BYTES), 4)


def _schedule(instructions: Sequence[Instruction], accesses: Mapping[int, Access], *, repeats: bool) -> Schedule:
    return Schedule(tuple(_read_slot(instruction, accesses) for instruction in instructions), repeats)


def _read_slot(instruction: Instruction, accesses: Mapping[int, Access]) -> Slot:
    control = instruction.control
    moves_memory = instruction.opcode in _GLOBAL_LOADS or instruction.opcode in _GLOBAL_STORES
    access = accesses.get(instruction.index) if moves_memory else None
    if moves_memory and access is None:
        access = Access(request_bytes=load_width_bytes(instruction) * WARP_LANES)
    load = access if instruction.opcode in _GLOBAL_LOADS else None
    if instruction.opcode in _FETCHES:
        # The old value comes from the L2, where the work is done: about 30 cycles later than a load's
        # (tests/measured/device/contention.json). It moves no sectors.
        load = Access(request_bytes=0.0, dram_share=0.0, l2_share=1.0)
    return Slot(
        stall_cycles=max(1, control.stall_cycles),
        waits_for=tuple(barrier for barrier in range(6) if control.wait_mask >> barrier & 1),
        sets=None if control.write_barrier == NO_BARRIER else control.write_barrier,
        frees=None if control.read_barrier == NO_BARRIER else control.read_barrier,
        load=load,
        store=access if instruction.opcode in _GLOBAL_STORES else None,
        is_block_barrier=instruction.opcode == "BAR" and instruction.has("SYNC"),
        branches=instruction.opcode == "BRA",
        copies=instruction.opcode == _COPY,
        commits=instruction.opcode == "LDGDEPBAR",
        groups_left=_count_left(instruction),
    )


def _count_left(instruction: Instruction) -> int | None:
    """Groups of copies that may be on their way still, where an instruction waits for all others."""
    if instruction.opcode != "DEPBAR":
        return None
    return next((each.value for each in instruction.operands if isinstance(each, Immediate)), 0)


def _cut_at_end(instructions: Sequence[Instruction]) -> Sequence[Instruction]:
    """Up to the last unconditional EXIT of the entry: what follows is padding or called functions."""
    for position, instruction in enumerate(instructions):
        if instruction.opcode == "EXIT" and instruction.guard is None:
            return instructions[: position + 1]
    return instructions
