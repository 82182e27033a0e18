from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import pytest

from tests.machine.lanes import register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import halves, signed, singles, words
from tests.machine.test_floats import read, write

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C = (words(seed) for seed in (91, 92, 93))
REGISTERS = {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C)}
M32 = 0xFFFFFFFF


def parts(word: int, bits: int, *, sign: bool) -> list[int]:
    fields = [word >> start & (1 << bits) - 1 for start in range(0, 32, bits)]
    return [signed(field, bits) for field in fields] if sign else fields


def together(values: list[int], bits: int) -> int:
    return sum((value & (1 << bits) - 1) << bits * place for place, value in enumerate(values))


@pytest.mark.parametrize("first", ["S8", "U8"])
@pytest.mark.parametrize("second", ["S8", "U8"])
def test_products_of_bytes_are_summed(first: str, second: str) -> None:
    port = run(f"IDP.4A.{first}.{second} R8, R2, R3, R4", REGISTERS)
    expected = []
    for a, b, c in zip(A, B, C, strict=True):
        left, right = parts(a, 8, sign=first == "S8"), parts(b, 8, sign=second == "S8")
        expected.append(c + sum(x * y for x, y in zip(left, right, strict=True)) & M32)
    assert register(port, "R8") == expected


@pytest.mark.parametrize("half", ["LO", "HI"])
@pytest.mark.parametrize("first", ["S16", "U16"])
@pytest.mark.parametrize("second", ["S8", "U8"])
def test_products_of_halves_and_bytes_are_summed(half: str, first: str, second: str) -> None:
    port = run(f"IDP.2A.{half}.{first}.{second} R8, R2, R3, R4", REGISTERS)
    expected = []
    for a, b, c in zip(A, B, C, strict=True):
        left, right = parts(a, 16, sign=first == "S16"), parts(b, 8, sign=second == "S8")
        right = right[:2] if half == "LO" else right[2:]
        expected.append(c + sum(x * y for x, y in zip(left, right, strict=True)) & M32)
    assert register(port, "R8") == expected


PACKED: dict[str, tuple[int, bool, Callable[[int, int, int], int]]] = {
    "VIMNMX.S16x2 R8, R2, R3, PT": (16, True, lambda x, y, _: min(x, y)),
    "VIMNMX.U16x2 R8, R2, R3, !PT": (16, False, lambda x, y, _: max(x, y)),
    "VIMNMX.U8x4 R8, R2, R3, PT": (8, False, lambda x, y, _: min(x, y)),
    "VIMNMX.S8x4 R8, R2, R3, !PT": (8, True, lambda x, y, _: max(x, y)),
    "VIMNMX.S16x2.RELU R8, R2, R3, PT": (16, True, lambda x, y, _: max(0, min(x, y))),
    "VIMNMX3.S16x2 R8, R2, R3, R4, !PT": (16, True, max),
    "VIADDMNMX.S16x2 R8, R2, R3, R4, !PT": (16, True, lambda x, y, z: max(signed(x + y, 16), z)),
    "VIADDMNMX.U16x2 R8, R2, R3, R4, PT": (16, False, lambda x, y, z: min(x + y & 0xFFFF, z)),
    "VIADD.16x2 R8, R2, R3": (16, False, lambda x, y, _: x + y),
    "VIADD.U8x4 R8, R2, -R3": (8, False, lambda x, y, _: x - y),
    "VABSDIFF4.U8 R8, R2, R3, RZ": (8, False, lambda x, y, _: abs(x - y)),
}


@pytest.mark.parametrize("statement", PACKED)
def test_parts_of_words(statement: str) -> None:
    bits, sign, oracle = PACKED[statement]
    port = run(statement, REGISTERS)
    expected = []
    for row in zip(A, B, C, strict=True):
        columns = zip(*(parts(word, bits, sign=sign) for word in row), strict=True)
        expected.append(together([oracle(*column) for column in columns], bits))
    assert register(port, "R8") == expected


def test_integers_are_packed_saturated() -> None:
    port = run(
        "I2IP.S8.S32.SAT R8, R2, R3, R4 ; I2IP.U8.S32.SAT R9, R2, R3, RZ ; I2IP.S16.S32.SAT R10, R2, R3, RZ", REGISTERS
    )
    for row, (a, b, c) in enumerate(zip(A, B, C, strict=True)):
        held = [max(-128, min(127, signed(word))) & 0xFF for word in (b, a)]
        assert register(port, "R8")[row] == (c << 16 | held[1] << 8 | held[0]) & M32
        held = [max(0, min(255, signed(word))) for word in (b, a)]
        assert register(port, "R9")[row] == held[1] << 8 | held[0]
        held = [max(-32768, min(32767, signed(word))) & 0xFFFF for word in (b, a)]
        assert register(port, "R10")[row] == held[1] << 16 | held[0]


