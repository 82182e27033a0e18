from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.machine.algebra import Rounding
from tests.machine.lanes import register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import doubles, halves, signed, singles, words
from tests.machine.test_floats import pairs, read, round_exact, split, write

if TYPE_CHECKING:
    from collections.abc import Callable

M32 = 0xFFFFFFFF
A, B = words(81), words(82)
F = singles(83)
D = doubles(84)

DIRECTIONS: dict[str, Callable[[float], int]] = {
    "": round,
    ".TRUNC": math.trunc,
    ".FLOOR": math.floor,
    ".CEIL": math.ceil,
}
ROUNDINGS = {"": Rounding.NEAREST, ".RZ": Rounding.ZERO, ".RM": Rounding.DOWN, ".RP": Rounding.UP}


def saturate(value: float, direction: Callable[[float], int], bits: int, *, sign: bool, nan: int) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if sign else (0, (1 << bits) - 1)
    if math.isnan(value):
        return nan
    if math.isinf(value):
        return (high if value > 0 else low) & (1 << max(bits, 32)) - 1
    return max(low, min(high, direction(value))) & (1 << max(bits, 32)) - 1


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(
    ("kind", "bits", "sign"), [("", 32, True), (".U32", 32, False), (".S16", 16, True), (".U8", 8, False)]
)
def test_singles_become_words(kind: str, bits: int, direction: str, *, sign: bool) -> None:
    port = run(f"F2I{kind}{direction}.NTZ R8, R2 ; F2I{kind}{direction} R9, -R2", {"R2": lanes(F)})
    turn = DIRECTIONS[direction]
    assert register(port, "R8") == [saturate(read(f), turn, bits, sign=sign, nan=0) for f in F]
    # What is no number becomes the highest bit of the narrow form, as an H200 has it.
    nan = (-(1 << bits - 1) if sign else 1 << bits - 1) & 0xFFFFFFFF
    assert register(port, "R9") == [saturate(-read(f), turn, bits, sign=sign, nan=nan) for f in F]


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("kind", "sign"), [("S64", True), ("U64", False)])
def test_singles_and_doubles_become_longs(kind: str, direction: str, *, sign: bool) -> None:
    turn = DIRECTIONS[direction]
    port = run(f"F2I.{kind}{direction} R8, R2", {"R2": lanes(F)})
    got = [high << 32 | low for high, low in zip(register(port, "R9"), register(port, "R8"), strict=True)]
    assert got == [saturate(read(f), turn, 64, sign=sign, nan=1 << 63) for f in F]
    port = run(f"F2I.{kind}.F64{direction} R8, R2", pairs("R2", D))
    got = [high << 32 | low for high, low in zip(register(port, "R9"), register(port, "R8"), strict=True)]
    assert got == [saturate(d, turn, 64, sign=sign, nan=1 << 63) for d in D]


def test_doubles_become_words() -> None:
    port = run("F2I.F64.TRUNC R8, R2 ; F2I.U32.F64.FLOOR R9, R2", pairs("R2", D))
    assert register(port, "R8") == [saturate(d, math.trunc, 32, sign=True, nan=1 << 31) for d in D]
    assert register(port, "R9") == [saturate(d, math.floor, 32, sign=False, nan=1 << 31) for d in D]


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_integers_become_singles(suffix: str) -> None:
    registers = {"R2": lanes(A), "R3": lanes(B)}
    port = run(
        f"I2FP.F32.S32{suffix} R8, R2 ; I2F.U32{suffix} R9, R2 ; I2F.S64{suffix} R10, R2 ; I2F.U64{suffix} R11, R2",
        registers,
    )

    def single(value: int) -> int:
        return write(round_exact(Fraction(value), ROUNDINGS[suffix])) if value else 0

    longs = [b << 32 | a for a, b in zip(A, B, strict=True)]
    assert register(port, "R8") == [single(signed(a)) for a in A]
    assert register(port, "R9") == [single(a) for a in A]
    assert register(port, "R10") == [single(signed(x, 64)) for x in longs]
    assert register(port, "R11") == [single(x) for x in longs]


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_longs_become_doubles(suffix: str) -> None:
    port = run(f"I2F.F64.S64{suffix} R8, R2 ; I2F.F64.U64{suffix} R10, R2", {"R2": lanes(A), "R3": lanes(B)})
    longs = [b << 32 | a for a, b in zip(A, B, strict=True)]
    for name, kind in ((8, True), (10, False)):
        got = zip(register(port, f"R{name + 1}"), register(port, f"R{name}"), strict=True)
        values = [signed(x, 64) if kind else x for x in longs]
        expected = [write(round_exact(Fraction(x), ROUNDINGS[suffix], "d"), "d") if x else 0 for x in values]
        assert [high << 32 | low for high, low in got] == expected


def test_narrow_integers_become_floats() -> None:
    port = run(
        "I2F.S8 R8, R2.B2 ; I2F.U8 R9, R2.B1 ; I2F.S16 R10, R2 ; I2F.U16 R11, R2.H1"
        " ; I2F.F64.U16 R12, R2 ; I2F.F16 R14, R2",
        {"R2": lanes(A)},
    )
    assert register(port, "R8") == [write(float(signed(a >> 16, 8))) for a in A]
    assert register(port, "R9") == [write(float(a >> 8 & 0xFF)) for a in A]
    assert register(port, "R10") == [write(float(signed(a, 16))) for a in A]
    assert register(port, "R11") == [write(float(a >> 16)) for a in A]
    assert register(port, "R13") == [write(float(a & 0xFFFF), "d") >> 32 for a in A]
    halves_of = [write(round_exact(Fraction(signed(a)), Rounding.NEAREST, "e"), "e") if a else 0 for a in A]
    assert register(port, "R14") == halves_of


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_doubles_become_singles_and_halves(suffix: str) -> None:
    port = run(f"F2F.F32.F64{suffix} R8, R2 ; F2F.F16.F64{suffix} R9, R2", pairs("R2", D))
    for name, form in (("R8", "f"), ("R9", "e")):
        for got, d in zip(register(port, name), D, strict=True):
            if math.isnan(d):
                assert math.isnan(read(got, form))
            else:
                finite = math.isfinite(d) and d != 0
                assert got == write(round_exact(Fraction(d), ROUNDINGS[suffix], form) if finite else d, form), d


