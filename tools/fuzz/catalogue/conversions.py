"""Conversions between all kinds of numbers, in every rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fuzz.catalogue.floats import ROUNDINGS
from tools.fuzz.catalogue.operation import Operation, ptx

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTEGRAL = ("rni", "rzi", "rmi", "rpi")
_FLOATS = {"f32": "f", "f64": "g"}


def make_conversions() -> Iterator[Operation]:
    """All conversions."""
    yield from _floats_to_integers()
    yield from _integers_to_floats()
    yield from _floats_to_floats()
    yield from _narrow()
    yield from _eight_bits()


def _floats_to_integers() -> Iterator[Operation]:
    for rounding in _INTEGRAL:
        for kind, letter in _FLOATS.items():
            for sign in "us":
                for flush in ("", ".ftz") if kind == "f32" else ("",):
                    yield ptx(f"cvt.{rounding}{flush}.{sign}32.{kind}", "u", letter)
                    yield ptx(f"cvt.{rounding}{flush}.{sign}64.{kind}", "d", letter)
                for bits, register in ((8, ".b16"), (16, ".b16")):
                    short = f"cvt.{rounding}.{sign}{bits}.{kind}"
                    body = f"{{ .reg {register} t; {short} t, %1; cvt.u32.u16 %0, t; }}"
                    yield ptx(short, "u", letter, body)
        for sign in "us":
            for half, letter in (("f16", "h"), ("bf16", "b")):
                name = f"cvt.{rounding}.{sign}32.{half}"
                yield ptx(name, "u", letter, f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} %0, t; }}")
                name = f"cvt.{rounding}.{sign}64.{half}"
                yield ptx(name, "d", letter, f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} %0, t; }}")
                name = f"cvt.{rounding}.{sign}16.{half}"
                yield ptx(name, "u", letter, f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} t, t; cvt.u32.u16 %0, t; }}")
        for kind, letter in _FLOATS.items():
            yield ptx(f"cvt.{rounding}.{kind}.{kind}", letter, letter)
            yield ptx(f"cvt.{rounding}.sat.{kind}.{kind}", letter, letter)
        yield ptx(f"cvt.{rounding}.ftz.f32.f32", "f", "f")
        name = f"cvt.{rounding}.f16.f16"
        yield ptx(name, "h", "h", f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} t, t; cvt.u32.u16 %0, t; }}")


def _integers_to_floats() -> Iterator[Operation]:
    for rounding in ROUNDINGS:
        for kind, letter in _FLOATS.items():
            for sign in "us":
                yield ptx(f"cvt.{rounding}.{kind}.{sign}32", letter, "u")
                yield ptx(f"cvt.{rounding}.{kind}.{sign}64", letter, "d")
                for bits in (8, 16):
                    name = f"cvt.{rounding}.{kind}.{sign}{bits}"
                    yield ptx(name, letter, "u", f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} %0, t; }}")
        for sign in "us":
            for half, letter in (("f16", "h"), ("bf16", "b")):
                name = f"cvt.{rounding}.{half}.{sign}32"
                yield ptx(name, letter, "u", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
                name = f"cvt.{rounding}.{half}.{sign}64"
                yield ptx(name, letter, "d", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
                name = f"cvt.{rounding}.{half}.{sign}16"
                body = f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} t, t; cvt.u32.u16 %0, t; }}"
                yield ptx(name, letter, "u", body)
    yield ptx("cvt.rn.sat.f32.u32", "f", "u")


def _floats_to_floats() -> Iterator[Operation]:
    yield ptx("cvt.f64.f32", "g", "f")
    yield ptx("cvt.ftz.f64.f32", "g", "f")
    for rounding in ROUNDINGS:
        for more in ("", ".ftz", ".sat"):
            yield ptx(f"cvt.{rounding}{more}.f32.f64", "f", "g")
        name = f"cvt.{rounding}.f16.f64"
        yield ptx(name, "h", "g", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
        for more in ("", ".ftz", ".sat"):
            name = f"cvt.{rounding}{more}.f16.f32"
            yield ptx(name, "h", "f", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
    for name in ("cvt.f32.f16", "cvt.ftz.f32.f16", "cvt.sat.f32.f16"):
        yield ptx(name, "f", "h", f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} %0, t; }}")
    yield ptx("cvt.f64.f16", "g", "h", "{ .reg .b16 t; cvt.u16.u32 t, %1; cvt.f64.f16 %0, t; }")
    yield ptx("cvt.f32.bf16", "f", "b", "{ .reg .b16 t; cvt.u16.u32 t, %1; cvt.f32.bf16 %0, t; }")
    yield ptx("cvt.f64.bf16", "g", "b", "{ .reg .b16 t; cvt.u16.u32 t, %1; cvt.f64.bf16 %0, t; }")
    yield ptx("cvt.rn.bf16.f64", "b", "g", "{ .reg .b16 t; cvt.rn.bf16.f64 t, %1; cvt.u32.u16 %0, t; }")
    yield ptx(
        "cvt.rn.bf16.f16", "b", "h", "{ .reg .b16 t; cvt.u16.u32 t, %1; cvt.rn.bf16.f16 t, t; cvt.u32.u16 %0, t; }"
    )
    for rounding in ("rn", "rz"):
        for relu in ("", ".relu"):
            for half, letter in (("f16", "h"), ("bf16", "b")):
                yield ptx(f"cvt.{rounding}{relu}.{half}x2.f32", letter, "ff")
                name = f"cvt.{rounding}{relu}.{half}.f32"
                yield ptx(name, letter, "f", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
            yield ptx(f"cvt.{rounding}{relu}.tf32.f32", "u", "f")
    yield ptx("cvt.rna.tf32.f32", "u", "f")


def _narrow() -> Iterator[Operation]:
    for source in ("u32", "s32"):
        for target in ("u8", "s8", "u16", "s16"):
            for saturate in ("", ".sat"):
                name = f"cvt{saturate}.{target}.{source}"
                yield ptx(name, "u", "u", f"{{ .reg .b16 t; {name} t, %1; cvt.{target[0]}32.{target} %0, t; }}")
    for name in ("cvt.sat.s32.u32", "cvt.sat.u32.s32"):
        yield ptx(name, "u", "u")
    for name in ("cvt.sat.s32.s64", "cvt.sat.u32.s64", "cvt.u32.u64", "cvt.sat.s32.u64", "cvt.sat.u32.u64"):
        yield ptx(name, "u", "d")
    for name in ("cvt.s64.s32", "cvt.u64.u32", "cvt.sat.u64.s32"):
        yield ptx(name, "d", "u")
    for rows in ("s8.s32.b32", "u8.s32.b32"):
        yield ptx(f"cvt.pack.sat.{rows}", "u", "uuu")
    for name in ("cvt.pack.sat.s16.s32", "cvt.pack.sat.u16.s32"):
        yield ptx(name, "u", "uu")


def _eight_bits() -> Iterator[Operation]:
    for kind in ("e4m3x2", "e5m2x2"):
        for relu in ("", ".relu"):
            name = f"cvt.rn.satfinite{relu}.{kind}.f32"
            yield ptx(name, "u", "ff", f"{{ .reg .b16 t; {name} t, %1, %2; cvt.u32.u16 %0, t; }}")
            name = f"cvt.rn.satfinite{relu}.{kind}.f16x2"
            yield ptx(name, "u", "h", f"{{ .reg .b16 t; {name} t, %1; cvt.u32.u16 %0, t; }}")
            name = f"cvt.rn{relu}.f16x2.{kind}"
            yield ptx(name, "h", "u", f"{{ .reg .b16 t; cvt.u16.u32 t, %1; {name} %0, t; }}")
