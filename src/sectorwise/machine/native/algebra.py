"""Turns the lane operations of opcodes into LLVM operations on vectors of 32 lanes, or on numbers of the whole warp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.native import floats
from sectorwise.machine.native.values import (
    BITS,
    FLOATS,
    LANES,
    Kind,
    Operand,
    is_number,
    like,
    literal,
    make_constant,
    type_text,
)
from sectorwise.machine.native.writer import VECTOR, Writer
from sectorwise.machine.numpy_algebra import NumpyAlgebra

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.machine.algebra import MatrixForm

KINDS = {Float.F16: Kind.HALF, Float.BF16: Kind.SINGLE, Float.F32: Kind.SINGLE, Float.F64: Kind.DOUBLE}


class LlvmAlgebra(Struct):
    """`Algebra` that writes operations; what is known already is computed by NumPy, so both engines agree on it."""

    writer: Writer
    known: NumpyAlgebra = field(default_factory=NumpyAlgebra)

    def _fold(self, operation: str, *operands: Operand, **options: Any) -> Operand | None:  # noqa: ANN401 - passed on
        """The result of an operation on constants, None where an operand is none."""
        constants = [operand.constant for operand in operands]
        if any(constant is None for constant in constants):
            return None
        with np.errstate(all="ignore"):
            result: npt.NDArray[Any] = getattr(self.known, operation)(*constants, **options)
        return make_constant(result)

    # Constants.
    def word(self, value: int) -> Operand:
        return make_constant(self.known.word(value))

    def long(self, value: int) -> Operand:
        return make_constant(self.known.long(value))

    def predicate(self, value: bool) -> Operand:  # noqa: FBT001 - a value, not a switch
        return make_constant(self.known.predicate(value))

    def number(self, value: float, kind: Float) -> Operand:
        return make_constant(self.known.number(value, kind))

    # Integers and, for the logical four, predicates.
    def add(self, a: Operand, b: Operand) -> Operand:
        return _other_than_zero(a, b) or self._fold("add", a, b) or self.writer.binary("add", a, b)

    def subtract(self, a: Operand, b: Operand) -> Operand:
        if is_number(b, 0):
            return a
        return self._fold("subtract", a, b) or self.writer.binary("sub", a, b)

    def multiply(self, a: Operand, b: Operand) -> Operand:
        return self._fold("multiply", a, b) or self.writer.binary("mul", a, b)

    def bit_and(self, a: Operand, b: Operand) -> Operand:
        if a.kind is Kind.PREDICATE:
            return self._logical("and", "bit_and", a, b)
        if is_number(a, 0) or is_number(b, -1):
            return a if a.lanes or not b.lanes else self._spread(a)
        if is_number(b, 0) or is_number(a, -1):
            return b if b.lanes or not a.lanes else self._spread(b)
        return self._fold("bit_and", a, b) or self.writer.binary("and", a, b)

    def bit_or(self, a: Operand, b: Operand) -> Operand:
        if a.kind is Kind.PREDICATE:
            return self._logical("or", "bit_or", a, b)
        return _other_than_zero(a, b) or self._fold("bit_or", a, b) or self.writer.binary("or", a, b)

    def bit_xor(self, a: Operand, b: Operand) -> Operand:
        if a.kind is Kind.PREDICATE:
            return self._logical("xor", "bit_xor", a, b)
        return _other_than_zero(a, b) or self._fold("bit_xor", a, b) or self.writer.binary("xor", a, b)

    def invert(self, a: Operand) -> Operand:
        if a.kind is Kind.PREDICATE:
            return self.bit_xor(a, self.predicate(True))  # noqa: FBT003 - a value
        return self.bit_xor(a, self.word(-1) if a.kind is Kind.WORD else self.long(-1))

    def _spread(self, a: Operand) -> Operand:
        """A constant, in all lanes."""
        if a.constant is None:
            booleans = a.kind is Kind.PREDICATE
            return Operand(a.kind, lanes=True, text=self.writer.text(a, lanes=True), booleans=booleans)
        return make_constant(np.broadcast_to(a.constant, (1, LANES)))

    def _logical(self, operation: str, name: str, a: Operand, b: Operand) -> Operand:
        """A logical operation on predicates: on masks, or on one bit where both are one a warp."""
        folded = self._fold(name, a, b)
        if folded is not None:
            return folded
        neutral = 1 if operation == "and" else 0
        for one, other in ((a, b), (b, a)):
            if is_number(one, neutral) and not one.lanes:
                return other
        emitter, writer = self.writer.emitter, self.writer
        if not (a.lanes or b.lanes):
            first, second = writer.text(a, lanes=False), writer.text(b, lanes=False)
            return Operand(Kind.PREDICATE, lanes=False, text=emitter.pure(f"{operation} i1 {first}, {second}"))
        text = emitter.pure(f"{operation} i32 {writer.mask(a)}, {writer.mask(b)}")
        return Operand(Kind.PREDICATE, lanes=True, text=text)

    def shift_left(self, a: Operand, count: Operand) -> Operand:
        return self._shift("shl", "shift_left", a, count)

    def shift_right(self, a: Operand, count: Operand) -> Operand:
        return self._shift("lshr", "shift_right", a, count)

    def _shift(self, operation: str, name: str, a: Operand, count: Operand) -> Operand:
        if is_number(count, 0):
            return a
        folded = self._fold(name, a, count)
        if folded is not None:
            return folded
        zero, bits = like(a, 0), BITS[a.kind]
        if count.constant is not None:
            if (count.constant < bits).all():
                return self.writer.binary(operation, a, count)
            if (count.constant >= bits).all():
                return zero
        # A shift by too much is not defined in LLVM; what it gives is not selected.
        shifted = self.writer.binary(operation, a, count)
        return self.select(self.less_unsigned(count, like(a, bits)), shifted, zero)

    def shift_right_signed(self, a: Operand, count: Operand) -> Operand:
        folded = self._fold("shift_right_signed", a, count)
        if folded is not None:
            return folded
        limit = like(a, BITS[a.kind] - 1)
        return self.writer.binary("ashr", a, self.select(self.less_unsigned(count, limit), count, limit))

    def equal(self, a: Operand, b: Operand) -> Operand:
        return self._fold("equal", a, b) or self.writer.compare("icmp eq", a, b)

    def less_unsigned(self, a: Operand, b: Operand) -> Operand:
        return self._fold("less_unsigned", a, b) or self.writer.compare("icmp ult", a, b)

    def less_signed(self, a: Operand, b: Operand) -> Operand:
        return self._fold("less_signed", a, b) or self.writer.compare("icmp slt", a, b)

    def select(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        if condition.constant is not None and condition.constant.shape[1] == 1:
            return a if condition.constant[0, 0] else b
        folded = self._fold("select", condition, a, b)
        if folded is not None:
            return folded
        if a.kind is Kind.PREDICATE:
            return self._choose_predicate(condition, a, b)
        writer = self.writer
        raw = a.raw or b.raw
        if raw and a.kind is Kind.DOUBLE:
            a, b, raw = writer.settle(a), writer.settle(b), False
        lanes = condition.lanes or a.lanes or b.lanes
        test = f"{type_text(Kind.PREDICATE, lanes=condition.lanes)} {writer.text(condition, lanes=condition.lanes)}"
        text = f"select {test}, {writer.typed(a, lanes=lanes)}, {writer.typed(b, lanes=lanes)}"
        return Operand(a.kind, lanes, writer.emitter.pure(text), raw=raw)

    def _choose_predicate(self, condition: Operand, a: Operand, b: Operand) -> Operand:
        return self.bit_or(self.bit_and(condition, a), self.bit_and(self.invert(condition), b))

    def extend_zero(self, a: Operand) -> Operand:
        return self._fold("extend_zero", a) or self.writer.cast("zext", a, Kind.LONG)

    def extend_sign(self, a: Operand) -> Operand:
        return self._fold("extend_sign", a) or self.writer.cast("sext", a, Kind.LONG)

    def low(self, a: Operand) -> Operand:
        match a.recipe:
            case ("join", low, _):
                return self._at_width(low, a)
            case _:
                pass
        folded = self._fold("low", a)
        if folded is not None:
            return folded
        word = self.writer.cast("trunc", a, Kind.WORD)
        return Operand(Kind.WORD, word.lanes, word.text, recipe=("low", a))

    def high(self, a: Operand) -> Operand:
        match a.recipe:
            case ("join", _, high):
                return self._at_width(high, a)
            case _:
                pass
        folded = self._fold("high", a)
        if folded is not None:
            return folded
        word = self.writer.cast("trunc", self.writer.binary("lshr", a, self.long(32)), Kind.WORD)
        return Operand(Kind.WORD, word.lanes, word.text, recipe=("high", a))

    def _at_width(self, part: Operand, whole: Operand) -> Operand:
        if part.lanes or not whole.lanes:
            return part
        return self._spread(part)

    def join(self, low: Operand, high: Operand) -> Operand:
        folded = self._fold("join", low, high)
        if folded is not None:
            return folded
        match low.recipe, high.recipe:
            case ("low", whole), ("high", other) if whole is other:
                assert isinstance(whole, Operand)  # noqa: S101 - narrows the type
                return whole
            case _:
                return Operand(Kind.LONG, low.lanes or high.lanes, recipe=("join", low, high))

    def multiply_wide(self, a: Operand, b: Operand, *, signed: bool) -> Operand:
        folded = self._fold("multiply_wide", a, b, signed=signed)
        if folded is not None:
            return folded
        extend = self.extend_sign if signed else self.extend_zero
        return self.writer.binary("mul", extend(a), extend(b))

    def multiply_high_unsigned(self, a: Operand, b: Operand) -> Operand:
        if a.kind is Kind.WORD:
            return self.high(self.multiply_wide(a, b, signed=False))
        low_a, high_a, low_b, high_b = self.low(a), self.high(a), self.low(b), self.high(b)
        lowest = self.high(self.multiply_wide(low_a, low_b, signed=False))
        middle = self.add(self.multiply_wide(high_a, low_b, signed=False), self.extend_zero(lowest))
        other = self.add(self.multiply_wide(low_a, high_b, signed=False), self.extend_zero(self.low(middle)))
        highest = self.add(self.multiply_wide(high_a, high_b, signed=False), self.extend_zero(self.high(middle)))
        return self.add(highest, self.extend_zero(self.high(other)))

    def multiply_high_signed(self, a: Operand, b: Operand) -> Operand:
        if a.kind is Kind.WORD:
            return self.high(self.multiply_wide(a, b, signed=True))
        zero = self.long(0)
        high = self.multiply_high_unsigned(a, b)
        high = self.subtract(high, self.select(self.less_signed(a, zero), b, zero))
        return self.subtract(high, self.select(self.less_signed(b, zero), a, zero))

    def population_count(self, a: Operand) -> Operand:
        count = self._fold("population_count", a)
        if count is None:
            count = self.writer.intrinsic("llvm.ctpop", a.kind, a)
        return self.low(count) if count.kind is Kind.LONG else count

    def leading_zeros(self, a: Operand) -> Operand:
        return self._fold("leading_zeros", a) or self.writer.intrinsic("llvm.ctlz", Kind.WORD, a, extra=", i1 false")

    def reverse_bits(self, a: Operand) -> Operand:
        return self._fold("reverse_bits", a) or self.writer.intrinsic("llvm.bitreverse", Kind.WORD, a)

    def from_predicate(self, a: Operand) -> Operand:
        return self._fold("from_predicate", a) or self.writer.cast("zext", a, Kind.WORD)

    # Floats.
    def view_float(self, bits: Operand, kind: Float) -> Operand:
        match bits.recipe:
            case ("bits", value) if kind is not Float.BF16 and value.kind is KINDS[kind]:
                assert isinstance(value, Operand)  # noqa: S101 - narrows the type
                return value
            case _:
                return self._fold("view_float", bits, kind=kind) or floats.view_float(self.writer, bits, kind)

    def view_bits(self, value: Operand) -> Operand:
        folded = self._fold("view_bits", value)
        if folded is not None:
            return folded
        kind = Kind.LONG if value.kind is Kind.DOUBLE else Kind.WORD
        return Operand(kind, value.lanes, recipe=("bits", value))

    def float_add(self, a: Operand, b: Operand, rounding: Rounding) -> Operand:
        folded = self._fold("float_add", a, b, rounding=rounding)
        return folded or floats.compute(self.writer, "add", rounding, a, b)

    def float_multiply(self, a: Operand, b: Operand, rounding: Rounding, *, flush: bool = False) -> Operand:
        folded = self._fold("float_multiply", a, b, rounding=rounding, flush=flush)
        return folded or floats.compute(self.writer, "mul", rounding, a, b, flush=flush)

    def float_fma(self, a: Operand, b: Operand, c: Operand, rounding: Rounding, *, flush: bool = False) -> Operand:
        folded = self._fold("float_fma", a, b, c, rounding=rounding, flush=flush)
        return folded or floats.compute(self.writer, "fma", rounding, a, b, c, flush=flush)

    def multiply_matrices(
        self, a: Sequence[Operand], b: Sequence[Operand], c: Sequence[Operand], form: MatrixForm
    ) -> Sequence[Operand]:
        emitter, result = self.writer.emitter, "{ " + ", ".join([VECTOR] * len(c)) + " }"
        words = ", ".join(self.writer.typed(word, lanes=True) for word in (*a, *b, *c))
        name = f"product.{form.a}.{form.b}.{form.accumulator}.{form.saturates:d}.{len(a)}.{len(b)}.{len(c)}"
        whole = emitter.pure(f"call {result} {emitter.require(name)}({words})")
        parts = (emitter.pure(f"extractvalue {result} {whole}, {place}") for place in range(len(c)))
        return [Operand(Kind.WORD, lanes=True, text=part) for part in parts]

    def float_less(self, a: Operand, b: Operand) -> Operand:
        return self._fold("float_less", a, b) or self.writer.compare("fcmp olt", a, b)

    def float_equal(self, a: Operand, b: Operand) -> Operand:
        return self._fold("float_equal", a, b) or self.writer.compare("fcmp oeq", a, b)

    def is_nan(self, a: Operand) -> Operand:
        return self._fold("is_nan", a) or self.writer.compare("fcmp uno", a, a)

    def flush_denormals(self, a: Operand) -> Operand:
        return self._fold("flush_denormals", a) or floats.flush_denormals(self.writer, a)

    def convert_float(self, a: Operand, kind: Float, rounding: Rounding) -> Operand:
        folded = self._fold("convert_float", a, kind=kind, rounding=rounding)
        return folded or floats.convert(self.writer, a, kind, rounding)

    def float_from_integer(self, a: Operand, kind: Float, rounding: Rounding, *, signed: bool) -> Operand:
        folded = self._fold("float_from_integer", a, kind=kind, rounding=rounding, signed=signed)
        return folded or floats.from_integer(self.writer, a, kind, rounding, signed=signed)

    def integer_from_float(self, a: Operand, bits: int, rounding: Rounding, *, signed: bool) -> Operand:
        folded = self._fold("integer_from_float", a, bits=bits, rounding=rounding, signed=signed)
        return folded or floats.to_integer(self.writer, a, bits, rounding, signed=signed)

    def round_integral(self, a: Operand, rounding: Rounding) -> Operand:
        return self._fold("round_integral", a, rounding=rounding) or floats.to_integral(self.writer, a, rounding)

    def approximate(self, function: str, a: Operand) -> Operand:
        if a.constant is not None:
            with np.errstate(all="ignore"):
                return make_constant(self.known.approximate(function, a.constant))
        return floats.approximate(self.writer, function, a)

    # Lanes.
    def lane(self) -> Operand:
        return make_constant(self.known.lane())

    def permute(self, a: Operand, source_lane: Operand) -> Operand:
        if not a.lanes:
            return self._spread(a) if source_lane.lanes else a
        folded = self._fold("permute", a, source_lane)
        if folded is not None:
            return folded
        writer, emitter = self.writer, self.writer.emitter
        if a.kind is not Kind.WORD:
            return self._permute_other(a, source_lane)
        value = writer.text(a, lanes=True)
        if source_lane.constant is not None:
            places = literal(source_lane, lanes=True)
            text = emitter.pure(f"shufflevector {VECTOR} {value}, {VECTOR} poison, {VECTOR} {places}")
            return Operand(Kind.WORD, lanes=True, text=text)
        if not source_lane.lanes:
            return self._spread(self._extract(a, writer.text(source_lane, lanes=False)))
        places = writer.text(source_lane, lanes=True)
        text = emitter.pure(f"call {VECTOR} {emitter.require('permute')}({VECTOR} {value}, {VECTOR} {places})")
        return Operand(Kind.WORD, lanes=True, text=text)

    def _permute_other(self, a: Operand, source_lane: Operand) -> Operand:
        match a.kind:
            case Kind.PREDICATE:
                return self.equal(self.permute(self.from_predicate(a), source_lane), self.word(1))
            case Kind.LONG:
                return self.join(self.permute(self.low(a), source_lane), self.permute(self.high(a), source_lane))
            case _:
                bits = self.permute(self.view_bits(a), source_lane)
                kinds = {Kind.HALF: Float.F16, Kind.SINGLE: Float.F32, Kind.DOUBLE: Float.F64}
                return self.view_float(bits, kinds[a.kind])

    def _extract(self, a: Operand, place: str) -> Operand:
        writer = self.writer
        if a.kind in FLOATS:
            a = writer.settle(a)
        text = writer.emitter.pure(f"extractelement {writer.typed(a, lanes=True)}, i32 {place}")
        return Operand(a.kind, lanes=False, text=text)

    def ballot(self, a: Operand) -> Operand:
        folded = self._fold("ballot", a)
        return folded or Operand(Kind.WORD, lanes=False, text=self.writer.mask(a))

    def first_active(self, a: Operand, active: Operand) -> Operand:
        if not a.lanes:
            return a
        folded = self._fold("first_active", a, active)
        if folded is not None:
            return folded
        emitter = self.writer.emitter
        count = emitter.pure(f"call i32 @llvm.cttz.i32(i32 {self.writer.mask(active)}, i1 false)")
        return self._extract(a, emitter.pure(f"and i32 {count}, 31"))


def _other_than_zero(a: Operand, b: Operand) -> Operand | None:
    """The other of two operands where one is zero: what adding or joining bits gives."""
    if is_number(b, 0):
        return a
    return b if is_number(a, 0) else None
