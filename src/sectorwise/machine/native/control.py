"""Turns branches, exits, calls and convergence instructions into the ends of basic blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.binary.ir import (
    TRUE_PREDICATE,
    ZERO_REGISTER,
    ConvergenceBarrier,
    Immediate,
    Predicate,
    Register,
    Target,
)
from sectorwise.machine.native.aside_code import end_aside, show_aside
from sectorwise.machine.native.block_barriers import end_at_barrier, read_barrier, read_vote
from sectorwise.machine.native.flow import direct_target, indirect_places, is_conditional, is_indirect_call
from sectorwise.machine.native.layout import MEETS, WARP, WARPSYNC_KEY
from sectorwise.machine.native.parting import part_lanes
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native.values import Kind, Operand
from sectorwise.machine.program import ASYNCHRONOUS, predicate_slot, register_slot
from sectorwise.machine.registers import BARRIER

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.native.port import LlvmPort
    from sectorwise.machine.program import BasicBlock, Program, Step

INSTRUCTION_BYTES = 16
_INDIRECT = frozenset({"RET", "BRX", "BRXU", "JMX", "JMXU"})
ALL_LANES = -1


class Ending(Struct, frozen=True):
    """What a block's end needs to know, read before registers are written back: lanes taken, a mask, a place.

    `yes` are the lanes that say yes to a vote, `offsets` where each lane goes, where they may go different ways.
    `shown` are slots that Python reads at the block's end. `gives_up` says that the block cannot be run here.
    """

    taken: str
    operand: str = ""
    yes: str = ""
    offsets: str = ""
    shown: tuple[int, ...] = ()
    gives_up: bool = False
    threads: str = "0"
    """How many a barrier waits for; 0: all that live."""


def run_inline_control(port: LlvmPort, instruction: Instruction) -> None:
    """BSSY, BMOV, BREAK, LEPC: changes of convergence registers, behind which all lanes go on."""
    match instruction.opcode:
        case "BSSY":
            port.set_slot(_barrier_slot(instruction), Operand(Kind.WORD, lanes=False, text=port.active_mask()))
        case "BREAK":
            _break(port, _barrier_slot(instruction))
        case "BMOV":
            _move_barrier(port, instruction)
        case "LEPC":
            _load_place(port, instruction)
        case "B2R":
            _read_votes(port, instruction)
        case _:
            raise UnsupportedError(instruction.opcode)


def _barrier_slot(instruction: Instruction) -> int:
    return next(BARRIER + operand.index for operand in instruction.operands if isinstance(operand, ConvergenceBarrier))


def _break(port: LlvmPort, slot: int) -> None:
    # The register's copies of all its lanes change, also of those that do not issue: it is done in memory.
    emitter = port.writer.emitter
    if slot in port.state.written:
        port.store_slot(slot)
        del port.state.written[slot]
    else:
        port.state.needs.add(slot)
    port.state.values.pop(slot, None)
    port.state.entry.pop(slot, None)
    lane = emitter.pure(f"trunc i64 {port.first_lane()} to i32")
    arguments = f"ptr %ctx, ptr {port.place_of(slot)}, i32 {port.active_mask()}, i32 {lane}, i32 {slot - BARRIER}"
    emitter.effect(f"call void {emitter.require('break')}({arguments})")


def _move_barrier(port: LlvmPort, instruction: Instruction) -> None:
    target, source = instruction.operands[0], instruction.operands[-1]
    if isinstance(target, ConvergenceBarrier) and isinstance(source, Register):
        value = port.read_register(source.index)
        _write_barrier(port, BARRIER + target.index, value)
    elif isinstance(source, ConvergenceBarrier):
        slot = BARRIER + source.index
        if isinstance(target, Register) and target.index != ZERO_REGISTER:
            port.write_register(target.index, port.read_slot(slot))
        if instruction.has("CLEAR"):
            _write_barrier(port, slot, port.algebra.word(0))
    else:
        raise UnsupportedError(instruction.text)


def _write_barrier(port: LlvmPort, slot: int, value: Operand) -> None:
    if port.guard is not None:
        raise UnsupportedError("a guarded move of a barrier register")
    port.set_slot(slot, port.algebra.first_active(value, port.active()))


def _load_place(port: LlvmPort, instruction: Instruction) -> None:
    register = next(operand for operand in instruction.operands if isinstance(operand, Register))
    offset = next((operand.offset for operand in instruction.operands if isinstance(operand, Target)), None)
    port.write_register(register.index, port.algebra.word(instruction.offset if offset is None else offset))
    if register.index != ZERO_REGISTER:
        port.write_register(register.index + 1, port.algebra.word(0))


def read_ending(port: LlvmPort, step: Step) -> Ending:
    """Reads what the block's last instruction decides by."""
    taken = port.active_mask()
    emitter, writer = port.writer.emitter, port.writer
    instruction = step.instruction
    if instruction.opcode in ("BRA", "JMP", "EXIT"):
        for operand in instruction.operands:
            if isinstance(operand, Predicate) and (operand.index != TRUE_PREDICATE or operand.negate):
                value = port.read_slot(predicate_slot(operand))
                value = port.algebra.invert(value) if operand.negate else value
                taken = emitter.pure(f"and i32 {taken}, {writer.mask(value)}")
    match instruction.opcode:
        case "BRA" if instruction.has("DIV") or instruction.has("CONV"):
            return Ending(_taken_apart(port, instruction, taken))
        case "BRA" if instruction.has("ANY"):
            some = emitter.pure(f"icmp ne i32 {taken}, 0")
            return Ending(emitter.pure(f"select i1 {some}, i32 {port.group}, i32 0"))
        case "BRA" if instruction.has("U"):
            together = emitter.pure(f"icmp eq i32 {taken}, {port.group}")
            return Ending(emitter.pure(f"select i1 {together}, i32 {taken}, i32 0"))
        case opcode if opcode in ASYNCHRONOUS:
            return Ending(taken, shown=show_aside(port, step))
        case "BSYNC":
            slot = _barrier_slot(instruction)
            return Ending(taken, writer.text(port.read_slot(slot), lanes=False))
        case "WARPSYNC" if instruction.has("COLLECTIVE"):
            raise UnsupportedError(instruction.text)
        case "WARPSYNC":
            return Ending(taken, _mask_operand(port, instruction))
        case opcode if opcode in _INDIRECT or is_indirect_call(instruction):
            if is_conditional(step):
                raise UnsupportedError("a conditional indirect branch")
            offset, offsets = _indirect_offset(port, instruction, taken)
            return Ending(taken, offset, offsets=offsets)
        case "ENDCOLLECTIVE":
            raise UnsupportedError(instruction.text)
        case "BAR":
            yes = read_vote(port, instruction, taken) if instruction.has("RED") else ""
            number, threads = read_barrier(port, instruction)
            return Ending(taken, number, yes, threads=threads)
        case _:
            return Ending(taken)


