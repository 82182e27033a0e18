"""Turns branches, calls, exits and convergence instructions of a frame into where each of its lanes goes next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    Constant,
    ConvergenceBarrier,
    Immediate,
    Predicate,
    Register,
    Target,
)
from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.asynchronous import run_asynchronous
from sectorwise.machine.barriers import arrive_at_barrier
from sectorwise.machine.convergence import COLLECTIVE_KEY, WARPSYNC_KEY, State
from sectorwise.machine.doubts import begin_doubt, counts_depend_on
from sectorwise.machine.effects import CALL_RESULTS
from sectorwise.machine.frame import end, live_lanes, move, of_group, park
from sectorwise.machine.lanes import ALL_LANES, first_lane, pack, unpack
from sectorwise.machine.memory import MOST_LOCAL_BYTES, WINDOW_BYTES, stack_bytes
from sectorwise.machine.program import ASYNCHRONOUS, predicate_slot, register_slot
from sectorwise.machine.registers import BARRIER, STACK_POINTER
from sectorwise.machine.taint import UNKNOWN, UNKNOWN_LEVEL, collect, find_unknown, join

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.program import Step
    from sectorwise.machine.registers import Window
    from sectorwise.machine.taint import Levels

    Masks = npt.NDArray[np.uint32]
    Places = npt.NDArray[np.int64]

INSTRUCTION_BYTES = 16


def leave_block(batch: Batch, frame: Frame, window: Window, step: Step) -> int | None:
    """Runs a terminator. Returns the next place where all groups of the frame stay whole and go to one place.

    Returns None where the batch's groups have changed: then the frame is spent.
    """
    instruction = step.instruction
    behind = instruction.index + 1
    taken = find_taken(batch, frame, window, step)
    if taken is None:
        return behind
    match instruction.opcode:
        case "BRA" | "JMP":
            return _branch(batch, frame, window, instruction, taken)
        case "BRX" | "BRXU" | "JMX" | "JMXU" | "RET":
            known = _judge_target(batch, frame, window, instruction, taken)
            places = _indirect_places(batch, frame, window, instruction)
            # Behind such a jump is what has nothing to do with it: who does not know where to go leaves.
            places = np.where(unpack(taken & ~known), len(batch.tally.program.kernel.instructions), places)
            return _go(batch, frame, taken, places, behind)
        case "CALL":
            return _call(batch, frame, window, instruction, taken)
        case "BPT":
            _trap(batch, frame, taken, instruction, "lanes trap here")
            return None
        case "EXIT" | "KILL":
            end(batch, frame, taken, behind)
            return None
        case "BSYNC":
            return _wait_at_barrier_register(batch, frame, window, instruction, taken)
        case "WARPSYNC":
            return _wait_for_warp(batch, frame, window, instruction, taken)
        case "ENDCOLLECTIVE":
            return _part_again(batch, frame, taken)
        case "BAR":
            return arrive_at_barrier(batch, frame, window, instruction, taken)
        case _ if instruction.opcode in ASYNCHRONOUS:
            return run_asynchronous(batch, frame, window, step, taken)
        case _:
            return behind


def find_taken(batch: Batch, frame: Frame, window: Window, step: Step) -> Masks | None:
    """Lanes of each group for which guard and predicate operands hold; None for no lane at all.

    A condition that is inexact or depends on the order of warps lowers the certainty of what follows; one that is not
    known counts as false, and is said.
    """
    taken = frame.masks
    level: Levels | None = None
    conditions = [] if step.guard_slot is None else [(step.guard_slot, step.guard_negated)]
    if step.instruction.opcode in ("BRA", "JMP", "EXIT"):
        conditions += [
            (predicate_slot(operand), operand.negate)
            for operand in step.instruction.operands
            if isinstance(operand, Predicate) and (operand.index != TRUE_PREDICATE or operand.negate)
        ]
    for slot, negated in conditions:
        lanes = pack(window.read_predicate(slot), frame.warps)
        taken = taken & (~lanes if negated else lanes)
        level = join(level, window.taints.get(slot))
    if level is not None:
        taken = _judge_condition(batch, frame, step.instruction, level, taken)
    return taken if taken.any() else None


def _judge_condition(batch: Batch, frame: Frame, instruction: Instruction, level: Levels, taken: Masks) -> Masks:
    found = collect(level, frame.group)
    if not found:
        return taken
    begin_doubt(batch, frame, instruction.index, level)
    if not found & UNKNOWN:
        return taken
    if counts_depend_on(batch, instruction.index):
        batch.tally.unknown_conditions.add(instruction.index)
    return taken & ~pack(np.broadcast_to(find_unknown(level), (frame.warps, 32)), frame.warps)


def _judge_target(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> Masks:
    """Lanes whose target is known; one that is inexact, or depends on an order, brings doubt with it."""
    level: Levels | None = None
    for operand in instruction.operands:
        if isinstance(operand, Register) and operand.index != ZERO_REGISTER:
            level = join(level, window.taints.get(register_slot(operand)))
    return taken if level is None else _judge_condition(batch, frame, instruction, level, taken)


def _branch(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int | None:
    behind = instruction.index + 1
    if instruction.has("DIV") or instruction.has("CONV"):
        taken = _taken_by_divergence(batch, frame, window, instruction, taken)
    if instruction.has("ANY"):
        # BRA.U.ANY takes all lanes along where one of them is to go.
        taken = np.where(taken != 0, frame.masks, np.uint32(0))
    elif instruction.has("U"):
        # BRA.U goes where all lanes are to go, and none where one is not (measured: tests/machine/test_branches.py).
        taken = np.where(taken == frame.masks, taken, np.uint32(0))
    target = next((operand for operand in instruction.operands if isinstance(operand, Target)), None)
    place = None if target is None or target.offset is None else batch.tally.program.index_of_offset.get(target.offset)
    if place is None:
        batch.tally.limitations[instruction.index, f"{instruction.text}: the target is not in the kernel"] = None
        end(batch, frame, taken, behind)
        return None
    return _go(batch, frame, taken, place, behind)


def _taken_by_divergence(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> Masks:
    """BRA.DIV branches where not all living lanes of the given mask are in the group; BRA.CONV where they are."""
    wanted = _mask_operand(frame, window, instruction) & live_lanes(batch, frame)
    apart = (wanted & ~frame.masks) != 0
    return np.where(apart if instruction.has("DIV") else ~apart, taken, np.uint32(0))


def _mask_operand(frame: Frame, window: Window, instruction: Instruction) -> Masks:
    """The lane mask that a WARPSYNC or BRA.DIV names; without one, all lanes."""
    for operand in instruction.operands:
        match operand:
            case Register():
                masks = np.zeros(frame.warps, np.uint32)
                if operand.index != ZERO_REGISTER:
                    masks = of_group(frame, window.read(register_slot(operand))).astype(np.uint32)
                return ~masks if operand.invert else masks
            case Immediate():
                return np.full(frame.warps, operand.value & 0xFFFFFFFF, np.uint32)
            case _:
                pass
    return np.full(frame.warps, ALL_LANES, np.uint32)


def _go(batch: Batch, frame: Frame, taken: Masks, places: Places | int, behind: int) -> int | None:
    """Sends `taken` to a place, or each lane to its own (`[n, 32]`), and the other lanes behind."""
    rest = frame.masks & ~taken
    if isinstance(places, int):
        if not rest.any():
            return places
        move(batch, frame, [taken, rest], [places, behind])
        return None
    lanes = unpack(taken)
    targets = [int(place) for place in list_distinct(places[lanes])]
    if len(targets) == 1 and not rest.any():
        return targets[0]
    masks = [pack(lanes & (places == target), frame.warps) for target in targets]
    move(batch, frame, [*masks, rest], [*targets, behind])
    return None


def _indirect_places(batch: Batch, frame: Frame, window: Window, instruction: Instruction) -> Places:
    """Places `[n, 32]` of BRX, JMX, RET and indirect calls: a register pair plus what the instruction adds.

    BRX adds the address behind itself and a number; the others the address of the function that they name. A lane
    whose target is not in the kernel goes nowhere: it exits, and this is said.
    """
    register = next((operand for operand in instruction.operands if isinstance(operand, Register)), None)
    base = 0
    for operand in instruction.operands:
        match operand:
            case Immediate():
                base += operand.value
            case Target():
                base += operand.offset or 0
            case _:
                pass
    if instruction.opcode in ("BRX", "BRXU"):
        base += instruction.offset + INSTRUCTION_BYTES
    value = np.zeros((1, 1), np.int64)
    if register is not None and register.index != ZERO_REGISTER:
        slot = register_slot(register)
        value = window.read(slot).astype(np.int64)
        if instruction.opcode not in ("BRX", "BRXU"):
            value = value | window.read(slot + 1).astype(np.int64) << 32
    offsets = np.broadcast_to(value + base, (frame.warps, 32))
    table = batch.tally.program.index_of_offset
    places = np.full(offsets.shape, len(batch.tally.program.kernel.instructions), np.int64)
    for offset in list_distinct(offsets):
        place = table.get(int(offset))
        if place is not None:
            places[offsets == offset] = place
    return places


def _call(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int | None:
    """Goes to a function of the kernel; steps over one that is not, and says so. Lanes whose stack is full end."""
    behind = instruction.index + 1
    fallen = _find_fallen(batch, frame, window) & taken
    if fallen.any():
        size = stack_bytes(batch.tally.bound)
        _trap(batch, frame, fallen, instruction, f"the {size:,} bytes of the stack are used up", instruction.index)
        return None
    table = batch.tally.program.index_of_offset
    direct = [operand for operand in instruction.operands if isinstance(operand, Target)]
    indirect = any(isinstance(operand, Register | Constant) for operand in instruction.operands)
    if direct and not indirect:
        place = None if direct[0].offset is None else table.get(direct[0].offset)
        if place is not None:
            return _go(batch, frame, taken, place, behind)
        name = direct[0].symbol or "a function outside of the kernel"
    else:
        places = _indirect_places(batch, frame, window, instruction)
        inside = places < len(batch.tally.program.kernel.instructions)
        if _is_target_unknown(window, instruction, taken):
            name = "a function that is not known"
        elif inside[unpack(taken)].all():
            return _go(batch, frame, taken, places, behind)
        else:
            name = _name_external(batch, frame, window, instruction)
    if name == "__assertfail":
        _trap(batch, frame, taken, instruction, "an assertion fails here")
        return None
    because = f"the call of {name} is stepped over: what it does is not seen"
    batch.tally.limitations[instruction.index, because] = None
    batch.tally.origins.setdefault(instruction.index, f"{name} is not seen")
    for register in CALL_RESULTS:
        window.write_taint(register, UNKNOWN_LEVEL, unpack(taken))
        if window.rows is not None:
            window.written.add(register)
    return behind


def _find_fallen(batch: Batch, frame: Frame, window: Window) -> Masks:
    """Lanes whose stack pointer has left their local memory, `[warps]`: recursion without end comes to this.

    It is looked at before each call, so it lies one function's part below at most.
    """
    below = WINDOW_BYTES - stack_bytes(batch.tally.bound) - window.read(STACK_POINTER).astype(np.int64)
    return pack((below > 0) & (below <= MOST_LOCAL_BYTES), frame.warps)


def _is_target_unknown(window: Window, instruction: Instruction, taken: Masks) -> bool:
    """Whether some lane's call goes to an address of which nothing is known."""
    level: Levels | None = None
    for operand in instruction.operands:
        if isinstance(operand, Register) and operand.index != ZERO_REGISTER:
            first = register_slot(operand)
            level = join(level, join(window.taints.get(first), window.taints.get(first + 1)))
    lanes = unpack(taken)
    return level is not None and bool(collect(np.broadcast_to(level, lanes.shape), lanes) & UNKNOWN)


