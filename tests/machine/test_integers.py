from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.machine.lanes import predicate, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import signed, words

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C, D = (words(seed) for seed in (1, 2, 3, 4))
M32 = 0xFFFFFFFF
REGISTERS = {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C), "R5": lanes(D)}


def low(value: int) -> int:
    return value & M32


def pair(high: int, low_word: int) -> int:
    return high << 32 | low_word


def highest(value: int) -> int:
    return value.bit_length() - 1 if value else M32


WORD_RESULTS: dict[str, Callable[[int, int, int, int], int]] = {
    "IADD3 R8, R2, R3, R4": lambda a, b, c, _: a + b + c,
    "IADD3 R8, -R2, R3, RZ": lambda a, b, _c, _: b - a,
    "IADD3 R8, R2, -R3, -R4": lambda a, b, c, _: a - b - c,
    "IADD3 R8, R2, 0x1f, RZ": lambda a, _b, _c, _: a + 31,
    "IADD3 R8, R2, -0x10, R3": lambda a, b, _c, _: a + b - 16,
    "IADD3 R8, RZ, -R2, RZ": lambda a, _b, _c, _: -a,
    "VIADD R8, R2, 0xffffffff": lambda a, _b, _c, _: a - 1,
    "VIADD R8, R2, -R3": lambda a, b, _c, _: a - b,
    "VIADD.S32.ISAT R8, R2, R3": lambda a, b, _c, _: max(-(2**31), min(2**31 - 1, signed(a) + signed(b))),
    "VIADD.S32.ISAT R8, R2, -R3": lambda a, b, _c, _: max(-(2**31), min(2**31 - 1, signed(a) - signed(b))),
    "IMAD R8, R2, R3, R4": lambda a, b, c, _: a * b + c,
    "IMAD R8, R2, -0x3, R4": lambda a, _b, c, _: c - 3 * a,
    "IMAD R8, R2, R3, -R4": lambda a, b, c, _: a * b - c,
    "IMAD R8, -R2, R3, R4": lambda a, b, c, _: c - a * b,
    "IMAD.MOV R8, RZ, RZ, -R2": lambda a, _b, _c, _: -a,
    "IMAD.MOV.U32 R8, RZ, RZ, -0x40": lambda _a, _b, _c, _d: -64,
    "IMAD.U32 R8, RZ, RZ, R2": lambda a, _b, _c, _: a,
    "IMAD.IADD R8, R2, 0x1, -R3": lambda a, b, _c, _: a - b,
    "IMAD.SHL.U32 R8, R2, 0x80, RZ": lambda a, _b, _c, _: a << 7,
    "IMAD.HI R8, R2, R3, RZ": lambda a, b, _c, _: signed(a) * signed(b) >> 32,
    "IMAD.HI.U32 R8, R2, R3, RZ": lambda a, b, _c, _: a * b >> 32,
    "IMAD.HI.U32 R8, R2, R3, R4": lambda a, b, c, d: a * b + pair(d, c) >> 32,
    "LEA R8, R2, R3, 0x5": lambda a, b, _c, _: (a << 5) + b,
    "LEA.HI R8, R2, R3, RZ, 0x9": lambda a, b, _c, _: (a >> 23) + b,
    "LEA.HI R8, R2, R3, R4, 0x3": lambda a, b, c, _: (pair(c, a) << 3 >> 32) + b,
    "LEA.HI R8, R2, R3, R4, 0x0": lambda _a, b, c, _: c + b,
    "LEA.HI.SX32 R8, R2, R3, 0x1b": lambda a, b, _c, _: (signed(a) >> 5) + b,
    "ISCADD R8, R2, R3, 0x2": lambda a, b, _c, _: a * 4 + b,
    "VIMNMX R8, R2, R3, PT": lambda a, b, _c, _: min(signed(a), signed(b)),
    "VIMNMX R8, R2, 0x7, !PT": lambda a, _b, _c, _: max(signed(a), 7),
    "VIMNMX.U32 R8, R2, R3, !PT": lambda a, b, _c, _: max(a, b),
    "IMNMX.U32 R8, R2, R3, PT": lambda a, b, _c, _: min(a, b),
    "VIMNMX.RELU R8, R2, R3, PT": lambda a, b, _c, _: max(0, min(signed(a), signed(b))),
    "VIMNMX3 R8, R2, R3, R4, !PT": lambda a, b, c, _: max(signed(a), signed(b), signed(c)),
    "VIADDMNMX R8, R2, R3, R4, PT": lambda a, b, c, _: min(signed(a + b), signed(c)),
    "VIADDMNMX.U32 R8, R2, R3, R4, !PT": lambda a, b, c, _: max(low(a + b), c),
    "VIADDMNMX.RELU R8, R2, R3, R4, PT": lambda a, b, c, _: max(0, min(signed(a + b), signed(c))),
    "IABS R8, R2": lambda a, _b, _c, _: abs(signed(a)),
    "VABSDIFF R8, R2, R3, R4": lambda a, b, c, _: abs(signed(a) - signed(b)) + c,
    "VABSDIFF.U32 R8, R2, R3, R4": lambda a, b, c, _: abs(a - b) + c,
    "POPC R8, R2": lambda a, _b, _c, _: a.bit_count(),
    "POPC R8, ~R2": lambda a, _b, _c, _: 32 - a.bit_count(),
    "FLO.U32 R8, R2": lambda a, _b, _c, _: highest(a),
    "FLO R8, R2": lambda a, _b, _c, _: highest(a if signed(a) >= 0 else ~a & M32),
    "FLO.U32.SH R8, R2": lambda a, _b, _c, _: 31 - highest(a) if a else M32,
}


