"""Turns atomic updates into code: one routine for integer operations, rounds of lanes that do not meet for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sectorwise.counting.request import Space
from sectorwise.machine.native.layout import CONTEXT
from sectorwise.machine.native.values import LANES, Kind, Operand

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.counting.request import Access
    from sectorwise.machine.algebra import Algebra
    from sectorwise.machine.native.writer import Writer
    from sectorwise.machine.program import Step

    Update = Callable[[Algebra[Operand], Operand], Operand]

LONGS = f"<{LANES} x i64>"

_FOLDS = {"ADD": ("add", 0), "POPC": ("add", 0), "AND": ("and", -1), "OR": ("or", 0), "XOR": ("xor", 0)}
_FLOATS = ("F16", "F32", "F64", "BF16")


_UNLIKELY = (0x9E3779B9, 0x7F4A7C15)
"""A compare-and-swap expects one of these at most."""


class Writing(Protocol):
    """What an update needs of the port."""

    algebra: Algebra[Operand]
    writer: Writer


def choose_fold(modifiers: tuple[str, ...], *, signed_bits: int) -> tuple[str, int] | None:
    """The operation of an integer atomic in one routine, and the old value that makes it give its operand."""
    if "CAS" in modifiers or "CAST" in modifiers:
        return None
    if "EXCH" in modifiers:
        return "exch", 0
    if any(modifier.startswith(_FLOATS) for modifier in modifiers):
        return None
    for modifier in modifiers:
        if modifier in _FOLDS:
            return _FOLDS[modifier]
        if modifier in ("MIN", "MAX"):
            signed = any(each in ("S32", "S64") for each in modifiers)
            highest = (1 << (signed_bits - 1)) - 1 if signed else -1
            lowest = -(1 << (signed_bits - 1)) if signed else 0
            name = f"{'s' if signed else 'u'}{modifier.lower()}"
            return name, (highest if modifier == "MIN" else lowest)
    return None


def name_resolver(step: Step | None, access: Access, size: int, racing: frozenset[int]) -> str:
    """The routine that finds where lanes are: what the order of blocks would show in must be in shared memory.

    So must attempts of a loop (CAST.SPIN), whose winners are those of its banks.
    """
    racing_here = step is not None and step.instruction.index in racing
    inside = access.space is Space.GENERIC and (racing_here or "SPIN" in access.modifiers)
    return f"resolve.{'inside' if inside else access.space}.{size}"


def update_one_by_one(
    port: Writing, modifiers: tuple[str, ...], update: Update, words: int, pending: str
) -> Sequence[Operand]:
    """What each of the pending lanes sees of an update that is no plain operation of memory's.

    Of the attempts of a loop (CAST.SPIN) some succeed; the others see a value that they do not expect (see
    `machine.atomics.apply_atomic`).
    """
    if "SPIN" not in modifiers:
        return _update_in_rounds(port, update, words, pending)
    emitter, algebra = port.writer.emitter, port.algebra
    winners = emitter.result(f"call i32 {emitter.require(f'winners.{4 * words}')}(ptr %ctx, i32 {pending})")
    seen = _update_in_rounds(port, update, words, winners)
    value = seen[0] if words == 1 else algebra.join(seen[0], seen[1])
    one, other = (algebra.word(each) if words == 1 else algebra.long(each) for each in _UNLIKELY)
    strange = algebra.select(algebra.equal(update(algebra, one), one), one, other)
    result = algebra.select(Operand(Kind.PREDICATE, lanes=True, text=winners), value, strange)
    return [result] if words == 1 else [algebra.low(result), algebra.high(result)]


def _update_in_rounds(port: Writing, update: Update, words: int, pending: str) -> Sequence[Operand]:
    """One round for the first lane at each address, one for the second, and so on."""
    emitter, writer = port.writer.emitter, port.writer
    kind, bits = (Kind.WORD, 32) if words == 1 else (Kind.LONG, 64)
    vector = f"<{LANES} x i{bits}>"
    number = emitter.name()[2:]
    before, round_, done = f"before{number}", f"round{number}", f"done{number}"
    emitter.effect(f"br label %{before}")
    emitter.label(before)
    emitter.effect(f"br label %{round_}")
    emitter.label(round_)
    rest, seen = emitter.name(), emitter.name()
    head = len(emitter.lines)
    leaders = emitter.result(f"call i32 {emitter.require('leaders')}(ptr %ctx, i32 {rest})")
    chosen = writer.text(Operand(Kind.PREDICATE, lanes=True, text=leaders), lanes=True)
    hosts = emitter.result(f"getelementptr i8, ptr %ctx, i64 {CONTEXT['others']}")
    places = emitter.result(f"inttoptr {LONGS} {emitter.result(f'load {LONGS}, ptr {hosts}, align 64')} to <32 x ptr>")
    gather = f"call {vector} @llvm.masked.gather.v32i{bits}.v32p0"
    old = emitter.result(f"{gather}(<32 x ptr> {places}, i32 4, <32 x i1> {chosen}, {vector} zeroinitializer)")
    new = writer.text(update(port.algebra, Operand(kind, lanes=True, text=old)), lanes=True)
    scatter = f"call void @llvm.masked.scatter.v32i{bits}.v32p0"
    emitter.effect(f"{scatter}({vector} {new}, <32 x ptr> {places}, i32 4, <32 x i1> {chosen})")
    found = emitter.result(f"select <32 x i1> {chosen}, {vector} {old}, {vector} {seen}")
    left = emitter.result(f"and i32 {rest}, {emitter.result(f'xor i32 {leaders}, -1')}")
    more = emitter.result(f"icmp ne i32 {left}, 0")
    emitter.effect(f"br i1 {more}, label %{round_}, label %{done}")
    phis = [
        f"  {rest} = phi i32 [ {pending}, %{before} ], [ {left}, %{round_} ]",
        f"  {seen} = phi {vector} [ zeroinitializer, %{before} ], [ {found}, %{round_} ]",
    ]
    emitter.lines[head:head] = phis
    emitter.label(done)
    result = Operand(kind, lanes=True, text=found)
    return [result] if words == 1 else [port.algebra.low(result), port.algebra.high(result)]
