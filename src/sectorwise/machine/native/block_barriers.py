"""Turns BAR into code: who votes, who waits for how many threads of the block, and who passes without waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.binary.ir import TRUE_PREDICATE, Immediate, Predicate, Register
from sectorwise.machine.native.flow import is_conditional
from sectorwise.machine.native.layout import BARRIER
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native.values import Kind, Operand
from sectorwise.machine.native.votes import choose_vote
from sectorwise.machine.program import predicate_slot, register_slot

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction
    from sectorwise.binary.ir import Operand as InstructionOperand
    from sectorwise.machine.native.port import LlvmPort
    from sectorwise.machine.program import Step


def read_barrier(port: LlvmPort, instruction: Instruction) -> tuple[str, str]:
    """The number of a barrier and how many threads it waits for (0: all that live), both i32 of the first lane."""
    operands = [operand for operand in instruction.operands if not isinstance(operand, Predicate)]
    most = 1 if instruction.has("RED") else 2
    if not any(map(instruction.has, ("SYNC", "RED", "ARV"))) or len(operands) > most:
        raise UnsupportedError(instruction.text)
    number, threads = (_read_number(port, instruction, each) for each in (*operands, None, None)[:2])
    return port.writer.emitter.pure(f"and i32 {number}, 15"), threads


def _read_number(port: LlvmPort, instruction: Instruction, operand: InstructionOperand | None) -> str:
    match operand:
        case None | Register(index=255):
            return "0"
        case Immediate(value=value):
            return str(value)
        case Register():
            group = Operand(Kind.PREDICATE, lanes=True, text=port.group)
            value_of_group = port.algebra.first_active(port.read_slot(register_slot(operand)), group)
            return port.writer.text(value_of_group, lanes=False)
        case _:
            raise UnsupportedError(instruction.text)


def read_vote(port: LlvmPort, instruction: Instruction, taken: str) -> str:
    """The lanes that say yes to BAR.RED's predicate, which stands last; without one all do."""
    question = next((o for o in reversed(instruction.operands) if isinstance(o, Predicate)), None)
    if question is None:
        return taken
    value = port.algebra.predicate(True)  # noqa: FBT003 - a value
    if question.index != TRUE_PREDICATE:
        value = port.read_slot(predicate_slot(question))
    value = port.algebra.invert(value) if question.negate else value
    return port.writer.emitter.pure(f"and i32 {taken}, {port.writer.mask(value)}")


def end_at_barrier(port: LlvmPort, step: Step, taken: str, barrier: tuple[str, str], yes: str) -> None:
    """Votes where that is asked for, and waits for the block, or is counted there; where no lane does, goes on."""
    emitter, instruction, behind = port.writer.emitter, step.instruction, step.instruction.index + 1
    number, threads = barrier
    if is_conditional(step):
        name = emitter.name()[2:]
        none = emitter.pure(f"icmp eq i32 {taken}, 0")
        emitter.effect(f"br i1 {none}, label %e{behind}, label %arrive{name}")
        emitter.label(f"arrive{name}")
    if instruction.has("ARV"):
        emitter.effect(f"call void {emitter.require('pass')}(ptr %ctx, i32 {number}, i32 {taken})")
        emitter.effect(f"br label %e{behind}")
        return
    if yes:
        vote = f"i32 {number}, i32 {taken}, i32 {yes}, i32 {choose_vote(instruction)}"
        emitter.effect(f"call void {emitter.require('vote')}(ptr %ctx, {vote})")
    arguments = f"ptr %ctx, i32 {taken}, i32 {instruction.index}, i32 {BARRIER}, i32 {number}, i32 {threads}"
    emitter.effect(f"call void {emitter.require('park')}({arguments})")
    emitter.effect("br label %reschedule")