def _live(port: LlvmPort) -> str:
    emitter = port.writer.emitter
    place = emitter.pure(f"getelementptr i8, ptr %warp, i64 {WARP['live']}")
    return emitter.result(f"load i32, ptr {place}")


def _taken_apart(port: LlvmPort, instruction: Instruction, taken: str) -> str:
    """BRA.DIV branches where not all living lanes of the given mask are in the group; BRA.CONV where they are."""
    emitter = port.writer.emitter
    wanted = emitter.pure(f"and i32 {_mask_operand(port, instruction)}, {_live(port)}")
    absent = emitter.pure(f"and i32 {wanted}, {emitter.pure(f'xor i32 {port.group}, -1')}")
    relation = "ne" if instruction.has("DIV") else "eq"
    apart = emitter.pure(f"icmp {relation} i32 {absent}, 0")
    return emitter.pure(f"select i1 {apart}, i32 {taken}, i32 0")


def _mask_operand(port: LlvmPort, instruction: Instruction) -> str:
    """The lane mask that a WARPSYNC or BRA.DIV names; without one, all lanes."""
    for operand in instruction.operands:
        match operand:
            case Register():
                value = port.algebra.word(0)
                if operand.index != ZERO_REGISTER:
                    value = port.read_slot(register_slot(operand))
                group = Operand(Kind.PREDICATE, lanes=True, text=port.group)
                first = port.algebra.first_active(value, group)
                return port.writer.text(port.algebra.invert(first) if operand.invert else first, lanes=False)
            case Immediate():
                return str(operand.value & 0xFFFFFFFF)
            case _:
                pass
    return str(ALL_LANES)


