"""Turns the votes of BAR.RED into what B2R reads: one number for all lanes that waited at the barrier.

The rules are those of `machine.barriers`. Warps take turns, so one may vote anew before another has read the last
result: each warp is told when the barrier lets it go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.native.code import Code
from sectorwise.machine.native.layout import CONTEXT, VOTE, VOTE_BYTES

if TYPE_CHECKING:
    from sectorwise.binary.ir import Instruction

_COUNT, _ALL, _ANY = 0, 1, 2


def choose_vote(instruction: Instruction) -> int:
    """What a BAR.RED asks for, as its routine wants it."""
    if instruction.has("POPC"):
        return _COUNT
    return _ALL if instruction.has("AND") else _ANY


def write_vote_routine() -> str:
    """Adds lanes that ask and those of them that say yes to the vote at a barrier."""
    code = Code("vote", "void", "ptr %ctx, i32 %barrier, i32 %asked, i32 %yes, i32 %question")
    entry = _entry(code, code.value("zext i32 %barrier to i64"))
    for field in ("asked", "yes"):
        lanes = code.value(f"call i32 @llvm.ctpop.i32(i32 %{field})")
        code.bump("i32", entry, lanes, VOTE[field])
    code.store("i32", "%question", entry, VOTE["question"])
    code.give()
    return code.text()


def close_vote(code: Code, barrier: str) -> tuple[str, str]:
    """Ends the vote at a barrier (i64): whether there was one, i1, and what came of it, i32."""
    entry = _entry(code, barrier)
    asked, yes, question = (code.load("i32", entry, VOTE[field]) for field in ("asked", "yes", "question"))
    for field in ("asked", "yes"):
        code.store("i32", 0, entry, VOTE[field])
    every, some = code.value(f"icmp eq i32 {yes}, {asked}"), code.value(f"icmp ne i32 {yes}, 0")
    asks_all = code.value(f"icmp eq i32 {question}, {_ALL}")
    holds = code.value(f"select i1 {asks_all}, i1 {every}, i1 {some}")
    counts = code.value(f"icmp eq i32 {question}, {_COUNT}")
    result = code.value(f"select i1 {counts}, i32 {yes}, i32 {code.value(f'zext i1 {holds} to i32')}")
    return code.value(f"icmp ne i32 {asked}, 0"), result


def _entry(code: Code, barrier: str) -> str:
    return code.at(code.at("%ctx", CONTEXT["votes"]), code.value(f"mul i64 {barrier}, {VOTE_BYTES}"))