def small_floats(exponent_bits: int, fraction_bits: int, bias: int) -> dict[float, int]:
    """All finite 8-bit floats of a format, by value."""
    values = {}
    for byte in range(128):
        exponent, fraction = byte >> fraction_bits, byte & (1 << fraction_bits) - 1
        if exponent_bits == 5 and exponent == 31:
            continue
        if exponent_bits == 4 and byte == 0x7F:
            continue
        scale = max(exponent, 1) - bias - fraction_bits
        values[((1 << fraction_bits if exponent else 0) + fraction) * 2.0**scale] = byte
    return values


@pytest.mark.parametrize(("form", "shape"), [("E4M3", (4, 3, 7)), ("E5M2", (5, 2, 15))])
def test_singles_become_8_bit_floats(form: str, shape: tuple[int, int, int]) -> None:
    values = small_floats(*shape)
    sizes = sorted(values)
    ties = [write((low + high) / 2) for low, high in itertools.pairwise(sizes)]
    inputs = (singles(94) + ties + [tie | 1 << 31 for tie in ties] + [write(size) for size in sizes])[:2048]
    registers = {"R2": lanes(inputs), "R3": lanes(inputs[::-1]), "R4": lanes([0xABCD1234] * len(inputs))}
    port = run(f"F2FP.SATFINITE.{form}.F32.PACK_AB_MERGE_C R8, R2, R3, R4", registers)

    def byte(bits: int) -> int:
        value = read(bits)
        if math.isnan(value):
            return 0x7F
        size = min(abs(value), sizes[-1])
        nearest = min(sizes, key=lambda candidate: (abs(candidate - size), values[candidate] & 1))
        return values[nearest] | (0x80 if bits >> 31 else 0)

    expected = [0x12340000 | byte(a) << 8 | byte(b) for a, b in zip(inputs, inputs[::-1], strict=True)]
    assert register(port, "R8")[: len(inputs)] == expected


@pytest.mark.parametrize(("form", "shape"), [("E4M3", (4, 3, 7)), ("E5M2", (5, 2, 15))])
def test_8_bit_floats_become_halves(form: str, shape: tuple[int, int, int]) -> None:
    inputs = [byte << 8 | 255 - byte for byte in range(256)]
    port = run(f"F2FP.F16.{form}.UNPACK_B R8, R2", {"R2": lanes(inputs)})
    by_byte = {byte: value for value, byte in small_floats(*shape).items()}
    for word, got in zip(inputs, register(port, "R8"), strict=True):
        for shift in (0, 8):
            byte, half = word >> shift & 0xFF, got >> 2 * shift & 0xFFFF
            if byte & 0x7F in by_byte:
                assert half == write(math.copysign(by_byte[byte & 0x7F], -1 if byte & 0x80 else 1), "e")
            elif form == "E5M2" and byte & 0x7F == 0x7C:
                assert half == 0x7C00 | (byte & 0x80) << 8
            else:
                assert half == 0x7FFF


def test_singles_become_bytes() -> None:
    f, g = singles(95), singles(96)
    port = run("F2IP.U8.F32.NTZ R8, R2, R3, R4", {"R2": lanes(f), "R3": lanes(g), "R4": lanes(C)})

    def byte(bits: int) -> int:
        value = read(bits)
        if math.isnan(value):
            return 0
        return max(0, min(255, round(value))) if math.isfinite(value) else 255 * (value > 0)

    rows = zip(f, g, C, strict=True)
    assert register(port, "R8") == [(c << 16 | byte(a) << 8 | byte(b)) & M32 for a, b, c in rows]


@pytest.mark.parametrize(("statement", "takes", "nan_wins"), [
    ("HMNMX2 R8, R2, R3, PT", min, False),
    ("HMNMX2 R8, R2, R3, !PT", max, False),
    ("HMNMX2.NAN R8, R2, R3, !PT", max, True),
])  # fmt: skip
def test_extremes_of_halves(statement: str, takes: Callable[..., int], *, nan_wins: bool) -> None:
    h, k = halves(97), halves(98)
    port = run(statement, {"R2": lanes(h), "R3": lanes(k)})

    def extreme(x: int, y: int) -> int:
        numbers = [bits for bits in (x, y) if not math.isnan(read(bits, "e"))]
        if not numbers or (nan_wins and len(numbers) < 2):
            return 0x7FFF
        return takes(numbers, key=lambda bits: (read(bits, "e"), -(bits >> 15)))

    rows = zip(h, k, strict=True)
    expected = [extreme(a & 0xFFFF, b & 0xFFFF) | extreme(a >> 16, b >> 16) << 16 for a, b in rows]
    assert register(port, "R8") == expected