@pytest.mark.parametrize("statement", WORD_RESULTS)
def test_word_results_equal_integer_arithmetic(statement: str) -> None:
    expected = [low(WORD_RESULTS[statement](*row)) for row in zip(A, B, C, D, strict=True)]
    assert register(run(statement, REGISTERS), "R8") == expected


@pytest.mark.parametrize(
    ("statement", "terms"),
    [
        ("IADD3 R8, P0, P1, R2, R3, R4", lambda a, b, c: (a, b, c)),
        ("IADD3 R8, P0, P1, R2, R3, RZ", lambda a, b, _: (a, b, 0)),
        ("IADD3 R8, P0, P1, R2, -R3, RZ", lambda a, b, _: (a, (~b & M32) + 1, 0)),
        ("IADD3 R8, P0, P1, -R2, R3, -R4", lambda a, b, c: ((~a & M32) + 1, b, (~c & M32) + 1)),
        ("IADD3 R8, P0, P1, R2, -RZ, RZ", lambda a, _b, _c: (a, M32 + 1, 0)),
        ("IADD3.X R8, P0, P1, R2, R3, R4, P2, P3", lambda a, b, c: (a, b, c)),
        ("IADD3.X R8, P0, P1, ~R2, R3, ~R4, P2, P3", lambda a, b, c: (~a & M32, b, ~c & M32)),
    ],
)
def test_carries_of_three_terms(statement: str, terms: Callable[[int, int, int], tuple[int, int, int]]) -> None:
    flags = {"P2": lanes(C) % 3 == 0, "P3": lanes(B) % 2 == 0}
    port = run(statement, REGISTERS, flags)
    carried = "X" in statement.split(maxsplit=1)[0]
    expected = []
    for a, b, c in zip(A, B, C, strict=True):
        total = sum(terms(a, b, c)) + (int(c % 3 == 0) + int(b % 2 == 0) if carried else 0)
        expected.append((low(total), total >> 32 >= 1, total >> 32 >= 2))
    assert list(zip(register(port, "R8"), predicate(port, "P0"), predicate(port, "P1"), strict=True)) == expected


WIDE_RESULTS: dict[str, Callable[[int, int, int], int]] = {
    "IMAD.WIDE R8, R2, R3, R4": lambda a, b, c: signed(a) * signed(b) + c,
    "IMAD.WIDE.U32 R8, R2, R3, R4": lambda a, b, c: a * b + c,
    "IMAD.WIDE R8, R2, -0x4, R4": lambda a, _, c: signed(a) * -4 + c,
    "IMAD.WIDE.U32 R8, R2, 0x80000000, R4": lambda a, _, c: a * 0x80000000 + c,
    "IMAD.WIDE.U32 R8, R2, -R3, R4": lambda a, b, c: c - a * b,
    "IMAD.WIDE.U32 R8, R2, R3, -R4": lambda a, b, c: a * b - c,
    "IMAD.WIDE R8, R2, R3, RZ": lambda a, b, _: signed(a) * signed(b),
}


@pytest.mark.parametrize("statement", WIDE_RESULTS)
def test_wide_products(statement: str) -> None:
    port = run(statement, REGISTERS)
    got = [pair(high, word) for word, high in zip(register(port, "R8"), register(port, "R9"), strict=True)]
    rows = zip(A, B, C, D, strict=True)
    assert got == [WIDE_RESULTS[statement](a, b, pair(d, c)) & (2**64 - 1) for a, b, c, d in rows]


