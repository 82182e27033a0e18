"""Turns operands into the text that an LLVM operation needs of them: broadcast, as a mask, as booleans."""

from __future__ import annotations

from msgspec import Struct, field

from sectorwise.machine.native.emitter import Emitter
from sectorwise.machine.native.values import (
    BITS,
    LANES,
    Kind,
    Operand,
    literal,
    mask_of,
    type_text,
)

VECTOR = f"<{LANES} x i32>"
BOOLEANS = f"<{LANES} x i1>"
LANE_BITS = "<" + ", ".join(f"i32 {1 << lane}" for lane in range(LANES)) + ">"
ALL_ZERO = "<" + ", ".join(["i32 0"] * LANES) + ">"

SINGLE_NAN = 0x7FFFFFFF
HALF_NAN = 0x7FFF
INDEFINITE_NAN = 0xFFF8000000000000
QUIET_BIT = 1 << 51


class Writer(Struct):
    """Writes operations on operands into an emitter's function."""

    emitter: Emitter = field(default_factory=Emitter)

    def text(self, operand: Operand, *, lanes: bool) -> str:
        """The operand as one number, or broadcast to a vector; predicates as booleans."""
        if operand.constant is not None:
            return literal(operand, lanes=lanes)
        if operand.kind is Kind.PREDICATE:
            return self._booleans(operand, lanes=lanes)
        name = self.settled_text(operand)
        return self.broadcast(operand.kind, name) if lanes and not operand.lanes else name

    def settled_text(self, operand: Operand) -> str:
        """The name of an operand that is no constant, written now if it was not before."""
        if operand.text is not None:
            return operand.text
        assert operand.recipe is not None  # noqa: S101 - narrows the type
        match operand.recipe:
            case ("join", low, high):
                return self._join(low, high, lanes=operand.lanes)
            case ("bits", value):
                return self._bits(value)
            case _:
                raise AssertionError(operand.recipe)

    def typed(self, operand: Operand, *, lanes: bool) -> str:
        """The operand with its type in front."""
        return f"{type_text(operand.kind, lanes=lanes)} {self.text(operand, lanes=lanes)}"

    def broadcast(self, kind: Kind, name: str) -> str:
        """One number in all lanes."""
        vector = type_text(kind, lanes=True)
        first = self.emitter.pure(f"insertelement {vector} poison, {kind} {name}, i64 0")
        return self.emitter.pure(f"shufflevector {vector} {first}, {vector} poison, {VECTOR} {ALL_ZERO}")

    def mask(self, operand: Operand) -> str:
        """A predicate as an i32 mask, whatever its form."""
        emitter = self.emitter
        if operand.constant is not None:
            return str(mask_of(operand.constant))
        assert operand.text is not None  # noqa: S101 - narrows the type
        if not operand.lanes:
            return emitter.pure(f"sext i1 {operand.text} to i32")
        if operand.booleans:
            return emitter.pure(f"bitcast {BOOLEANS} {operand.text} to i32")
        return operand.text

    def _booleans(self, operand: Operand, *, lanes: bool) -> str:
        emitter = self.emitter
        assert operand.text is not None  # noqa: S101 - narrows the type
        if not operand.lanes:
            return self.broadcast(Kind.PREDICATE, operand.text) if lanes else operand.text
        if operand.booleans:
            return operand.text
        # Masks stay integers: what tests the bits is legal on every host, and fast to compile.
        spread = self.broadcast(Kind.WORD, operand.text)
        own = emitter.pure(f"and {VECTOR} {spread}, {LANE_BITS}")
        return emitter.pure(f"icmp ne {VECTOR} {own}, zeroinitializer")

    def _join(self, low: Operand, high: Operand, *, lanes: bool) -> str:
        emitter, wide, narrow = self.emitter, type_text(Kind.LONG, lanes=lanes), type_text(Kind.WORD, lanes=lanes)
        upper = emitter.pure(f"zext {narrow} {self.text(high, lanes=lanes)} to {wide}")
        lower = emitter.pure(f"zext {narrow} {self.text(low, lanes=lanes)} to {wide}")
        count = "splat (i64 32)" if lanes else "32"
        shifted = emitter.pure(f"shl {wide} {upper}, {count}")
        return emitter.pure(f"or {wide} {shifted}, {lower}")

    def _bits(self, value: Operand) -> str:
        """The bits of a float as a word or a long."""
        emitter, lanes = self.emitter, value.lanes
        settled = self.settle(value)
        integer = f"i{BITS[value.kind]}"
        target = f"<{LANES} x {integer}>" if lanes else integer
        bits = emitter.pure(f"bitcast {self.typed(settled, lanes=lanes)} to {target}")
        if value.kind is Kind.HALF:
            return emitter.pure(f"zext {target} {bits} to {type_text(Kind.WORD, lanes=lanes)}")
        return bits

    def settle(self, value: Operand) -> Operand:
        """A float whose NaNs are those that the hardware writes."""
        if not value.raw:
            return value
        if value.kind is Kind.DOUBLE:
            return self._settle_double(value)
        nan = f"i{BITS[value.kind]} {HALF_NAN if value.kind is Kind.HALF else SINGLE_NAN}"
        kind, lanes = type_text(value.kind, lanes=value.lanes), value.lanes
        fixed = self.constant_bits(value.kind, nan.split()[1], lanes=lanes)
        wrong = self.emitter.pure(f"fcmp uno {kind} {value.text}, {value.text}")
        condition = f"{type_text(Kind.PREDICATE, lanes=lanes)} {wrong}"
        return Operand(value.kind, lanes, self.emitter.pure(f"select {condition}, {kind} {fixed}, {kind} {value.text}"))

    def _settle_double(self, value: Operand) -> Operand:
        """A NaN result of doubles is the last operand that is one, made quiet."""
        emitter, lanes = self.emitter, value.lanes
        kind, truth = type_text(Kind.DOUBLE, lanes=lanes), type_text(Kind.PREDICATE, lanes=lanes)
        long = type_text(Kind.LONG, lanes=lanes)
        chosen = self.constant_bits(Kind.DOUBLE, str(INDEFINITE_NAN), lanes=lanes)
        for source in value.sources:
            name = self.text(self.settle(source), lanes=lanes)
            bits = emitter.pure(f"bitcast {kind} {name} to {long}")
            quiet = emitter.pure(f"or {long} {bits}, {f'splat (i64 {QUIET_BIT})' if lanes else QUIET_BIT}")
            number = emitter.pure(f"bitcast {long} {quiet} to {kind}")
            is_nan = emitter.pure(f"fcmp uno {kind} {name}, {name}")
            chosen = emitter.pure(f"select {truth} {is_nan}, {kind} {number}, {kind} {chosen}")
        wrong = emitter.pure(f"fcmp uno {kind} {value.text}, {value.text}")
        mended = emitter.pure(f"select {truth} {wrong}, {kind} {chosen}, {kind} {value.text}")
        return Operand(Kind.DOUBLE, lanes, mended)

    def constant_bits(self, kind: Kind, bits: str, *, lanes: bool) -> str:
        """A float constant by its bits."""
        one = f"bitcast (i{BITS[kind]} {bits} to {kind})"
        return f"splat ({kind} {one})" if lanes else one

    def binary(self, operation: str, a: Operand, b: Operand) -> Operand:
        """`operation` of two operands of one kind, in that kind."""
        lanes = a.lanes or b.lanes
        kind = type_text(a.kind, lanes=lanes)
        text = f"{operation} {kind} {self.text(a, lanes=lanes)}, {self.text(b, lanes=lanes)}"
        return Operand(a.kind, lanes, self.emitter.pure(text))

    def compare(self, operation: str, a: Operand, b: Operand) -> Operand:
        """A comparison, as a predicate."""
        lanes = a.lanes or b.lanes
        kind = type_text(a.kind, lanes=lanes)
        text = f"{operation} {kind} {self.text(a, lanes=lanes)}, {self.text(b, lanes=lanes)}"
        return Operand(Kind.PREDICATE, lanes, self.emitter.pure(text), booleans=lanes)

    def cast(self, operation: str, a: Operand, kind: Kind) -> Operand:
        """A conversion, as LLVM names it."""
        target = type_text(kind, lanes=a.lanes)
        return Operand(kind, a.lanes, self.emitter.pure(f"{operation} {self.typed(a, lanes=a.lanes)} to {target}"))

    def intrinsic(self, name: str, kind: Kind, *operands: Operand, extra: str = "") -> Operand:
        """An LLVM intrinsic over operands, named by the kind of its result: `llvm.fma`, `llvm.ctpop`."""
        lanes = any(operand.lanes for operand in operands)
        return self.intrinsic_of((kind,), name, kind, *operands, extra=extra, lanes=lanes)

    def intrinsic_of(
        self, suffixes: tuple[Kind, ...], name: str, kind: Kind, *operands: Operand, extra: str = "", lanes: bool
    ) -> Operand:
        """An LLVM intrinsic whose name carries several types."""
        short = {Kind.HALF: "f16", Kind.SINGLE: "f32", Kind.DOUBLE: "f64"}
        tail = "".join(f".{f'v{LANES}' if lanes else ''}{short.get(suffix, suffix)}" for suffix in suffixes)
        arguments = ", ".join(self.typed(operand, lanes=lanes) for operand in operands) + extra
        result = type_text(kind, lanes=lanes)
        return Operand(kind, lanes, self.emitter.pure(f"call {result} @{name}{tail}({arguments})"))