def test_a_narrowed_double_keeps_the_top_of_a_payload() -> None:
    # As an H200 does it; a sign modifier leaves the NaN's sign alone.
    registers = {"R2": lanes([0x12345678] * 2), "R3": lanes([0x7FF12345, 0xFFF00001])}
    port = run("F2F.F32.F64 R8, -R2 ; F2F.F16.F64 R9, |R2|", registers)
    assert register(port, "R8")[:2] == [0x7FC91A28, 0xFFC00008]
    assert register(port, "R9")[:2] == [0x7E48, 0xFE00]


@pytest.mark.parametrize("suffix", ROUNDINGS)
def test_singles_become_halves(suffix: str) -> None:
    port = run(f"F2F.F16.F32{suffix} R8, R2", {"R2": lanes(F)})
    expected = []
    for f in F:
        value = read(f)
        if math.isnan(value):
            expected.append(0x7FFF)
        else:
            finite = math.isfinite(value) and value != 0
            expected.append(write(round_exact(Fraction(value), ROUNDINGS[suffix], "e") if finite else value, "e"))
    assert register(port, "R8") == expected


def test_singles_are_packed_in_pairs() -> None:
    other = singles(85)
    port = run(
        "F2FP.F16.F32.PACK_AB R8, R2, R3 ; F2FP.BF16.F32.PACK_AB R9, R2, R3 ; F2FP.RELU.BF16.F32.PACK_AB R10, R2, R3",
        {"R2": lanes(F), "R3": lanes(other)},
    )

    def narrow(bits: int, form: str) -> int:
        value = read(bits)
        if math.isnan(value):
            return 0x7FFF
        exact = math.isfinite(value) and value != 0
        rounded = round_exact(Fraction(value), Rounding.NEAREST, form) if exact else value
        return write(rounded, "e") if form == "e" else write(rounded) >> 16

    rows = list(zip(F, other, strict=True))
    assert register(port, "R8") == [narrow(f, "e") << 16 | narrow(g, "e") for f, g in rows]
    brains = [(narrow(f, "bfloat16"), narrow(g, "bfloat16")) for f, g in rows]
    assert register(port, "R9") == [upper << 16 | lower for upper, lower in brains]
    positive = [tuple(0 if half & 0x8000 else half for half in pair) for pair in brains]
    assert register(port, "R10") == [upper << 16 | lower for upper, lower in positive]


def test_halves_are_widened_exactly() -> None:
    h = halves(86)
    port = run(
        "HADD2.F32 R8, -RZ, R2.H0_H0 ; HADD2.F32 R9, -RZ, R2.H1_H1 ; F2F.F64.F32 R10, R3",
        {"R2": lanes(h), "R3": lanes(F)},
    )
    for row, word in enumerate(h):
        for name, value in zip(("R8", "R9"), split(word), strict=True):
            assert register(port, name)[row] == (0x7FFFFFFF if math.isnan(value) else write(value))
    for row, f in enumerate(F):
        got = register(port, "R11")[row] << 32 | register(port, "R10")[row]
        if math.isnan(read(f)):
            assert got == (f >> 31) << 63 | 0x7FF8 << 48 | (f & 0x7FFFFF) << 29
        else:
            assert got == write(read(f), "d")


@pytest.mark.parametrize(
    ("suffix", "turn"), [("", round), (".TRUNC", math.trunc), (".FLOOR", math.floor), (".CEIL", math.ceil)]
)
def test_floats_become_integral(suffix: str, turn: Callable[[float], int]) -> None:
    port = run(f"FRND{suffix} R8, R2 ; FRND.F64{suffix} R10, R4", {"R2": lanes(F), **pairs("R4", D * 2)})
    for f, got in zip(F, register(port, "R8"), strict=True):
        value = read(f)
        if math.isnan(value):
            assert got == 0x7FFFFFFF
        else:
            assert got == write(math.copysign(float(turn(value)), value) if math.isfinite(value) else value)
    whole = np.array(D)
    with np.errstate(all="ignore"):
        expected = {"": np.rint, ".TRUNC": np.trunc, ".FLOOR": np.floor, ".CEIL": np.ceil}[suffix](whole)
    got_high = register(port, "R11")[: len(D)]
    assert [high for high, d in zip(got_high, D, strict=True) if not math.isnan(d)] == [
        write(float(value), "d") >> 32 for value, d in zip(expected, D, strict=True) if not math.isnan(d)
    ]


@pytest.mark.parametrize(
    ("statement", "low", "high", "sign"),
    [
        ("I2I.S8.S32.SAT R8, R2", -128, 127, True),
        ("I2I.U8.S32.SAT R8, R2", 0, 255, True),
        ("I2I.S16.S32.SAT R8, R2", -32768, 32767, True),
        ("I2I.U16.U32.SAT R8, R2", 0, 65535, False),
    ],
)
def test_words_are_saturated(statement: str, low: int, high: int, *, sign: bool) -> None:
    port = run(statement, {"R2": lanes(A)})
    assert register(port, "R8") == [max(low, min(high, signed(a) if sign else a)) & M32 for a in A]