def _trap(
    batch: Batch, frame: Frame, taken: Masks, instruction: Instruction, what: str, others_at: int | None = None
) -> None:
    """Lets lanes end where a GPU would end the whole launch, and says so; others go on (None: behind it)."""
    because = f"{what}: on a GPU the launch fails, here only they end"
    batch.tally.limitations[instruction.index, because] = None
    end(batch, frame, taken, instruction.index + 1 if others_at is None else others_at)


def _name_external(batch: Batch, frame: Frame, window: Window, instruction: Instruction) -> str:
    register = next((operand for operand in instruction.operands if isinstance(operand, Register)), None)
    if register is None:
        return "a function outside of the kernel"
    slot = register_slot(register)
    low, high = (of_group(frame, window.read(slot + k)).astype(np.int64)[0] for k in (0, 1))
    address = int(low) | int(high) << 32
    return next((name for name, at in batch.tally.bound.externals if at == address), f"code at 0x{address:x}")


def _wait_at_barrier_register(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks
) -> int | None:
    barrier = next(operand for operand in instruction.operands if isinstance(operand, ConvergenceBarrier))
    awaited = of_group(frame, window.read(BARRIER + barrier.index)).astype(np.uint32)
    return _wait(batch, frame, instruction, taken, awaited & live_lanes(batch, frame), barrier.index)


