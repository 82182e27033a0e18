"""Turns operations of the algebra into a table: name, what they do with an algebra, the kinds of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sectorwise.machine.algebra import Float, Rounding
from sectorwise.machine.native.values import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P, W, L, H, S, D = Kind.PREDICATE, Kind.WORD, Kind.LONG, Kind.HALF, Kind.SINGLE, Kind.DOUBLE


@dataclass(frozen=True)
class Case:
    """One operation: `run(algebra, *operands)` on operands of these kinds."""

    name: str
    run: Callable[..., Any]
    kinds: tuple[Kind, ...]


def _by_name(name: str, *kinds: Kind, **options: object) -> Case:
    label = "-".join([name, *kinds, *(f"{key}={value}" for key, value in options.items())])
    return Case(label, lambda algebra, *operands: getattr(algebra, name)(*operands, **options), kinds)


def all_cases() -> list[Case]:
    return [*_integer_cases(), *_float_cases(), *_conversion_cases(), *_lane_cases()]


def _integer_cases() -> Iterator[Case]:
    for kind in (W, L):
        for name in ("add", "subtract", "multiply", "shift_left", "shift_right", "shift_right_signed", "equal"):
            yield _by_name(name, kind, kind)
        for name in ("less_unsigned", "less_signed", "multiply_high_unsigned", "multiply_high_signed"):
            yield _by_name(name, kind, kind)
    for kind in (P, W, L):
        yield _by_name("invert", kind)
        for name in ("bit_and", "bit_or", "bit_xor"):
            yield _by_name(name, kind, kind)
    for kind in (P, W, L, H, S, D):
        yield _by_name("select", P, kind, kind)
    for name in ("extend_zero", "extend_sign", "population_count", "leading_zeros", "reverse_bits"):
        yield _by_name(name, W)
    for name in ("low", "high"):
        yield _by_name(name, L)
    yield _by_name("join", W, W)
    yield Case("join-used", lambda algebra, low, high: algebra.add(algebra.join(low, high), algebra.long(1)), (W, W))
    for signed in (False, True):
        yield _by_name("multiply_wide", W, W, signed=signed)
    yield _by_name("from_predicate", P)


def _float_cases() -> Iterator[Case]:
    for kind in (H, S, D):
        for rounding in Rounding:
            yield _by_name("float_add", kind, kind, rounding=rounding)
            yield _by_name("float_multiply", kind, kind, rounding=rounding)
            yield _by_name("float_fma", kind, kind, kind, rounding=rounding)
            if kind is S and rounding is not Rounding.ODD:
                yield _by_name("float_multiply", kind, kind, rounding=rounding, flush=True)
                yield _by_name("float_fma", kind, kind, kind, rounding=rounding, flush=True)
            if rounding is not Rounding.ODD:
                yield _by_name("round_integral", kind, rounding=rounding)
        for name in ("float_less", "float_equal"):
            yield _by_name(name, kind, kind)
        for name in ("is_nan", "flush_denormals", "view_bits"):
            yield _by_name(name, kind)
        yield _chain(kind)
    for function in ("RCP", "RSQ", "SQRT", "SIN", "COS", "EX2", "LG2", "TANH"):
        yield _by_name_first("approximate", function, S)
        yield _by_name_first("approximate", function, H)
    for function in ("RCP", "RSQ"):
        yield _by_name_first("approximate", function, D)


def _by_name_first(name: str, first: str, kind: Kind) -> Case:
    return Case(f"{name}-{first}-{kind}", lambda algebra, a: getattr(algebra, name)(first, a), (kind,))


def _chain(kind: Kind) -> Case:
    """NaNs that go through several operations before their bits are seen."""

    def run(algebra: Any, a: object, b: object) -> object:  # noqa: ANN401 - either algebra
        nearest = Rounding.NEAREST
        total = algebra.float_add(algebra.float_multiply(a, b, nearest), a, nearest)
        smaller = algebra.select(algebra.float_less(total, b), total, algebra.float_fma(total, a, b, nearest))
        return algebra.bit_xor(algebra.view_bits(smaller), algebra.view_bits(total))

    return Case(f"chain-{kind}", run, (kind, kind))


def _conversion_cases() -> Iterator[Case]:
    for form, kind in ((Float.F32, W), (Float.F64, L), (Float.F16, W), (Float.BF16, W)):
        yield _by_name("view_float", kind, kind=form)
    for kind in (H, S, D):
        for rounding in Rounding:
            for form in Float:
                yield _by_name("convert_float", kind, kind=form, rounding=rounding)
            if rounding is not Rounding.ODD:
                for bits in (32, 64):
                    for signed in (False, True):
                        yield _by_name("integer_from_float", kind, bits=bits, rounding=rounding, signed=signed)
    for kind in (W, L):
        for form in Float:
            for rounding in Rounding:
                for signed in (False, True):
                    yield _by_name("float_from_integer", kind, kind=form, rounding=rounding, signed=signed)


def _lane_cases() -> Iterator[Case]:
    yield Case("lane", lambda algebra, a: algebra.add(a, algebra.lane()), (W,))
    for kind in (P, W, L):
        yield Case(
            f"permute-{kind}",
            lambda algebra, a, b: algebra.permute(a, algebra.bit_and(b, algebra.word(31))),
            (kind, W),
        )
        yield Case(
            f"permute-known-{kind}",
            lambda algebra, a: algebra.permute(a, algebra.bit_xor(algebra.lane(), algebra.word(5))),
            (kind,),
        )
        yield _by_name("first_active", kind, P)
    yield _by_name("ballot", P)