def _indirect_offset(port: LlvmPort, instruction: Instruction, taken: str) -> tuple[str, str]:
    """The byte offset that the taken lanes go to, i32; -1 where they part, and then those of all lanes, words."""
    base = 0
    register = None
    for operand in instruction.operands:
        match operand:
            case Immediate():
                base += operand.value
            case Target():
                base += operand.offset or 0
            case Register():
                register = operand if register is None else register
            case _:
                pass
    if instruction.opcode in ("BRX", "BRXU"):
        base += instruction.offset + INSTRUCTION_BYTES
    if register is None or register.index == ZERO_REGISTER:
        return str(base), ""
    emitter, algebra, writer = port.writer.emitter, port.algebra, port.writer
    value = algebra.add(port.read_slot(register_slot(register)), algebra.word(base))
    if not value.lanes:
        return writer.text(value, lanes=False), ""
    lanes = Operand(Kind.PREDICATE, lanes=True, text=taken)
    first = algebra.first_active(value, lanes)
    other = writer.mask(algebra.bit_and(lanes, algebra.invert(algebra.equal(value, first))))
    differs = emitter.pure(f"icmp ne i32 {other}, 0")
    offset = emitter.pure(f"select i1 {differs}, i32 -1, i32 {writer.text(first, lanes=False)}")
    return offset, writer.text(value, lanes=True)


def _read_votes(port: LlvmPort, instruction: Instruction) -> None:
    """B2R.RESULT [R], [P]: what came of the warp's last vote."""
    if not instruction.has("RESULT"):
        raise UnsupportedError(instruction.text)
    emitter = port.writer.emitter
    place = emitter.pure(f"getelementptr i8, ptr %warp, i64 {WARP['vote']}")
    result = Operand(Kind.WORD, lanes=False, text=emitter.result(f"load i32, ptr {place}"))
    for operand in instruction.operands:
        match operand:
            case Register():
                port.write_register(operand.index, result)
            case Predicate():
                algebra = port.algebra
                port.write_predicate(operand.index, algebra.invert(algebra.equal(result, algebra.word(0))))
            case _:
                pass


def end_block(port: LlvmPort, program: Program, block: BasicBlock, ending: Ending | None) -> None:
    """Writes the jump at the end of a block."""
    emitter = port.writer.emitter
    behind = block.stop
    if ending is not None and ending.gives_up:
        emitter.effect("br label %lost")
        return
    if block.terminator is None or ending is None:
        emitter.effect(f"br label %e{behind}")
        return
    step = block.terminator
    instruction = step.instruction
    match instruction.opcode:
        case opcode if opcode in _INDIRECT or is_indirect_call(instruction):
            _jump_indirect(port, program, step, ending)
        case "BRA" | "JMP" | "CALL":
            target = direct_target(program, instruction)
            if is_conditional(step):
                _branch(port, ending.taken, target, behind)
            else:
                emitter.effect(f"br label %e{target}")
        case "EXIT" | "KILL" | "BPT":
            _exit(port, step, ending.taken, behind)
        case "BSYNC" | "WARPSYNC":
            key = WARPSYNC_KEY
            if instruction.opcode == "BSYNC":
                key = _barrier_slot(instruction) - BARRIER
            _wait(port, instruction, ending, key)
        case "BAR":
            end_at_barrier(port, step, ending.taken, (ending.operand, ending.threads), ending.yes)
        case opcode if opcode in ASYNCHRONOUS:
            end_aside(port, step, ending.taken)
        case _:
            emitter.effect(f"br label %e{behind}")


