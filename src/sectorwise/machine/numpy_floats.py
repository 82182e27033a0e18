"""Turns floating-point operations in every format and rounding direction into NumPy calls that round once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sectorwise.machine.algebra import Rounding

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

Lanes = npt.NDArray[Any]

_SINGLE_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_HALF_NAN = np.uint16(0x7FFF).view(np.float16)
_INDEFINITE = np.uint64(0xFFF8000000000000).view(np.float64)
_QUIET = np.uint64(1 << 51)

_HALFWAY_BITS = np.uint64(0x1FFFFFFF)
_HALFWAY = np.uint64(0x10000000)
_ONE = np.uint64(1)
_SMALLEST_NORMAL_DOUBLED = np.uint64(2 * 0x3810000000000000)
"""Bits of 2**-126, the smallest normal single, as a double, without its sign bit."""

_FAR_FROM_DENORMAL = 2.0**64

_SAFE_LOW, _SAFE_HIGH = 2.0**-400, 2.0**400


def canonical(value: Lanes) -> Lanes:
    """The value with each NaN of a single or a half replaced by the one that the hardware writes."""
    wrong = np.isnan(value)
    if not wrong.any():
        return value
    return np.where(wrong, _HALF_NAN if value.dtype == np.float16 else _SINGLE_NAN, value)


def double_nan(result: Lanes, *operands: Lanes) -> Lanes:
    """A double result with each NaN taken from the last operand that is one, made quiet."""
    wrong = np.isnan(result)
    if not wrong.any():
        return result
    chosen = np.broadcast_to(_INDEFINITE, result.shape)
    for operand in operands:
        quiet = (np.asarray(operand, np.float64).view(np.uint64) | _QUIET).view(np.float64)
        chosen = np.where(np.isnan(operand), quiet, chosen)
    return np.where(wrong, chosen, result)


def narrow_nan(narrow: Lanes, wide: Lanes) -> Lanes:
    """A narrowed double with each NaN's sign and leading fraction bits kept, made quiet."""
    wrong = np.isnan(wide)
    if not wrong.any():
        return narrow
    bits = wide.view(np.uint64)
    if narrow.dtype == np.float32:
        kept = (bits >> np.uint64(29)) & np.uint64(0x3FFFFF) | np.uint64(0x7FC00000)
        nan = (kept | (bits >> np.uint64(63)) << np.uint64(31)).astype(np.uint32).view(np.float32)
    else:
        kept = (bits >> np.uint64(42)) & np.uint64(0x1FF) | np.uint64(0x7E00)
        nan = (kept | (bits >> np.uint64(63)) << np.uint64(15)).astype(np.uint16).view(np.float16)
    return np.where(wrong, nan, narrow)


def cut_nan(brain: Lanes, wide: Lanes) -> Lanes:
    """A bfloat16, as a single, with each NaN's sign and leading fraction bits of the double kept, made quiet."""
    wrong = np.isnan(wide)
    if not wrong.any():
        return brain
    bits = wide.view(np.uint64)
    kept = (bits >> np.uint64(45)) & np.uint64(0x3F) | np.uint64(0x7FC0) | (bits >> np.uint64(63)) << np.uint64(15)
    return np.where(wrong, (kept.astype(np.uint32) << np.uint32(16)).view(np.float32), brain)


def flush(value: Lanes) -> Lanes:
    """The value with denormals made zeros of their sign."""
    return np.where(
        np.abs(value) < np.finfo(value.dtype).smallest_normal, np.copysign(value.dtype.type(0), value), value
    )


def flush_inexact(rounded: Lanes, exact: Callable[[], Lanes], rounding: Rounding) -> Lanes:
    """Singles flushed as the hardware does it: by what rounding to 24 bits gives where exponents have no end.

    So only a result that is the smallest normal itself is in doubt; `exact` gives it as a double, rounded to odd.
    """
    result = flush(rounded)
    smallest = np.finfo(np.float32).smallest_normal
    doubtful = np.abs(result) == smallest
    if doubtful.any():
        scaled = narrow(exact() * _FAR_FROM_DENORMAL, np.float32, rounding)
        below = doubtful & (np.abs(scaled) < float(smallest) * _FAR_FROM_DENORMAL)
        result = np.where(below, np.copysign(np.float32(0), result), result)
    return result


