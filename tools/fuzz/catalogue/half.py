"""Operations on pairs of f16 and bf16, and on single ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.floats import COMPARISONS
from tools.fuzz.catalogue.operation import Operation, ptx, ptx_half

if TYPE_CHECKING:
    from collections.abc import Iterator


def make_halves() -> Iterator[Operation]:
    """Operations on f16 and pairs of them."""
    for flush in ("", ".ftz"):
        for saturate in ("", ".sat"):
            for name in ("add", "sub", "mul"):
                yield ptx(f"{name}.rn{flush}{saturate}.f16x2", "h", "hh")
                yield ptx_half(f"{name}.rn{flush}{saturate}.f16", 2, result="h", source="h")
            yield ptx(f"fma.rn{flush}{saturate}.f16x2", "h", "hhh")
            yield ptx_half(f"fma.rn{flush}{saturate}.f16", 3, result="h", source="h")
        for _ in range(3):
            yield ptx(f"fma.rn{flush}.relu.f16x2", "h", "hhh")
        for name in ("min", "max"):
            for nan in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
                yield ptx(f"{name}{flush}{nan}.f16x2", "h", "hh")
                yield ptx_half(f"{name}{flush}{nan}.f16", 2, result="h", source="h")
        for name in ("abs", "neg"):
            yield ptx(f"{name}{flush}.f16x2", "h", "h")
        for comparison in COMPARISONS:
            yield ptx(f"setp.{comparison}{flush}.f16x2", "u", "hh", _pair_of_truths(comparison, f"{flush}.f16x2"))
        for comparison in ("lt", "neu", "num"):
            yield ptx(f"set.{comparison}{flush}.f16x2.f16x2", "h", "hh")
            yield ptx(f"set.{comparison}{flush}.u32.f16x2 half", "p", "hh", _half_truth(comparison, flush))


def make_bfloats() -> Iterator[Operation]:
    """Operations on bf16 and pairs of them."""
    for name in ("add", "sub", "mul"):
        yield ptx(f"{name}.rn.bf16x2", "b", "bb")
        yield ptx_half(f"{name}.rn.bf16", 2, result="b", source="b")
    for relu in ("", ".relu"):
        yield ptx(f"fma.rn{relu}.bf16x2", "b", "bbb")
        yield ptx_half(f"fma.rn{relu}.bf16", 3, result="b", source="b")
    for name in ("min", "max"):
        for nan in ("", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"):
            yield ptx(f"{name}{nan}.bf16x2", "b", "bb")
            yield ptx_half(f"{name}{nan}.bf16", 2, result="b", source="b")
    for name in ("abs", "neg"):
        yield ptx(f"{name}.bf16x2", "b", "b")
    for comparison in COMPARISONS:
        yield ptx(f"setp.{comparison}.bf16x2", "u", "bb", _pair_of_truths(comparison, ".bf16x2"))
    for comparison in ("lt", "neu", "num"):
        yield ptx(f"set.{comparison}.bf16x2.bf16x2", "b", "bb")


def _pair_of_truths(comparison: str, suffix: str) -> str:
    return (
        f"{{ .reg .pred q, r; .reg .u32 s; setp.{comparison}{suffix} q|r, %1, %2; selp.u32 %0, 1, 0, q;"
        " selp.u32 s, 2, 0, r; or.b32 %0, %0, s; }"
    )


def _half_truth(comparison: str, flush: str) -> str:
    return (
        "{ .reg .b16 a, b; .reg .pred q; cvt.u16.u32 a, %1; cvt.u16.u32 b, %2;"
        f" setp.{comparison}{flush}.f16 q, a, b; selp.u32 %0, 1, 0, q; }}"
    )