def test_wide_products_carry_through_predicates() -> None:
    port = run("IMAD.WIDE.U32 R8, P0, R2, R3, R4 ; IMAD.WIDE.U32.X R10, P1, R4, R5, R2, P0", REGISTERS)
    expected = []
    for a, b, c, d in zip(A, B, C, D, strict=True):
        first = a * b + pair(d, c)
        second = c * d + pair(b, a) + (first >> 64)
        expected.append((second & M32, second >> 32 & M32, first >> 64 == 1, second >> 64 == 1))
    got = zip(register(port, "R10"), register(port, "R11"), predicate(port, "P0"), predicate(port, "P1"), strict=True)
    assert list(got) == expected


def test_a_carry_enters_multiply_add() -> None:
    port = run("IMAD.X R8, R2, R3, R4, P2", REGISTERS, {"P2": lanes(D) % 2 == 1})
    rows = zip(A, B, C, D, strict=True)
    assert register(port, "R8") == [low(a * b + c + d % 2) for a, b, c, d in rows]


def test_64_bit_address_by_shift_and_add() -> None:
    port = run("LEA R8, P0, R2, R4, 0x3 ; LEA.HI.X R9, R2, R5, R3, 0x3, P0", REGISTERS)
    got = [pair(high, word) for word, high in zip(register(port, "R8"), register(port, "R9"), strict=True)]
    rows = zip(A, B, C, D, strict=True)
    assert got == [(pair(b, a) << 3) + pair(d, c) & (2**64 - 1) for a, b, c, d in rows]


def test_64_bit_address_by_signed_index() -> None:
    port = run("LEA R8, P0, R2, R4, 0x2 ; LEA.HI.X.SX32 R9, R2, R5, 0x2, P0", REGISTERS)
    got = [pair(high, word) for word, high in zip(register(port, "R8"), register(port, "R9"), strict=True)]
    rows = zip(A, C, D, strict=True)
    assert got == [(signed(a) << 2) + pair(d, c) & (2**64 - 1) for a, c, d in rows]


@pytest.mark.parametrize(
    ("statement", "terms"),
    [
        ("LEA R8, P0, R2, -R3, 0x16", lambda a, b: (low(a << 22), (~b & M32) + 1)),
        ("LEA R8, P0, -R2, R3, 0x1", lambda a, b: ((~(a << 1) & M32) + 1, b)),
        ("LEA R8, P0, R2, R3, 0x5", lambda a, b: (low(a << 5), b)),
    ],
)
def test_carries_of_shifted_sums(statement: str, terms: Callable[[int, int], tuple[int, int]]) -> None:
    port = run(statement, REGISTERS)
    totals = [sum(terms(a, b)) for a, b in zip(A, B, strict=True)]
    assert register(port, "R8") == [low(total) for total in totals]
    assert predicate(port, "P0") == [total > M32 for total in totals]


def test_64_bit_negation() -> None:
    port = run("IADD3 R8, P0, RZ, -R2, RZ ; IADD3.X R9, ~R3, RZ, RZ, P0, !PT", REGISTERS)
    got = [pair(high, word) for word, high in zip(register(port, "R8"), register(port, "R9"), strict=True)]
    assert got == [-pair(b, a) & (2**64 - 1) for a, b in zip(A, B, strict=True)]


@pytest.mark.parametrize(
    ("statement", "oracle"),
    [
        ("IADD.64 R8, R2, R4", lambda x, y: x + y),
        ("IADD.64 R8, R2, -R4", lambda x, y: x - y),
        ("IADD.64 R8, R2, -0x10", lambda x, _: x - 16),
        ("IMNMX.S64 PT, PT, R8, R2, R4, PT, !PT", lambda x, y: min(signed(x, 64), signed(y, 64))),
        ("IMNMX.U64 PT, PT, R8, R2, R4, !PT, !PT", max),
        ("MOV.64 R8, 0x3fb999999999999a", lambda _x, _y: 0x3FB999999999999A),
        ("MOV.64 R8, R2", lambda x, _: x),
    ],
)
def test_long_results(statement: str, oracle: Callable[[int, int], int]) -> None:
    port = run(statement, REGISTERS)
    got = [pair(high, word) for word, high in zip(register(port, "R8"), register(port, "R9"), strict=True)]
    rows = zip(A, B, C, D, strict=True)
    assert got == [oracle(pair(b, a), pair(d, c)) & (2**64 - 1) for a, b, c, d in rows]
