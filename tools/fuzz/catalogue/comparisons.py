"""Comparisons of every kind of number, joined with another truth: all that a predicate can be set from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.floats import COMPARISONS
from tools.fuzz.catalogue.operation import Operation, ptx

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOGIC = ("and", "or", "xor")


def make_comparisons() -> Iterator[Operation]:
    """Comparisons into two predicates, each joined with a third one."""
    for comparison in ("eq", "ne", "lt", "le", "gt", "ge"):
        for logic in _LOGIC:
            for sign in ("u32", "s32"):
                yield _compare(f"setp.{comparison}.{logic}.{sign}", "u")
            for sign in ("u64", "s64"):
                yield _compare(f"setp.{comparison}.{logic}.{sign}", "d")
    for comparison in COMPARISONS:
        for logic in _LOGIC:
            yield _compare(f"setp.{comparison}.{logic}.f32", "f")
            yield _compare(f"setp.{comparison}.{logic}.ftz.f32", "f")
            yield _compare(f"setp.{comparison}.{logic}.f64", "g")
        for flush in ("", ".ftz"):
            yield ptx(f"set.{comparison}{flush}.f32.f32", "f", "ff")
            yield ptx(f"set.{comparison}{flush}.f16x2.f16x2", "h", "hh")
        yield ptx(f"set.{comparison}.bf16x2.bf16x2", "b", "bb")
    for comparison in ("lt", "neu"):
        for logic in _LOGIC:
            body = (
                f"{{ .reg .pred a, q, r; setp.ne.u32 a, %3, 0; setp.{comparison}.{logic}.f16x2 q|r, %1, %2, a;"
                " selp.u32 %0, 1, 0, q; @r xor.b32 %0, %0, 2; }"
            )
            yield ptx(f"setp.{comparison}.{logic}.f16x2", "u", "hhp", body)


def _compare(instruction: str, kind: str) -> Operation:
    # The second predicate holds where the comparison does not.
    body = (
        f"{{ .reg .pred a, q, r; setp.ne.u32 a, %3, 0; {instruction} q|r, %1, %2, a;"
        " selp.u32 %0, 1, 0, q; @r xor.b32 %0, %0, 1; }"
    )
    return ptx(instruction, "p", f"{kind}{kind}p", body)