def _wait_for_warp(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int | None:
    """WARPSYNC joins the lanes of a mask; the collective form only as far as ENDCOLLECTIVE, then they part again."""
    awaited = _mask_operand(frame, window, instruction) & live_lanes(batch, frame)
    if not instruction.has("COLLECTIVE"):
        return _wait(batch, frame, instruction, taken, awaited, WARPSYNC_KEY)
    target = next((operand.offset for operand in instruction.operands if isinstance(operand, Target)), None)
    place = batch.tally.program.index_of_offset.get(-1 if target is None else target, instruction.index + 1)
    rows = np.arange(frame.warps) if frame.rows is None else frame.rows
    lanes = unpack(taken)
    goes_on = np.stack(np.broadcast_arrays(np.int64(place), first_lane(frame.masks)[:, None]), axis=-1)
    batch.resumes[rows] = np.where(lanes[:, :, None], goes_on, batch.resumes[rows])
    return _wait(batch, frame, instruction, taken, awaited, COLLECTIVE_KEY)


def _part_again(batch: Batch, frame: Frame, taken: Masks) -> int | None:
    """Each group that came into a collective goes on by itself, where its own WARPSYNC said."""
    rows = np.arange(frame.warps) if frame.rows is None else frame.rows
    places, origins = batch.resumes[rows, :, 0], batch.resumes[rows, :, 1]
    lanes = unpack(taken)
    found = [int(origin) for origin in list_distinct(origins[lanes])]
    masks = [pack(lanes & (origins == origin), frame.warps) for origin in found]
    move(batch, frame, masks, [places[:, origin] for origin in found])
    return None


def _wait(batch: Batch, frame: Frame, instruction: Instruction, taken: Masks, awaited: Masks, key: int) -> int | None:
    """Goes on where everyone is there already; else parks the groups until the others come."""
    behind = instruction.index + 1
    if not (awaited & ~taken).any():
        return behind
    park(batch, frame, taken, instruction.index, State.MEETS, key, awaited)
    return None