def _reschedule(port: LlvmPort, routine: str, arguments: str) -> None:
    emitter = port.writer.emitter
    emitter.effect(f"call void {emitter.require(routine)}({arguments})")
    emitter.effect("br label %reschedule")


def _branch(port: LlvmPort, taken: str, target: int, behind: int) -> None:
    """All lanes one way, all the other, or apart."""
    emitter = port.writer.emitter
    number = emitter.name()[2:]
    rest = emitter.pure(f"xor i32 {port.group}, {taken}")
    every = emitter.pure(f"icmp eq i32 {rest}, 0")
    emitter.effect(f"br i1 {every}, label %e{target}, label %some{number}")
    emitter.label(f"some{number}")
    none = emitter.pure(f"icmp eq i32 {taken}, 0")
    emitter.effect(f"br i1 {none}, label %e{behind}, label %apart{number}")
    emitter.label(f"apart{number}")
    _reschedule(port, "split", f"ptr %ctx, i32 {taken}, i32 {target}, i32 {rest}, i32 {behind}")


def _exit(port: LlvmPort, step: Step, taken: str, behind: int) -> None:
    emitter = port.writer.emitter
    if is_conditional(step):
        number = emitter.name()[2:]
        none = emitter.pure(f"icmp eq i32 {taken}, 0")
        emitter.effect(f"br i1 {none}, label %e{behind}, label %exit{number}")
        emitter.label(f"exit{number}")
    _reschedule(port, "leave", f"ptr %ctx, i32 {taken}, i32 {behind}")


def _wait(port: LlvmPort, instruction: Instruction, ending: Ending, key: int) -> None:
    """Goes on where everyone is there already; else waits until the others come."""
    emitter = port.writer.emitter
    number = emitter.name()[2:]
    awaited = emitter.pure(f"and i32 {ending.operand}, {_live(port)}")
    absent = emitter.pure(f"and i32 {awaited}, {emitter.pure(f'xor i32 {ending.taken}, -1')}")
    here = emitter.pure(f"icmp eq i32 {absent}, 0")
    none = emitter.pure(f"icmp eq i32 {ending.taken}, 0")
    goes = emitter.pure(f"or i1 {here}, {none}")
    emitter.effect(f"br i1 {goes}, label %e{instruction.index + 1}, label %wait{number}")
    emitter.label(f"wait{number}")
    arguments = f"ptr %ctx, i32 {ending.taken}, i32 {instruction.index}, i32 {MEETS}, i32 {key}, i32 {awaited}"
    _reschedule(port, "park", arguments)


def _jump_indirect(port: LlvmPort, program: Program, step: Step, ending: Ending) -> None:
    """To places that are known, all lanes as one or those of each place apart; elsewhere the launch gives up."""
    emitter = port.writer.emitter
    offsets = {program.kernel.instructions[place].offset: place for place in indirect_places(program, step.instruction)}
    cases = " ".join(f"i32 {offset}, label %e{place}" for offset, place in sorted(offsets.items()))
    if not ending.offsets:
        emitter.effect(f"switch i32 {ending.operand}, label %lost [ {cases} ]")
        return
    number = emitter.name()[2:]
    emitter.effect(f"switch i32 {ending.operand}, label %lost [ i32 -1, label %apart{number} {cases} ]")
    emitter.label(f"apart{number}")
    part_lanes(emitter, ending.taken, ending.offsets, offsets)
