"""Operations on floats and doubles: every rounding, flushing and saturation, comparisons with NaN, division, roots.

Approximate instructions (ex2, sin, rsqrt, div.approx) are not among them: their last bits are nobody's promise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import Operation, cpp, ptx, ptx_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

ROUNDINGS = ("rn", "rz", "rm", "rp")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def make_singles() -> Iterator[Operation]:
    """Operations on floats."""
    for flush in ("", ".ftz"):
        for rounding in ROUNDINGS:
            for saturate in ("", ".sat"):
                suffix = f"{rounding}{flush}{saturate}.f32"
                yield ptx(f"add.{suffix}", "f", "ff")
                yield ptx(f"mul.{suffix}", "f", "ff")
                yield ptx(f"fma.{suffix}", "f", "fff")
            yield ptx(f"sub.{rounding}{flush}.f32", "f", "ff")
            yield ptx(f"div.{rounding}{flush}.f32", "f", "ff")
            yield ptx(f"sqrt.{rounding}{flush}.f32", "f", "f")
            yield ptx(f"rcp.{rounding}{flush}.f32", "f", "f")
        for name in ("min", "max"):
            for nan in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield ptx(f"{name}{flush}{nan}.f32", "f", "ff")
        for name in ("abs", "neg"):
            yield ptx(f"{name}{flush}.f32", "f", "f")
        for comparison in COMPARISONS:
            yield ptx_truth(f"setp.{comparison}{flush}.f32", "ff")
        for comparison in ("lt", "geu", "nan"):
            yield ptx(f"set.{comparison}{flush}.u32.f32", "u", "ff")
            yield ptx(f"set.{comparison}{flush}.f32.f32", "f", "ff")
    for comparison, logic in (("lt", "and"), ("geu", "or"), ("eq", "xor")):
        body = (
            f"{{ .reg .pred a, q, r; setp.ne.u32 a, %3, 0; setp.{comparison}.{logic}.f32 q|r, %1, %2, a;"
            " selp.u32 %0, 1, 0, q; @r xor.b32 %0, %0, 1; }"
        )
        yield ptx(f"setp.{comparison}.{logic}.f32", "p", "ffp", body)
    yield ptx("copysign.f32", "f", "ff")
    for test in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield ptx_truth(f"testp.{test}.f32", "f")
        yield ptx_truth(f"testp.{test}.f64", "g")
    yield cpp("select float", "f", "pff", "{0} ? {1} : {2}")
    yield cpp("negated product", "f", "fff", "__fmaf_rn(-{0}, {1}, -{2})")
    yield cpp("absolute sum", "f", "ff", "__fadd_rn(fabsf({0}), -fabsf({1}))")
    yield cpp("absolute comparison", "p", "ff", "(unsigned)(fabsf({0}) < -fabsf({1}) || {0} != {1})")
    yield cpp("greatest of three", "f", "fff", "fmaxf(fmaxf({0}, {1}), {2})")
    yield cpp("double it", "f", "f", "{0} * 2.0f")
    yield cpp("times constant", "f", "ff", "__fmaf_rn({0}, __uint_as_float({i0}u), {1})", immediates=((0, 0xFFFFFFFF),))
    yield cpp("plus constant", "f", "f", "__fadd_rn({0}, __uint_as_float({i0}u))", immediates=((0, 0xFFFFFFFF),))
    yield cpp("fmodf", "f", "ff", "fmodf({0}, {1})")
    yield cpp("ldexpf", "f", "fu", "ldexpf({0}, (int){1} % 300)")
    yield cpp("ilogbf", "u", "f", "(unsigned)ilogbf({0})")
    yield cpp("nextafterf", "f", "ff", "nextafterf({0}, {1})")
    yield cpp("roundf", "f", "f", "roundf({0})")
    yield cpp("remainderf", "f", "ff", "remainderf({0}, {1})")
    yield cpp("hypot parts", "f", "ff", "__fsqrt_rn(__fmaf_rn({0}, {0}, __fmul_rn({1}, {1})))")


def make_doubles() -> Iterator[Operation]:
    """Operations on doubles."""
    for rounding in ROUNDINGS:
        for name in ("add", "mul", "sub"):
            yield ptx(f"{name}.{rounding}.f64", "g", "gg")
        yield ptx(f"fma.{rounding}.f64", "g", "ggg")
        yield ptx(f"div.{rounding}.f64", "g", "gg")
        yield ptx(f"sqrt.{rounding}.f64", "g", "g")
        yield ptx(f"rcp.{rounding}.f64", "g", "g")
    for name in ("min", "max", "copysign"):
        yield ptx(f"{name}.f64", "g", "gg")
    for name in ("abs", "neg"):
        yield ptx(f"{name}.f64", "g", "g")
    for comparison in COMPARISONS:
        yield ptx_truth(f"setp.{comparison}.f64", "gg")
    yield ptx("set.lt.u32.f64", "u", "gg")
    yield cpp("select double", "g", "pgg", "{0} ? {1} : {2}")
    yield cpp("negated double product", "g", "ggg", "__fma_rn(-{0}, {1}, -{2})")
    yield cpp("absolute double sum", "g", "gg", "__dadd_rn(fabs({0}), -fabs({1}))")
    yield cpp("round", "g", "g", "round({0})")
    yield cpp("times double constant", "g", "gg", "__fma_rn({0}, 1.5, {1})")
    yield cpp("double high", "u", "g", "(unsigned)__double2hiint({0}) ^ (unsigned)__double2loint({0})")
