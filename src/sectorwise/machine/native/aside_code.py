"""Turns instructions that the reference engine's functions run into calls of these between basic blocks.

Registers lie in memory there: what Python reads is written back before, and what it writes is loaded behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.aside_forms import is_trial, read_aside
from sectorwise.machine.native.code import Code
from sectorwise.machine.native.flow import is_conditional
from sectorwise.machine.native.layout import CONTEXT, TRIES
from sectorwise.machine.native.meetings import Motion, find_motion
from sectorwise.machine.native.unsupported import UnsupportedError

if TYPE_CHECKING:
    from sectorwise.machine.native.port import LlvmPort
    from sectorwise.machine.program import Step


def show_aside(port: LlvmPort, step: Step) -> tuple[int, ...]:
    """Gives the slots that Python reads, with a place for these and for those that it writes; notes how they move."""
    aside = read_aside(step.instruction)
    if aside is None:
        raise UnsupportedError(step.instruction.text)
    for slot in (*aside.reads, *aside.writes):
        port.place_of(slot)
        if slot not in port.state.written:
            port.state.needs.add(slot)
    motion = Motion() if port.alike is None else find_motion(aside, port.alike.registers)
    port.asides[step.instruction.index] = motion
    return aside.reads


def end_aside(port: LlvmPort, step: Step, taken: str) -> None:
    """Goes on behind; where a trial fails, its lanes wait in front of it, as if they had not come there yet."""
    emitter, index = port.writer.emitter, step.instruction.index
    behind = f"e{index + 1}"
    if is_conditional(step):
        number = emitter.name()[2:]
        none = emitter.pure(f"icmp eq i32 {taken}, 0")
        emitter.effect(f"br i1 {none}, label %{behind}, label %aside{number}")
        emitter.label(f"aside{number}")
    waits = emitter.result(f"call i32 {emitter.require('aside')}(ptr %ctx, i64 {index}, i32 {taken})")
    if not is_trial(step.instruction):
        emitter.effect(f"br label %{behind}")
        return
    number = emitter.name()[2:]
    over = emitter.pure(f"icmp eq i32 {waits}, 0")
    emitter.effect(f"br i1 {over}, label %{behind}, label %wait{number}")
    emitter.label(f"wait{number}")
    counters = emitter.pure(f"getelementptr i64, ptr %issued, i64 {2 * port.numbers[index]}")
    emitter.effect(f"call void {emitter.require('retract')}(ptr %ctx, ptr {counters}, i32 {port.group})")
    arguments = f"ptr %ctx, i32 {port.group}, i32 {index}, i32 {TRIES}, i32 0, i32 0"
    emitter.effect(f"call void {emitter.require('park')}({arguments})")
    emitter.effect("br label %reschedule")


def write_aside_routine(name: str) -> str:
    """The routine of this name."""
    match name:
        case "aside":
            code = Code(name, "i32", "ptr %ctx, i64 %index, i32 %taken")
            callback = code.load("ptr", "%ctx", CONTEXT["aside"])
            code.give(code.value(f"call i32 {callback}(i64 %index, i32 %taken)"))
        case "retract":
            # It is counted, and takes fuel, when it succeeds.
            code = Code(name, "void", "ptr %ctx, ptr %counters, i32 %mask")
            code.bump("i64", "%counters", -1)
            lanes = code.value(f"zext i32 {code.value('call i32 @llvm.ctpop.i32(i32 %mask)')} to i64")
            code.bump("i64", "%counters", code.value(f"sub i64 0, {lanes}"), 8)
            code.bump("i64", "%ctx", 1, CONTEXT["fuel"])
            code.give()
        case _:
            raise AssertionError(name)
    return code.text()
