"""Turns random numbers into C++ expressions over the values that a place in a kernel can see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import KINDS
from tools.fuzz.inputs import BFLOATS, DOUBLES, FLOATS, HALVES, INTEGERS

if TYPE_CHECKING:
    from tools.fuzz.catalogue.operation import Operation
    from tools.fuzz.stream import Stream

Value = tuple[str, str]
"""A kind (`u`, `f`, ...) and the C++ name or expression that has it."""

WORD_KINDS = "uhb"


@dataclass(slots=True)
class Scope:
    """Values in sight, where results may go, and under which mask collective operations run.

    `fixed` values are never written again, `mutable` ones are; `local` ones end with the block. Statements are
    gathered in `lines`; `names` counts the names given out so far in the whole kernel. `jumps` allows control flow that
    no loop nest can express.
    """

    stream: Stream
    fixed: list[Value]
    mutable: list[Value]
    lines: list[str]
    names: list[int]
    local: list[Value] = field(default_factory=list)
    mask: str | None = None
    depth: int = 0
    jumps: bool = True

    def emit(self, text: str) -> None:
        """Add a statement."""
        self.lines.append("  " * (self.depth + 1) + text)

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.names[0] += 1
        return f"{kind}{self.names[0]}"

    def inner(self, mask: str | None = None) -> Scope:
        """The scope of a block within this one."""
        return Scope(
            self.stream,
            [*self.fixed, *self.local],
            self.mutable,
            self.lines,
            self.names,
            [],
            mask,
            self.depth + 1,
            self.jumps,
        )


def choose_value(scope: Scope, kind: str) -> str:
    """An expression of this kind: a value in sight, now and then an immediate or the bits of another kind."""
    stream = scope.stream
    if stream.chance(14):
        return write_immediate(stream, kind)
    if stream.chance(20):
        return _reinterpret(scope, kind)
    return _find(scope, kind) or _reinterpret(scope, kind)


def _find(scope: Scope, kind: str) -> str | None:
    stream = scope.stream
    pools = [scope.local, scope.mutable, scope.fixed]
    first = stream.below(3)
    wanted = WORD_KINDS if kind in WORD_KINDS and stream.chance(15) else kind
    for turn in range(3):
        pool = [name for each, name in pools[(first + turn) % 3] if each in wanted]
        if pool:
            # Late values more often, so that operations feed each other.
            return pool[-1 - stream.below(min(6, len(pool)))] if stream.chance(50) else stream.pick(pool)
    return None


def _reinterpret(scope: Scope, kind: str) -> str:
    stream = scope.stream

    def word() -> str:
        return _find(scope, "u") or write_immediate(stream, "u")

    match kind:
        case "f":
            return f"__uint_as_float({word()})"
        case "d":
            double = _find(scope, "g")
            if double is not None and stream.chance(30):
                return f"(unsigned long long)__double_as_longlong({double})"
            return f"((unsigned long long){word()} << 32 | {word()})"
        case "g":
            long = _find(scope, "d")
            bits = long or f"((unsigned long long){word()} << 32 | {word()})"
            return f"__longlong_as_double((long long)({bits}))"
        case "p":
            return f"(({word()} >> {stream.below(32)}) & 1u)"
        case _:
            single, long = _find(scope, "f"), _find(scope, "d")
            if single is not None and stream.chance(40):
                return f"__float_as_uint({single})"
            if long is not None:
                return f"(unsigned)({long} >> {stream.pick((0, 32))})"
            return word()


def write_immediate(stream: Stream, kind: str) -> str:
    """A constant of this kind."""
    match kind:
        case "f":
            return f"__uint_as_float(0x{stream.pick(FLOATS):08x}u)"
        case "g":
            return f"__longlong_as_double(0x{stream.pick(DOUBLES):016x}ll)"
        case "d":
            return f"0x{stream.word() >> stream.below(64):x}ull"
        case "p":
            return f"{stream.below(2)}u"
        case "h":
            return f"0x{stream.pick(HALVES) << 16 | stream.pick(HALVES):08x}u"
        case "b":
            return f"0x{stream.pick(BFLOATS) << 16 | stream.pick(BFLOATS):08x}u"
        case _:
            return f"0x{stream.pick(INTEGERS) if stream.chance(60) else stream.word() >> 32 >> stream.below(32):x}u"


def write_operation(scope: Scope, operation: Operation, target: str) -> str:
    """The statement that gives `target` the operation's result."""
    arguments = [choose_value(scope, kind) for kind in operation.arguments]
    immediates = {
        f"i{number}": scope.stream.between(low, high) for number, (low, high) in enumerate(operation.immediates)
    }
    return operation.text.format(*arguments, d=target, mask=scope.mask or "full", **immediates)


def write_condition(scope: Scope) -> str:
    """A condition that differs between lanes, most of the time."""
    stream = scope.stream
    match stream.below(5):
        case 0:
            return f"{choose_value(scope, 'p')} != 0u"
        case 1:
            return f"(lane & {stream.between(1, 31)}u) {stream.pick(('==', '!='))} 0u"
        case 2:
            return f"lane {stream.pick(('<', '>', '=='))} {stream.below(32)}u"
        case 3:
            return f"({choose_value(scope, 'u')} & {stream.between(1, 15)}u) {stream.pick(('<', '>='))} 3u"
        case _:
            left, right = choose_value(scope, "f"), choose_value(scope, "f")
            return f"{left} {stream.pick(('<', '>', '<=', '>=', '==', '!='))} {right}"


def declare(kind: str, name: str) -> str:
    """A declaration without a value."""
    return f"{KINDS[kind]} {name};"
