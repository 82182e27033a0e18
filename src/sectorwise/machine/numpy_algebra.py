"""Turns the lane operations of opcodes into NumPy calls on arrays of shape [warps, 32], [warps, 1] or [1, 1].

Whoever calls these operations does so under `numpy.errstate(all="ignore")`: overflow and NaN are results here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sectorwise.machine import numpy_floats, numpy_matrices
from sectorwise.machine.algebra import Float, Rounding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.machine.algebra import MatrixForm

Lanes = npt.NDArray[Any]

_FORMATS: dict[Float, np.dtype[Any]] = {
    Float.F16: np.dtype(np.float16),
    Float.BF16: np.dtype(np.float32),
    Float.F32: np.dtype(np.float32),
    Float.F64: np.dtype(np.float64),
}

_LANES = np.arange(32, dtype=np.uint32).reshape(1, 32)
_LANES.setflags(write=False)

_SIXTEEN = np.uint32(16)
_THIRTY_TWO = np.uint64(32)


@lru_cache(maxsize=4096)
def _constant(value: int, dtype: str) -> Lanes:
    array = np.array([[value]], dtype)
    array.setflags(write=False)
    return array


@lru_cache(maxsize=4096)
def _number(bits: bytes, dtype: np.dtype[Any]) -> Lanes:
    array = np.frombuffer(bits, np.float64).astype(dtype).reshape(1, 1)
    array.setflags(write=False)
    return array


class NumpyAlgebra:
    """`Algebra` over arrays: words uint32, longs uint64, predicates bool, floats of their own dtypes.

    Operands broadcast: [warps, 32] a lane, [warps, 1] a warp, [1, 1] a constant. Results are new arrays, or views of
    operands that nobody writes to.
    """

    def word(self, value: int) -> Lanes:
        return _constant(value & 0xFFFFFFFF, "u4")

    def long(self, value: int) -> Lanes:
        return _constant(value & 0xFFFFFFFFFFFFFFFF, "u8")

    def predicate(self, value: bool) -> Lanes:  # noqa: FBT001 - a value, not a switch
        return _constant(int(value), "?")

    def number(self, value: float, kind: Float) -> Lanes:
        return _number(np.float64(value).tobytes(), _FORMATS[kind])

    def add(self, a: Lanes, b: Lanes) -> Lanes:
        return a + b

    def subtract(self, a: Lanes, b: Lanes) -> Lanes:
        return a - b

    def multiply(self, a: Lanes, b: Lanes) -> Lanes:
        return a * b

    def bit_and(self, a: Lanes, b: Lanes) -> Lanes:
        return a & b

    def bit_or(self, a: Lanes, b: Lanes) -> Lanes:
        return a | b

    def bit_xor(self, a: Lanes, b: Lanes) -> Lanes:
        return a ^ b

    def invert(self, a: Lanes) -> Lanes:
        return ~a

    def shift_left(self, a: Lanes, count: Lanes) -> Lanes:
        # NumPy defines counts at or above the size as the protocol does.
        return a << count

    def shift_right(self, a: Lanes, count: Lanes) -> Lanes:
        return a >> count

    def shift_right_signed(self, a: Lanes, count: Lanes) -> Lanes:
        signed = _signed(a)
        limit = a.dtype.itemsize * 8 - 1
        shifted: Lanes = (signed >> np.minimum(count, a.dtype.type(limit)).view(signed.dtype)).view(a.dtype)
        return shifted

    def equal(self, a: Lanes, b: Lanes) -> Lanes:
        same: Lanes = a == b
        return same

    def less_unsigned(self, a: Lanes, b: Lanes) -> Lanes:
        below: Lanes = a < b
        return below

    def less_signed(self, a: Lanes, b: Lanes) -> Lanes:
        below: Lanes = _signed(a) < _signed(b)
        return below

    def select(self, condition: Lanes, a: Lanes, b: Lanes) -> Lanes:
        # Bits, not branches: NumPy's `where` is far slower where the condition varies from lane to lane.
        match a.dtype.itemsize:
            case 1:
                return (condition & a) | (~condition & b)
            case 2:
                return np.where(condition, a, b)
            case size:
                integers = np.dtype(np.uint32 if size == 4 else np.uint64)
                mask = np.negative(condition.astype(integers))
                first, second = a.view(integers), b.view(integers)
                chosen: Lanes = (second ^ ((first ^ second) & mask)).view(a.dtype)
                return chosen

    def extend_zero(self, a: Lanes) -> Lanes:
        return a.astype(np.uint64)

    def extend_sign(self, a: Lanes) -> Lanes:
        return a.view(np.int32).astype(np.int64).view(np.uint64)

    def low(self, a: Lanes) -> Lanes:
        return a.astype(np.uint32)

    def high(self, a: Lanes) -> Lanes:
        return (a >> _THIRTY_TWO).astype(np.uint32)

    def join(self, low: Lanes, high: Lanes) -> Lanes:
        pair: Lanes = low | (high.astype(np.uint64) << _THIRTY_TWO)
        return pair

    def multiply_wide(self, a: Lanes, b: Lanes, *, signed: bool) -> Lanes:
        if signed:
            return np.multiply(a.view(np.int32), b.view(np.int32), dtype=np.int64).view(np.uint64)
        return np.multiply(a, b, dtype=np.uint64)

    def multiply_high_unsigned(self, a: Lanes, b: Lanes) -> Lanes:
        if a.dtype == np.uint32:
            return self.high(self.multiply_wide(a, b, signed=False))
        low_a, high_a, low_b, high_b = self.low(a), self.high(a), self.low(b), self.high(b)
        middle = self.multiply_wide(high_a, low_b, signed=False) + self.high(
            self.multiply_wide(low_a, low_b, signed=False)
        )
        other = self.multiply_wide(low_a, high_b, signed=False) + self.low(middle)
        return self.multiply_wide(high_a, high_b, signed=False) + self.high(middle) + self.high(other)

    def multiply_high_signed(self, a: Lanes, b: Lanes) -> Lanes:
        if a.dtype == np.uint32:
            return self.high(self.multiply_wide(a, b, signed=True))
        zero = np.uint64(0)
        high = self.multiply_high_unsigned(a, b)
        return high - np.where(_signed(a) < 0, b, zero) - np.where(_signed(b) < 0, a, zero)

    def population_count(self, a: Lanes) -> Lanes:
        return np.bitwise_count(a).astype(np.uint32)

    def leading_zeros(self, a: Lanes) -> Lanes:
        # frexp gives the exponent above the highest set bit, and 0 for zero; words are exact as doubles.
        return (32 - np.frexp(a.astype(np.float64))[1]).astype(np.uint32)

    def reverse_bits(self, a: Lanes) -> Lanes:
        value = a
        for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
            count, part = np.uint32(shift), np.uint32(mask)
            value = ((value >> count) & part) | ((value & part) << count)
        return (value >> _SIXTEEN) | (value << _SIXTEEN)

    def from_predicate(self, a: Lanes) -> Lanes:
        return a.astype(np.uint32)

    def view_float(self, bits: Lanes, kind: Float) -> Lanes:
        match kind:
            case Float.F32:
                return bits.view(np.float32)
            case Float.F64:
                return bits.view(np.float64)
            case Float.F16:
                return bits.astype(np.uint16).view(np.float16)
            case Float.BF16:
                return (bits << _SIXTEEN).view(np.float32)

    def view_bits(self, value: Lanes) -> Lanes:
        match value.dtype.itemsize:
            case 8:
                return value.view(np.uint64)
            case 4:
                return value.view(np.uint32)
            case _:
                return value.view(np.uint16).astype(np.uint32)

    def float_add(self, a: Lanes, b: Lanes, rounding: Rounding) -> Lanes:
        return numpy_floats.add(a, b, rounding)

    def float_multiply(self, a: Lanes, b: Lanes, rounding: Rounding, *, flush: bool = False) -> Lanes:
        product = numpy_floats.multiply(a, b, rounding)
        if flush:
            return numpy_floats.flush_inexact(product, lambda: numpy_floats.exact_product(a, b), rounding)
        return product

    def float_fma(self, a: Lanes, b: Lanes, c: Lanes, rounding: Rounding, *, flush: bool = False) -> Lanes:
        total = numpy_floats.fma(a, b, c, rounding)
        if flush:
            return numpy_floats.flush_inexact(total, lambda: numpy_floats.exact_fma(a, b, c), rounding)
        return total

    def multiply_matrices(
        self, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], form: MatrixForm
    ) -> Sequence[Lanes]:
        return numpy_matrices.multiply_add(a, b, c, form)

    def float_less(self, a: Lanes, b: Lanes) -> Lanes:
        below: Lanes = a < b
        return below

    def float_equal(self, a: Lanes, b: Lanes) -> Lanes:
        same: Lanes = a == b
        return same

    def is_nan(self, a: Lanes) -> Lanes:
        return np.isnan(a)

    def flush_denormals(self, a: Lanes) -> Lanes:
        return numpy_floats.flush(a)

    def convert_float(self, a: Lanes, kind: Float, rounding: Rounding) -> Lanes:
        dtype = _FORMATS[kind]
        if kind is Float.BF16:
            single = a if a.dtype == np.float32 else numpy_floats.narrow(a.astype(np.float64), dtype, Rounding.ODD)
            rounded = numpy_floats.to_brain(single, rounding)
            return numpy_floats.cut_nan(rounded, a) if a.dtype == np.float64 else rounded
        if a.dtype == dtype:
            return a
        if dtype.itemsize < a.dtype.itemsize:
            narrow = numpy_floats.narrow(a.astype(np.float64), dtype, rounding)
            return numpy_floats.narrow_nan(narrow, a) if a.dtype == np.float64 else numpy_floats.canonical(narrow)
        wider = a.astype(dtype)
        return numpy_floats.double_nan(wider, wider) if kind is Float.F64 else numpy_floats.canonical(wider)

    def float_from_integer(self, a: Lanes, kind: Float, rounding: Rounding, *, signed: bool) -> Lanes:
        if kind is Float.BF16:
            single = numpy_floats.from_integer(a, np.float32, Rounding.ODD, signed=signed)
            return numpy_floats.to_brain(single, rounding)
        return numpy_floats.from_integer(a, _FORMATS[kind], rounding, signed=signed)

    def integer_from_float(self, a: Lanes, bits: int, rounding: Rounding, *, signed: bool) -> Lanes:
        return numpy_floats.to_integer(a, bits, rounding, signed=signed)

    def round_integral(self, a: Lanes, rounding: Rounding) -> Lanes:
        integral = numpy_floats.to_integral(a, rounding)
        return integral if a.dtype == np.float64 else numpy_floats.canonical(integral)

    def approximate(self, function: str, a: Lanes) -> Lanes:
        return numpy_floats.approximate(function, a)

    def lane(self) -> Lanes:
        return _LANES

    def permute(self, a: Lanes, source_lane: Lanes) -> Lanes:
        if a.shape[1] == 1:
            return np.broadcast_to(a, np.broadcast_shapes(a.shape, source_lane.shape))
        if source_lane.shape[0] == 1:
            moved: Lanes = np.take(a, source_lane[0], axis=1)
            return moved
        return np.take_along_axis(a, source_lane.astype(np.intp), axis=1)

    def ballot(self, a: Lanes) -> Lanes:
        if a.shape[1] == 1:
            return np.where(a, np.uint32(0xFFFFFFFF), np.uint32(0))
        words = np.packbits(np.ascontiguousarray(a), axis=1, bitorder="little")
        ballots: Lanes = np.ascontiguousarray(words).view("<u4").astype(np.uint32, copy=False)
        return ballots

    def first_active(self, a: Lanes, active: Lanes) -> Lanes:
        if a.shape[1] == 1:
            return a
        lanes = np.argmax(np.broadcast_to(active, (active.shape[0], 32)), axis=1).reshape(-1, 1)
        return np.take_along_axis(a, lanes, axis=1)


def _signed(a: Lanes) -> Lanes:
    return a.view(np.int64 if a.dtype.itemsize == 8 else np.int32)