def exact_product(a: Lanes, b: Lanes) -> Lanes:
    """Products of singles, exact as doubles."""
    return np.multiply(a, b, dtype=np.float64)


def exact_fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """The value of a * b + c for singles, as doubles rounded to odd."""
    return to_odd(*two_sum(exact_product(a, b), c.astype(np.float64)))


def two_sum(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Nearest double sum and its exact error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_product(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Nearest double product and its exact error (Dekker, Veltkamp), for exponents that stay far from the ends."""
    product = a * b
    split_a, split_b = a * 134217729.0, b * 134217729.0
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)


def to_odd(total: Lanes, error: Lanes) -> Lanes:
    """The sum of a nearest double and its error, rounded to odd."""
    bits = total.view(np.int64)
    moves = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(moves, bits + step, bits).view(np.float64)


def direct(total: Lanes, error: Lanes, rounding: Rounding) -> Lanes:
    """The sum of a nearest double and its error, rounded in a direction."""
    match rounding:
        case Rounding.NEAREST:
            return total
        case Rounding.ODD:
            return to_odd(total, error)
        case Rounding.UP:
            return np.where(error > 0, np.nextafter(total, np.inf), total)
        case Rounding.DOWN:
            return np.where(error < 0, np.nextafter(total, -np.inf), total)
        case Rounding.ZERO:
            return np.where(error * np.sign(total) < 0, np.nextafter(total, 0.0), total)


def narrow(exact: Lanes, dtype: npt.DTypeLike, rounding: Rounding) -> Lanes:
    """Doubles, exact or rounded to odd, as singles or halves."""
    nearest = exact.astype(dtype)
    if rounding is Rounding.NEAREST:
        return nearest
    back = nearest.astype(np.float64)
    zero, infinity = np.zeros((), dtype), np.full((), np.inf, dtype)
    match rounding:
        case Rounding.UP:
            return np.where(back < exact, np.nextafter(nearest, infinity), nearest)
        case Rounding.DOWN:
            return np.where(back > exact, np.nextafter(nearest, -infinity), nearest)
        case _:
            cut: Lanes = np.where(np.abs(back) > np.abs(exact), np.nextafter(nearest, zero), nearest)
    # A value below the smallest denormal is cut to a zero that keeps its sign.
    cut = np.copysign(cut, nearest)
    if rounding is Rounding.ZERO:
        return cut
    integers = np.uint16 if cut.dtype == np.float16 else np.uint32
    sticky = (back != exact) & ~np.isnan(exact)
    odd: Lanes = (cut.view(integers) | sticky.astype(integers)).view(cut.dtype)
    return odd


def to_brain(single: Lanes, rounding: Rounding) -> Lanes:
    """Singles rounded to a bfloat16's precision, as singles."""
    bits = single.view(np.uint32)
    rest, cut = bits & np.uint32(0xFFFF), bits & np.uint32(0xFFFF0000)
    negative = (bits >> np.uint32(31)) != 0
    match rounding:
        case Rounding.NEAREST:
            up = (rest > 0x8000) | ((rest == 0x8000) & ((bits & np.uint32(0x10000)) != 0))
        case Rounding.UP:
            up = (rest != 0) & ~negative
        case Rounding.DOWN:
            up = (rest != 0) & negative
        case _:
            up = np.zeros(bits.shape, np.bool_)
    finite = np.isfinite(single)
    rounded = np.where(finite & up, cut + np.uint32(0x10000), cut)
    return np.where(np.isnan(single), np.uint32(0x7FFF0000), rounded).view(np.float32)


def add(a: Lanes, b: Lanes, rounding: Rounding) -> Lanes:
    """The sum a + b in the operands' format."""
    if a.dtype == np.float64:
        total, error = (a + b, None) if rounding is Rounding.NEAREST else two_sum(a, b)
        if error is not None:
            total = direct(total, error, rounding)
            total = _overflowed(total, np.isfinite(a) & np.isfinite(b), rounding)
            total = _zero_sign(total, a, b, rounding)
        return double_nan(total, a, b)
    if rounding is Rounding.NEAREST:
        return canonical(a + b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    total = narrow(to_odd(*two_sum(wide_a, wide_b)), a.dtype, rounding)
    return canonical(_zero_sign(total, a, b, rounding))


def multiply(a: Lanes, b: Lanes, rounding: Rounding) -> Lanes:
    """The product a * b in the operands' format."""
    if a.dtype == np.float64:
        if rounding is Rounding.NEAREST:
            return double_nan(a * b, a, b)
        # The addend is a zero with the product's sign, so that an exact zero keeps it.
        return fma(a, b, np.copysign(0.0, a * b), rounding)
    if rounding is Rounding.NEAREST:
        return canonical(a * b)
    return canonical(narrow(np.multiply(a, b, dtype=np.float64), a.dtype, rounding))


def fma(a: Lanes, b: Lanes, c: Lanes, rounding: Rounding) -> Lanes:
    """The value of a * b + c in the operands' format, rounded once."""
    if a.dtype == np.float64:
        return double_nan(_fma_double(a, b, c, rounding), a, c, b)
    if rounding is Rounding.NEAREST and a.dtype == np.float32:
        return canonical(_fma_single(a, b, c))
    product = np.multiply(a, b, dtype=np.float64)
    wide = c.astype(np.float64)
    total = narrow(to_odd(*two_sum(product, wide)), a.dtype, rounding)
    return canonical(_zero_sign(total, product, wide, rounding))


def _fma_single(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Products plus singles to the nearest single.

    Products are exact as doubles. Rounding the sum to a double first can mislead only where that is halfway between
    two singles, or below them all. Few arrays at a time: for large ones, memory costs more than arithmetic.
    """
    total = np.multiply(a, b, dtype=np.float64)
    if c.shape[0] <= total.shape[0] and c.shape[1] <= total.shape[1]:
        total += c
    else:
        total = total + c
    result = total.astype(np.float32)
    bits = total.view(np.uint64)
    scratch = bits & _HALFWAY_BITS
    doubtful = scratch == _HALFWAY
    np.left_shift(bits, _ONE, out=scratch)
    scratch -= _ONE
    doubtful |= scratch < _SMALLEST_NORMAL_DOUBLED
    if doubtful.any():
        x, y, z = (operand[doubtful] for operand in np.broadcast_arrays(a, b, c))
        result[doubtful] = exact_fma(x, y, z).astype(np.float32)
    return result


def _fma_double(a: Lanes, b: Lanes, c: Lanes, rounding: Rounding) -> Lanes:
    """Boldo and Melquiond's algorithm, and integers where exponents come near the ends or rounding has a direction."""
    first, second, third = np.broadcast_arrays(a, b, c)
    product, product_error = two_product(first, second)
    middle, low = two_sum(third, product_error)
    total, rest = two_sum(product, middle)
    result = total + to_odd(*two_sum(rest, low))
    safe = _fits(first) & _fits(second) & _fits(third) & _fits(product) & (rounding is Rounding.NEAREST)
    if not safe.all():
        where = np.nonzero(~safe)
        rows = zip(first[where].tolist(), second[where].tolist(), third[where].tolist(), strict=True)
        result[where] = [_fma_exact(x, y, z, rounding) for x, y, z in rows]
    return result


def _fits(value: Lanes) -> Lanes:
    size = np.abs(value)
    return (size > _SAFE_LOW) & (size < _SAFE_HIGH)


def _fma_exact(a: float, b: float, c: float, rounding: Rounding) -> float:
    """The value of a * b + c for one lane, in rational numbers."""
    from fractions import Fraction  # few launches come here

    if not (math.isfinite(a) and math.isfinite(b)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        product_negative = math.copysign(1.0, a) * math.copysign(1.0, b) < 0
        addend_negative = math.copysign(1.0, c) < 0
        if product_negative == addend_negative:
            return -0.0 if product_negative else 0.0
        return -0.0 if rounding is Rounding.DOWN else 0.0
    return round_fraction(exact, rounding)


def round_fraction(exact: Fraction, rounding: Rounding) -> float:
    """The double that a nonzero rational number rounds to."""
    from fractions import Fraction

    negative, size = exact < 0, abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 52, -1074)
    count, rest = divmod(size, unit)
    up = {Rounding.UP: not negative, Rounding.DOWN: negative}.get(rounding, False) and rest > 0
    if rounding is Rounding.NEAREST:
        up = rest * 2 > unit or (rest * 2 == unit and count % 2 == 1)
    rounded = (count + up) | (1 if rounding is Rounding.ODD and rest > 0 else 0)
    value = rounded * unit
    if value >= Fraction(2) ** 1024:
        away = rounding in (Rounding.NEAREST, Rounding.DOWN if negative else Rounding.UP)
        largest = math.inf if away else math.nextafter(math.inf, 0.0)
        return -largest if negative else largest
    return -float(value) if negative else float(value)


def _overflowed(total: Lanes, finite: Lanes, rounding: Rounding) -> Lanes:
    """A directed double sum whose nearest value was infinite though its operands are finite."""
    wrong = np.isinf(total) & finite
    if not wrong.any():
        return total
    largest = np.nextafter(np.inf, 0.0)
    positive = np.inf if rounding is Rounding.UP else largest
    negative = -np.inf if rounding is Rounding.DOWN else -largest
    return np.where(wrong, np.where(total > 0, positive, negative), total)


def _zero_sign(total: Lanes, a: Lanes, b: Lanes, rounding: Rounding) -> Lanes:
    """An exact zero sum of opposite signs is negative when rounding down (IEEE 754, 6.3)."""
    if rounding is not Rounding.DOWN:
        return total
    zero = (total == 0) & (a == -b) & (np.signbit(a) | np.signbit(b))
    return np.where(zero, np.array(-0.0, total.dtype), total)


def from_integer(a: Lanes, dtype: npt.DTypeLike, rounding: Rounding, *, signed: bool) -> Lanes:
    """Words or longs as floats."""
    integers = a.view(np.dtype(f"{'i' if signed else 'u'}{a.dtype.itemsize}"))
    if rounding is Rounding.NEAREST and dtype != np.float16:
        return integers.astype(dtype)
    if a.dtype.itemsize == np.dtype(np.uint32).itemsize:
        exact = integers.astype(np.float64)
        return exact if dtype == np.float64 else narrow(exact, dtype, rounding)
    high = (integers >> 32).astype(np.float64) * 2.0**32
    total, error = two_sum(high, (a & np.uint64(0xFFFFFFFF)).astype(np.float64))
    return direct(total, error, rounding) if dtype == np.float64 else narrow(to_odd(total, error), dtype, rounding)


def to_integral(a: Lanes, rounding: Rounding) -> Lanes:
    """Floats rounded to integral floats."""
    match rounding:
        case Rounding.NEAREST:
            return np.rint(a)
        case Rounding.ZERO:
            return np.trunc(a)
        case Rounding.DOWN:
            return np.floor(a)
        case _:
            return np.ceil(a)


def to_integer(a: Lanes, bits: int, rounding: Rounding, *, signed: bool) -> Lanes:
    """Floats as words or longs, saturating; NaN gives zero."""
    integral = to_integral(a.astype(np.float64), rounding)
    low, high = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    above, below, wrong = integral >= high, integral < low, np.isnan(integral)
    inside = np.where(above | below | wrong, 0.0, integral).astype(dtype)
    limits = np.iinfo(dtype)
    saturated = np.where(above, dtype.type(limits.max), np.where(below, dtype.type(limits.min), inside))
    return saturated.astype(dtype).view(np.dtype(f"u{bits // 8}"))


def approximate(function: str, a: Lanes) -> Lanes:
    """The library's best value of a MUFU function, in the operand's format; sines take turns, not radians."""
    wide = a.astype(np.float64)
    match function:
        case "RCP":
            value = 1.0 / wide
        case "RSQ":
            value = 1.0 / np.sqrt(wide)
        case "SQRT":
            value = np.sqrt(wide)
        case "SIN":
            value = np.sin(2.0 * np.pi * np.fmod(wide, 1.0))
        case "COS":
            value = np.cos(2.0 * np.pi * np.fmod(wide, 1.0))
        case "EX2":
            value = np.exp2(wide)
        case "LG2":
            value = np.log2(wide)
        case "TANH":
            value = np.tanh(wide)
        case _:
            value = np.full_like(wide, np.nan)
    return value if a.dtype == np.float64 else canonical(value.astype(a.dtype))
