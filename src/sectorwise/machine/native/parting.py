"""Turns an indirect branch whose lanes go to several places into code that makes a group of those of each place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.layout import LANES, WARP
from sectorwise.machine.native.writer import ALL_ZERO, VECTOR

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.machine.native.emitter import Emitter

_INSTRUCTION_SHIFT = 4
"""Instructions are numbered from the kernel's begin, and have 16 bytes."""


def part_lanes(emitter: Emitter, taken: str, offsets: str, known: Iterable[int]) -> None:
    """Ends a block: the running group's lanes `taken`, i32, leave it for where `offsets`, bytes of each, says.

    Where that is no place of the `known` ones, the launch gives up.
    """
    number = emitter.name()[2:]
    at = emitter.pure(f"getelementptr i8, ptr %warp, i64 {WARP['current']}")
    current = emitter.result(f"load i32, ptr {at}")
    emitter.effect(
        f"call void {emitter.require('remove')}(ptr %warp, i64 {emitter.pure(f'zext i32 {current} to i64')})"
    )
    emitter.effect(f"br label %before{number}")
    emitter.label(f"before{number}")
    emitter.effect(f"br label %part{number}")
    emitter.label(f"part{number}")
    rest = emitter.name()
    head = len(emitter.lines)
    lane = emitter.result(f"call i32 @llvm.cttz.i32(i32 {rest}, i1 true)")
    offset = emitter.result(f"extractelement {VECTOR} {offsets}, i32 {lane}")
    one = emitter.result(f"insertelement {VECTOR} poison, i32 {offset}, i64 0")
    every = emitter.result(f"shufflevector {VECTOR} {one}, {VECTOR} poison, {VECTOR} {ALL_ZERO}")
    same = emitter.result(f"icmp eq {VECTOR} {offsets}, {every}")
    there = emitter.result(f"and i32 {rest}, {emitter.result(f'bitcast <{LANES} x i1> {same} to i32')}")
    left = emitter.result(f"xor i32 {rest}, {there}")
    cases = " ".join(f"i32 {offset}, label %known{number}" for offset in sorted(known))
    emitter.effect(f"switch i32 {offset}, label %lost [ {cases} ]")
    emitter.label(f"known{number}")
    place = emitter.result(f"lshr i32 {offset}, {_INSTRUCTION_SHIFT}")
    emitter.effect(f"call void {emitter.require('append')}(ptr %warp, i32 {there}, i32 {place})")
    emitter.effect(f"br i1 {emitter.result(f'icmp eq i32 {left}, 0')}, label %reschedule, label %part{number}")
    emitter.lines[head:head] = [f"  {rest} = phi i32 [ {taken}, %before{number} ], [ {left}, %known{number} ]"]
