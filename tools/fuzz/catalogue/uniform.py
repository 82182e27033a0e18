"""Operations on values that all lanes have in common, of which compilers make instructions of the uniform data path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import Operation, cpp, ptx

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
_LOGIC = ("and", "or", "xor")


def make_uniforms() -> Iterator[Operation]:
    """Operations whose results are used by operations of the same list, and by lanes at the end."""
    for comparison in _COMPARISONS:
        for sign in ("u32", "s32"):
            for logic in _LOGIC:
                body = (
                    f"{{ .reg .pred p, q; setp.gt.s32 q, %4, %1; setp.{comparison}.{logic}.{sign} p, %1, %2, q;"
                    " selp.u32 %0, %3, %4, p; }"
                )
                yield ptx(f"setp.{comparison}.{logic}.{sign} uniform", "u", "uuuu", body)
        for sign in ("u64", "s64"):
            for logic in _LOGIC:
                body = (
                    "{ .reg .b64 x, y; .reg .pred p, q; setp.lt.u32 q, %4, %1; mov.b64 x, {%1, %2};"
                    f" mov.b64 y, {{%3, %4}}; setp.{comparison}.{logic}.{sign} p, x, y, q; selp.u32 %0, %1, %3, p; }}"
                )
                yield ptx(f"setp.{comparison}.{logic}.{sign} uniform", "u", "uuuu", body)
    yield from _make_shifts()
    yield cpp("add shifted", "u", "uu", "{0} + ({1} << {i0})", immediates=((1, 31),))
    yield cpp("add upper bits", "u", "uu", "{0} + ({1} >> {i0})", immediates=((1, 31),))
    yield cpp("add signed upper bits", "u", "uu", "{0} + (unsigned)((int){1} >> {i0})", immediates=((1, 31),))
    yield cpp("product and sum", "u", "uuu", "{0} * {1} + {2}")
    yield cpp("upper product", "u", "uu", "__umulhi({0}, {1})")
    yield cpp("logic", "u", "uuu", "({0} & {1}) ^ ~{2}")
    yield cpp("sum", "u", "uuu", "{0} + {1} - {2}")
    yield cpp("least", "u", "uu", "min((int){0}, (int){1})")
    yield ptx("prmt.b32 uniform", "u", "uu", "prmt.b32 %0, %1, %2, <<i0>>;", immediates=((0, 0xFFFF),))


def make_uniform_sums() -> Iterator[Operation]:
    """Sums of a long number and a shifted one, of which the upper word counts."""
    for widen in ("u64.u32", "s64.s32"):
        for shift in (1, 3, 5, 12):
            body = (
                f"{{ .reg .b64 x, y; mov.b64 x, {{%1, %2}}; cvt.{widen} y, %3; shl.b64 y, y, {shift};"
                " add.u64 x, x, y; mov.b64 {_, %0}, x; }"
            )
            yield ptx(f"add.{widen} shifted by {shift}", "u", "uuu", body)


def _make_shifts() -> Iterator[Operation]:
    for name in ("brev.b32", "popc.b32", "bfind.u32", "bfind.s32", "bfind.shiftamt.u32", "bfind.shiftamt.s32"):
        yield ptx(name, "u", "u")
    for wrap in ("clamp", "wrap"):
        for _ in range(2):
            yield ptx(f"bmsk.{wrap}.b32", "u", "uu")
            yield ptx(f"szext.{wrap}.u32", "u", "uu")
            yield ptx(f"szext.{wrap}.s32", "u", "uu")
            yield ptx(f"shf.l.{wrap}.b32", "u", "uuu")
            yield ptx(f"shf.r.{wrap}.b32", "u", "uuu")
    yield cpp("shift left", "u", "uu", "{0} << ({1} & 31u)")
    yield cpp("shift right", "u", "uu", "{0} >> ({1} & 31u)")
    yield cpp("signed shift right", "u", "uu", "(unsigned)((int){0} >> ({1} & 31u))")
    for name in ("shl.b64", "shr.u64", "shr.s64"):
        for _ in range(2):
            body = f"{{ .reg .b64 x; mov.b64 x, {{%1, %2}}; {name} x, x, <<i0>>; mov.b64 {{%0, _}}, x; }}"
            yield ptx(f"{name} lower uniform", "u", "uu", body, immediates=((1, 63),))
            body = f"{{ .reg .b64 x; mov.b64 x, {{%1, %2}}; {name} x, x, <<i0>>; mov.b64 {{_, %0}}, x; }}"
            yield ptx(f"{name} upper uniform", "u", "uu", body, immediates=((1, 63),))
        body = f"{{ .reg .b64 x; mov.b64 x, {{%1, %2}}; {name} x, x, %3; mov.b64 {{%0, _}}, x; }}"
        yield ptx(f"{name} by a value", "u", "uuu", body)
