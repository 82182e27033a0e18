from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import pytest

from tests.machine.lanes import predicate, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import signed, words

if TYPE_CHECKING:
    from collections.abc import Callable

A, B = words(21), words(22)
# Half of the pairs share their upper words, so that the lower ones decide.
C = [a if i % 2 else c for i, (a, c) in enumerate(zip(A, words(23), strict=True))]
D = [b if i % 3 else d for i, (b, d) in enumerate(zip(B, words(24), strict=True))]
REGISTERS = {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C), "R5": lanes(D)}

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
    "EQ": operator.eq,
    "NE": operator.ne,
    "F": lambda _a, _b: False,
    "T": lambda _a, _b: True,
}
COMBINATIONS: dict[str, Callable[[bool, bool], bool]] = {
    "AND": lambda x, y: x and y,
    "OR": lambda x, y: x or y,
    "XOR": operator.ne,
}


@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("kind", ["", ".U32"])
@pytest.mark.parametrize("comparison", COMPARISONS)
def test_words_compare_and_join_a_predicate(comparison: str, kind: str, combination: str) -> None:
    flags = {"P3": lanes(B) % 2 == 1}
    port = run(f"ISETP.{comparison}{kind}.{combination} P0, P1, R2, R4, !P3", REGISTERS, flags)
    compare, join = COMPARISONS[comparison], COMBINATIONS[combination]
    outcomes = []
    for a, b, c in zip(A, B, C, strict=True):
        found = compare(a, c) if kind else compare(signed(a), signed(c))
        outcomes.append((join(found, b % 2 == 0), join(not found, b % 2 == 0)))
    assert list(zip(predicate(port, "P0"), predicate(port, "P1"), strict=True)) == outcomes


@pytest.mark.parametrize("kind", ["", ".U32"])
@pytest.mark.parametrize("comparison", ["LT", "LE", "GT", "GE", "EQ", "NE"])
def test_longs_compare_in_two_steps(comparison: str, kind: str) -> None:
    first = f"ISETP.{comparison}.U32.AND P0, PT, R3, R5, PT"
    port = run(f"{first} ; ISETP.{comparison}{kind}.AND.EX P1, PT, R2, R4, PT, P0", REGISTERS)
    expected = []
    for a, b, c, d in zip(A, B, C, D, strict=True):
        left, right = a << 32 | b, c << 32 | d
        if not kind:
            left, right = signed(left, 64), signed(right, 64)
        expected.append(COMPARISONS[comparison](left, right))
    assert predicate(port, "P1") == expected


@pytest.mark.parametrize("comparison", ["LT", "GE", "EQ", "NE", "GT", "LE"])
def test_longs_compare_at_once(comparison: str) -> None:
    port = run(
        f"ISETP.{comparison}.S64.AND P0, PT, R2, R4, PT ; ISETP.{comparison}.U64.AND P1, PT, R2, R4, PT", REGISTERS
    )
    rows = [(b << 32 | a, d << 32 | c) for a, b, c, d in zip(A, B, C, D, strict=True)]
    compare = COMPARISONS[comparison]
    assert predicate(port, "P0") == [compare(signed(x, 64), signed(y, 64)) for x, y in rows]
    assert predicate(port, "P1") == [compare(x, y) for x, y in rows]


def test_predicates_go_to_a_register_and_back() -> None:
    flags = {f"P{k}": (lanes(A) >> k) % 2 == 1 for k in range(7)}
    port = run("P2R R8, PR, RZ, 0x7f ; P2R R9, PR, R3, 0x15 ; P2R.B1 R10, PR, R3, 0x7f", REGISTERS, flags)
    assert register(port, "R8") == [a & 0x7F for a in A]
    assert register(port, "R9") == [b & ~0x15 | a & 0x15 for a, b in zip(A, B, strict=True)]
    assert register(port, "R10") == [b & ~0x7F00 | (a & 0x7F) << 8 for a, b in zip(A, B, strict=True)]
    back = run("R2P PR, R3, 0x5a ; R2P PR, R3.B1, 0x25", REGISTERS, flags)
    for bit in range(7):
        source = B if 0x5A >> bit & 1 else [b >> 8 for b in B]
        assert predicate(back, f"P{bit}") == [bool(word >> bit & 1) for word in source]


def test_selection_follows_its_predicate() -> None:
    flags = {"P2": lanes(D) % 2 == 1}
    port = run("SEL R8, R2, 0x7, !P2 ; SEL R9, RZ, R3, P2 ; SEL.64 R10, R2, R4, P2", REGISTERS, flags)
    assert register(port, "R8") == [7 if d % 2 else a for a, d in zip(A, D, strict=True)]
    assert register(port, "R9") == [0 if d % 2 else b for b, d in zip(B, D, strict=True)]
    assert register(port, "R11") == [b if d % 2 else d for b, d in zip(B, D, strict=True)]


def test_a_guard_holds_back_lanes() -> None:
    port = run("@P2 MOV R2, R3 ; @!P2 IADD3 R4, R2, 0x1, RZ", REGISTERS, {"P2": lanes(D) % 2 == 1})
    assert register(port, "R2") == [b if d % 2 else a for a, b, d in zip(A, B, D, strict=True)]
    assert register(port, "R4") == [c if d % 2 else a + 1 & 0xFFFFFFFF for a, c, d in zip(A, C, D, strict=True)]
