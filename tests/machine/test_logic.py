from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.machine.lanes import predicate, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import shift_counts, signed, words

if TYPE_CHECKING:
    from collections.abc import Callable

A, B, C = (words(seed) for seed in (11, 12, 13))
N = shift_counts(14)
M32 = 0xFFFFFFFF
REGISTERS = {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C), "R5": lanes(N)}


def lookup(table: int, a: int, b: int, c: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def test_every_table_of_three_words() -> None:
    few = {name: value[:1] for name, value in REGISTERS.items()}
    for table in range(256):
        port = run(f"LOP3.LUT P0, R8, R2, R3, R4, {table:#x}, !PT", few)
        expected = [lookup(table, a, b, c) for a, b, c in zip(A[:32], B[:32], C[:32], strict=True)]
        assert register(port, "R8") == expected, hex(table)
        assert predicate(port, "P0") == [value != 0 for value in expected], hex(table)


@pytest.mark.parametrize(
    "operands", [("R2", "R3", "RZ"), ("R2", "RZ", "R4"), ("RZ", "R3", "R4"), ("R2", "0xff0", "RZ")]
)
def test_tables_with_constant_operands(operands: tuple[str, str, str]) -> None:
    values = {"R2": A, "R3": B, "R4": C, "RZ": [0] * 32, "0xff0": [0xFF0] * 32}
    few = {name: value[:1] for name, value in REGISTERS.items()}
    for table in range(256):
        port = run(f"LOP3.LUT R8, {', '.join(operands)}, {table:#x}, !PT", few)
        rows = zip(*(values[operand][:32] for operand in operands), strict=True)
        assert register(port, "R8") == [lookup(table, *row) for row in rows], hex(table)


def test_the_predicate_of_a_table_joins_another() -> None:
    flags = {"P1": lanes(C) % 2 == 0}
    either = run("LOP3.LUT P0, RZ, R2, R3, RZ, 0xc0, P1", REGISTERS, flags)
    both = run("LOP3.LUT.PAND P0, RZ, R2, R3, RZ, 0xc0, P1", REGISTERS, flags)
    rows = list(zip(A, B, C, strict=True))
    assert predicate(either, "P0") == [a & b != 0 or c % 2 == 0 for a, b, c in rows]
    assert predicate(both, "P0") == [a & b != 0 and c % 2 == 0 for a, b, c in rows]


@pytest.mark.parametrize("inputs", [("P1", "P2", "P3"), ("P1", "!P2", "PT"), ("!PT", "P2", "!P3"), ("PT", "PT", "P1")])
def test_tables_of_predicates(inputs: tuple[str, str, str]) -> None:
    bits = [(i & 1, i >> 1 & 1, i >> 2 & 1) for i in range(32)]
    flags = {f"P{k + 1}": lanes([row[k] for row in bits]) == 1 for k in range(3)}

    def value(name: str, row: tuple[int, int, int]) -> int:
        plain = name.lstrip("!")
        on = 1 if plain == "PT" else row[int(plain[1]) - 1]
        return on ^ name.startswith("!")

    for table in range(256):
        port = run(f"PLOP3.LUT P4, P5, {', '.join(inputs)}, {table:#x}, {table ^ 0x5A:#x}", {}, flags)
        places = [4 * value(inputs[0], row) + 2 * value(inputs[1], row) + value(inputs[2], row) for row in bits]
        assert predicate(port, "P4") == [bool(table >> place & 1) for place in places]
        assert predicate(port, "P5") == [bool((table ^ 0x5A) >> place & 1) for place in places]


def test_a_table_of_signs() -> None:
    port = run("PLOP3.LUT P0, PT, R2.SIGN, R3.SIGN, R4.SIGN, 0x8, 0x0", REGISTERS)
    rows = zip(A, B, C, strict=True)
    assert predicate(port, "P0") == [signed(a) >= 0 and signed(b) < 0 and signed(c) < 0 for a, b, c in rows]


def shift(form: str, low: int, count: int, high: int) -> int:
    """SHF over a pair, by its modifiers."""
    modifiers = form.split(".")
    bits = 64 if modifiers[-1].endswith("64") or "U64" in modifiers or "S64" in modifiers else 32
    count = count % bits if "W" in modifiers else min(count, bits)
    pair = high << 32 | low
    if "L" in modifiers:
        moved = pair << count
    elif any(name.startswith("S") and name != "SHF" for name in modifiers):
        moved = signed(pair, 64) >> count
    else:
        moved = pair >> count
    return (moved >> 32 if "HI" in modifiers else moved) & M32


FUNNELS = [
    f"SHF.{direction}{wrap}.{kind}{half}"
    for direction in "LR"
    for wrap in ("", ".W")
    for kind in ("U32", "S32", "U64", "S64")
    for half in ("", ".HI")
]


@pytest.mark.parametrize("form", FUNNELS)
def test_funnel_shifts_by_register(form: str) -> None:
    port = run(f"{form} R8, R2, R5, R3", REGISTERS)
    expected = [shift(form, a, n, b) for a, n, b in zip(A, N, B, strict=True)]
    assert register(port, "R8") == expected


@pytest.mark.parametrize("form", FUNNELS)
def test_funnel_shifts_by_constant(form: str) -> None:
    for count in (0, 1, 7, 31, 32, 33, 63, 64, 100):
        for low, high in (("R2", "R3"), ("RZ", "R3"), ("R2", "RZ")):
            port = run(f"{form} R8, {low}, {count:#x}, {high}", REGISTERS)
            rows = zip(A, B, strict=True)
            expected = [shift(form, a if low == "R2" else 0, count, b if high == "R3" else 0) for a, b in rows]
            assert register(port, "R8") == expected, (count, low, high)


def pick_byte(low: int, high: int, pick: int) -> int:
    byte = (high << 32 | low) >> 8 * (pick & 7) & 0xFF
    return (0xFF if byte & 0x80 else 0) if pick & 8 else byte


MODES: dict[str, Callable[[int], tuple[int, int, int, int]]] = {
    "F4E": lambda s: (s, s + 1, s + 2, s + 3),
    "B4E": lambda s: (s, s - 1 & 7, s - 2 & 7, s - 3 & 7),
    "RC8": lambda s: (s, s, s, s),
    "ECL": lambda s: (max(0, s), max(1, s), max(2, s), 3),
    "ECR": lambda s: (0, min(1, s), min(2, s), min(3, s)),
    "RC16": lambda s: (2 * (s & 1), 2 * (s & 1) + 1, 2 * (s & 1), 2 * (s & 1) + 1),
}


@pytest.mark.parametrize("selector", [0x3210, 0x5410, 0x7632, 0x7773, 0x0123, 0xBA98, 0x9910, 0xFEDC, 0x4440, 0x8880])
def test_byte_permutation_by_constant(selector: int) -> None:
    port = run(f"PRMT R8, R2, {selector:#x}, R3", REGISTERS)
    picks = [selector >> 4 * i & 15 for i in range(4)]
    rows = zip(A, B, strict=True)
    assert register(port, "R8") == [sum(pick_byte(a, b, p) << 8 * i for i, p in enumerate(picks)) for a, b in rows]


def test_byte_permutation_by_register() -> None:
    port = run("PRMT R8, R2, R4, R3", REGISTERS)
    expected = [
        sum(pick_byte(a, b, c >> 4 * i & 15) << 8 * i for i in range(4)) for a, b, c in zip(A, B, C, strict=True)
    ]
    assert register(port, "R8") == expected


@pytest.mark.parametrize("mode", MODES)
def test_byte_permutation_modes(mode: str) -> None:
    port = run(f"PRMT.{mode} R8, R2, R5, R3", REGISTERS)
    rows = zip(A, B, N, strict=True)
    expected = [sum(pick_byte(a, b, p) << 8 * i for i, p in enumerate(MODES[mode](n & 3))) for a, b, n in rows]
    assert register(port, "R8") == expected


def mask_of(width: int) -> int:
    return (1 << min(width, 32)) - 1


FIELDS: dict[str, Callable[[int, int], int]] = {
    "BREV R8, R2": lambda a, _: int(f"{a:032b}"[::-1], 2),
    "SHL R8, R2, R5": lambda a, n: a << min(n, 32),
    "SHR.U32 R8, R2, R5": lambda a, n: a >> min(n, 32),
    "SHR R8, R2, R5": lambda a, n: signed(a) >> min(n, 32),
    "SHL.W R8, R2, R5": lambda a, n: a << n % 32,
    "BMSK R8, R5, 0x5": lambda _, n: 0x1F << n if n < 32 else 0,
    "BMSK.W R8, R5, 0x5": lambda _, n: 0x1F << n % 32,
    "BMSK R8, RZ, R5": lambda _, n: mask_of(n),
    "SGXT.U32 R8, R2, R5": lambda a, n: a & mask_of(n),
    "SGXT R8, R2, R5": lambda a, n: signed(a & mask_of(n), min(n, 32)) if n else 0,
    "SGXT.W R8, R2, R5": lambda a, n: signed(a & mask_of(n % 32), n % 32) if n % 32 else 0,
    "SGXT R8, R2, 0x8": lambda a, _: signed(a, 8),
}


@pytest.mark.parametrize("statement", FIELDS)
def test_fields(statement: str) -> None:
    port = run(statement, REGISTERS)
    assert register(port, "R8") == [FIELDS[statement](a, n) & M32 for a, n in zip(A, N, strict=True)]
