"""Integer operations: arithmetic, carries, wide products, logic, shifts, fields, bytes, comparisons."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.operation import Operation, cpp, ptx, ptx_half, ptx_truth

if TYPE_CHECKING:
    from collections.abc import Iterator

_BYTE_PAIRS = ("u32.u32", "u32.s32", "s32.u32", "s32.s32")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def make_words() -> Iterator[Operation]:
    """Operations on 32-bit integers."""
    for name in ("add.u32", "sub.u32", "mul.lo.u32", "mul.hi.u32", "mul.hi.s32", "mul24.lo.u32", "mul24.lo.s32"):
        yield ptx(name, "u", "uu")
    for name in ("min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "min.relu.s32"):
        yield ptx(name, "u", "uu")
    for name in ("max.relu.s32", "shl.b32", "shr.u32", "shr.s32", "add.sat.s32", "sub.sat.s32"):
        yield ptx(name, "u", "uu")
    for name in ("abs.s32", "neg.s32", "not.b32", "cnot.b32", "popc.b32", "clz.b32", "brev.b32"):
        yield ptx(name, "u", "u")
    for name in ("bfind.u32", "bfind.s32", "bfind.shiftamt.u32", "bfind.shiftamt.s32"):
        yield ptx(name, "u", "u")
    for name in ("mad.lo.u32", "mad.hi.u32", "mad.hi.s32", "mad24.lo.u32", "mad24.lo.s32", "sad.u32", "sad.s32"):
        yield ptx(name, "u", "uuu")
    for signs in _BYTE_PAIRS:
        yield ptx(f"dp4a.{signs}", "u", "uuu")
        yield ptx(f"dp2a.lo.{signs}", "u", "uuu")
        yield ptx(f"dp2a.hi.{signs}", "u", "uuu")
    for sign in ("u32", "s32"):
        yield ptx(f"bfe.{sign}", "u", "uuu")
        yield ptx(
            f"bfe.{sign} immediate", "u", "u", f"bfe.{sign} %0, %1, <<i0>>, <<i1>>;", immediates=((0, 31), (0, 32))
        )
        for wrap in ("clamp", "wrap"):
            yield ptx(f"szext.{wrap}.{sign}", "u", "uu")
    yield ptx("bfi.b32", "u", "uuuu")
    yield ptx("bfi.b32 immediate", "u", "uu", "bfi.b32 %0, %1, %2, <<i0>>, <<i1>>;", immediates=((0, 31), (0, 32)))
    for wrap in ("clamp", "wrap"):
        yield ptx(f"bmsk.{wrap}.b32", "u", "uu")
        yield ptx(f"shf.l.{wrap}.b32", "u", "uuu")
        yield ptx(f"shf.r.{wrap}.b32", "u", "uuu")
    for _ in range(6):
        yield ptx("lop3.b32", "u", "uuu", "lop3.b32 %0, %1, %2, %3, <<i0>>;", immediates=((0, 255),))
    yield ptx("prmt.b32", "u", "uuu")
    yield ptx("prmt.b32 immediate", "u", "uu", "prmt.b32 %0, %1, %2, <<i0>>;", immediates=((0, 0xFFFF),))
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        yield ptx(f"prmt.b32.{mode}", "u", "uuu")
    for sign in ("u32", "s32"):
        yield ptx(f"div.{sign}", "u", "uu", f"{{ .reg .u32 t; or.b32 t, %2, 1; div.{sign} %0, %1, t; }}")
        yield ptx(f"rem.{sign}", "u", "uu", f"{{ .reg .u32 t; or.b32 t, %2, 1; rem.{sign} %0, %1, t; }}")
    yield cpp("lea", "u", "uu", "{0} + ({1} << {i0})", immediates=((1, 31),))
    yield cpp("lea subtract", "u", "uu", "({1} << {i0}) - {0}", immediates=((1, 31),))
    yield cpp("multiply by constant", "u", "uu", "{0} * {i0}u + {1}", immediates=((0, 0xFFFFFFFF),))
    yield cpp("divide by constant", "u", "u", "{0} / {i0}u", immediates=((1, 1000),))
    yield cpp("signed divide by constant", "u", "u", "(unsigned)((int){0} / (int){i0}u)", immediates=((1, 1000),))
    yield cpp("remainder by constant", "u", "u", "(unsigned)((int){0} % (int){i0}u)", immediates=((1, 1000),))
    yield cpp("three sums", "u", "uuu", "{0} - {1} + {2}")
    yield cpp("select", "u", "puu", "{0} ? {1} : {2}")
    yield cpp("signed halves", "u", "uu", "(unsigned)((short){0} * (short)({1} >> 16))")
    yield cpp("bytes", "u", "uu", "(unsigned)(signed char){0} + (unsigned)(unsigned char)({1} >> 8)")
    yield ptx("slct.u32.s32", "u", "uuu")
    yield ptx("slct.u32.f32", "u", "uuf")
    yield ptx("slct.ftz.u32.f32", "u", "uuf")


def make_carries() -> Iterator[Operation]:
    """Chains through the carry flag, and products wider than a word."""
    yield ptx(
        "add.cc.u32",
        "d",
        "uuuu",
        "{ .reg .u32 l, h; add.cc.u32 l, %1, %2; addc.u32 h, %3, %4; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "sub.cc.u32",
        "d",
        "uuuu",
        "{ .reg .u32 l, h; sub.cc.u32 l, %1, %2; subc.u32 h, %3, %4; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "addc.cc.u32",
        "d",
        "dduu",
        "{ .reg .u32 a, b, c, e, l, h; mov.b64 {a, b}, %1; mov.b64 {c, e}, %2; add.cc.u32 l, a, c;"
        " addc.cc.u32 h, b, e; addc.u32 a, %3, %4; xor.b32 l, l, a; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "subc.cc.u32",
        "d",
        "dduu",
        "{ .reg .u32 a, b, c, e, l, h; mov.b64 {a, b}, %1; mov.b64 {c, e}, %2; sub.cc.u32 l, a, c;"
        " subc.cc.u32 h, b, e; subc.u32 a, %3, %4; xor.b32 l, l, a; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "mad.lo.cc.u32",
        "d",
        "uuuu",
        "{ .reg .u32 l, h; mad.lo.cc.u32 l, %1, %2, %3; madc.hi.u32 h, %1, %2, %4; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "mad.hi.cc.u32",
        "d",
        "uuuu",
        "{ .reg .u32 l, h; mad.hi.cc.u32 l, %1, %2, %3; addc.u32 h, %4, 0; mov.b64 %0, {l, h}; }",
    )
    yield ptx(
        "mad.lo.cc.u32 signed",
        "d",
        "uuuu",
        "{ .reg .u32 l, h; mad.lo.cc.s32 l, %1, %2, %3; madc.hi.s32 h, %1, %2, %4; mov.b64 %0, {l, h}; }",
    )
    yield ptx("mad.lo.cc.u64", "d", "ddd", "{ .reg .u64 h; mad.lo.cc.u64 h, %1, %2, %3; madc.hi.u64 %0, %1, %2, h; }")
    yield ptx("add.cc.u64", "d", "ddd", "{ .reg .u64 l; add.cc.u64 l, %1, %2; addc.u64 %0, %3, l; }")
    for sign in ("u32", "s32"):
        yield ptx(f"mul.wide.{sign}", "d", "uu")
        yield ptx(f"mad.wide.{sign}", "d", "uud")
    for sign in ("u16", "s16"):
        body = f"{{ .reg .b16 a, b; cvt.u16.u32 a, %1; cvt.u16.u32 b, %2; mul.wide.{sign} %0, a, b; }}"
        yield ptx(f"mul.wide.{sign}", "u", "uu", body)
        body = f"{{ .reg .b16 a, b; cvt.u16.u32 a, %1; cvt.u16.u32 b, %2; mad.wide.{sign} %0, a, b, %3; }}"
        yield ptx(f"mad.wide.{sign}", "u", "uuu", body)


def make_longs() -> Iterator[Operation]:
    """Operations on 64-bit integers."""
    for name in ("add.u64", "sub.u64", "mul.lo.u64", "mul.hi.u64", "mul.hi.s64", "min.u64", "max.s64", "min.s64"):
        yield ptx(name, "d", "dd")
    for name in ("max.u64", "and.b64", "or.b64", "xor.b64"):
        yield ptx(name, "d", "dd")
    for name in ("shl.b64", "shr.u64", "shr.s64"):
        yield ptx(name, "d", "du")
    for name in ("abs.s64", "neg.s64", "not.b64", "brev.b64"):
        yield ptx(name, "d", "d")
    for name in ("popc.b64", "clz.b64", "bfind.u64", "bfind.s64"):
        yield ptx(name, "u", "d")
    for name in ("mad.lo.u64", "mad.hi.u64", "mad.hi.s64"):
        yield ptx(name, "d", "ddd")
    for sign in ("u64", "s64"):
        yield ptx(f"bfe.{sign}", "d", "duu")
        yield ptx(f"div.{sign}", "d", "dd", f"{{ .reg .u64 t; or.b64 t, %2, 1; div.{sign} %0, %1, t; }}")
        yield ptx(f"rem.{sign}", "d", "dd", f"{{ .reg .u64 t; or.b64 t, %2, 1; rem.{sign} %0, %1, t; }}")
    yield ptx("bfi.b64", "d", "dduu")
    yield cpp("select long", "d", "pdd", "{0} ? {1} : {2}")
    yield cpp("shift long", "d", "d", "{0} << {i0}", immediates=((0, 63),))
    yield cpp("shift long right", "d", "d", "(unsigned long long)((long long){0} >> {i0})", immediates=((0, 63),))
    yield cpp("address", "d", "du", "{0} + (unsigned long long){1} * {i0}u", immediates=((1, 64),))
    yield cpp(
        "signed address", "d", "du", "{0} + (unsigned long long)((long long)(int){1} * {i0})", immediates=((1, 64),)
    )
    yield cpp("widen", "d", "u", "(unsigned long long)(long long)(int){0}")


def make_truths() -> Iterator[Operation]:
    """Integer comparisons, and logic on predicates."""
    for comparison in _COMPARISONS:
        for sign in ("u32", "s32"):
            yield ptx_truth(f"setp.{comparison}.{sign}", "uu")
            yield ptx(f"set.{comparison}.u32.{sign}", "u", "uu")
        for sign in ("u64", "s64"):
            yield ptx_truth(f"setp.{comparison}.{sign}", "dd")
    for comparison, logic in (("lt", "and"), ("ge", "or"), ("eq", "xor"), ("ne", "and")):
        body = (
            f"{{ .reg .pred a, q, r; setp.ne.u32 a, %3, 0; setp.{comparison}.{logic}.s32 q|r, %1, %2, a;"
            " selp.u32 %0, 1, 0, q; @r xor.b32 %0, %0, 1; }"
        )
        yield ptx(f"setp.{comparison}.{logic}.s32", "p", "uup", body)
    for logic in ("and", "or", "xor"):
        yield cpp(
            f"{logic} of truths",
            "p",
            "pp",
            f"({{0}} {dict(zip(('and', 'or', 'xor'), '&|^', strict=True))[logic]} {{1}})",
        )
    yield cpp("majority", "p", "ppp", "(({0} & {1}) | ({1} & {2}) | ({0} & {2}))")
    yield cpp("not", "p", "p", "(!{0})")
    yield cpp("odd", "p", "u", "({0} & 1u)")
    yield cpp("bit", "p", "uu", "(({0} >> ({1} & 31u)) & 1u)")
    yield cpp("count truths", "u", "pppp", "{0} + 2u * {1} + 4u * {2} + 8u * {3}")


def make_packed() -> Iterator[Operation]:
    """Operations on two or four numbers in a word, and on 16-bit numbers."""
    for name in ("add.u16", "sub.u16", "mul.lo.u16", "mul.hi.u16", "mul.hi.s16", "min.u16", "max.s16", "min.s16"):
        yield ptx_half(name, 2)
    for name in ("max.u16", "and.b16", "xor.b16"):
        yield ptx_half(name, 2)
    yield ptx_half("mad.lo.u16", 3)
    for name in ("abs.s16", "neg.s16", "not.b16"):
        yield ptx_half(name, 1)
    for name in ("add.u16x2", "add.s16x2", "min.u16x2", "max.u16x2", "min.s16x2", "max.s16x2"):
        yield ptx(name, "u", "uu")
    for name in ("min.relu.s16x2", "max.relu.s16x2"):
        yield ptx(name, "u", "uu")
    for name in ("vadd4", "vsub4", "vmaxs4", "vminu4", "vabsdiffu4", "vavgu4", "vadd2", "vsub2", "vmaxs2", "vminu2"):
        yield cpp(f"__{name}", "u", "uu", f"__{name}({{0}}, {{1}})")
    for name in ("vaddus4", "vsubss4", "vcmpeq4", "vcmpgtu2", "vsetles2", "vabsdiffs2", "vhaddu4", "vabsdiffs4"):
        yield cpp(f"__{name}", "u", "uu", f"__{name}({{0}}, {{1}})")
    for name in ("vabs2", "vabs4", "vneg2", "vnegss4"):
        yield cpp(f"__{name}", "u", "u", f"__{name}({{0}})")
    yield from _make_extremes()
    for name in ("vadd", "vsub", "vmin", "vmax", "vabsdiff"):
        for pick in ("b0, %2.b3", "h1, %2.h0", "b2, %2.h1"):
            first, second = pick.split(", %2.")
            sat = ".sat" if pick.startswith("b0") else ""
            body = f"{name}.s32.u32.s32{sat} %0, %1.{first}, %2.{second};"
            yield ptx(f"{name}.{first}.{second}", "u", "uu", body)
    for name in ("vshl", "vshr"):
        for mode in ("clamp", "wrap"):
            yield ptx(f"{name}.u32.u32.u32.{mode}", "u", "uu")
    yield ptx("vmad.u32.u32.u32", "u", "uuu", "vmad.u32.u32.u32 %0, %1.b1, %2.h1, %3;")
    yield ptx("vset.lt.u32.s32", "u", "uu", "vset.s32.u32.lt %0, %1.h0, %2.b1;")


def _make_extremes() -> Iterator[Operation]:
    """Sums with a minimum or maximum, and minima and maxima of three."""
    for name in ("s32", "u32", "s16x2", "u16x2", "s32_relu", "s16x2_relu"):
        word = "(int)" if name.startswith("s32") else ""
        for what in ("viaddmax", "viaddmin", "vimax3", "vimin3"):
            call = f"(unsigned)__{what}_{name}({word}{{0}}, {word}{{1}}, {word}{{2}})"
            yield cpp(f"__{what}_{name}", "u", "uuu", call)
