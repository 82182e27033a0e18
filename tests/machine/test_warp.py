from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.machine.lanes import LanePort, predicate, register, run
from tests.machine.lanes import words as lanes
from tests.machine.operands import signed, words

if TYPE_CHECKING:
    from collections.abc import Callable

WARPS = 32
A = words(101, 32 * WARPS)
B = words(102, 32 * WARPS)
C = words(103, 32 * WARPS)
MASK = np.array(words(104, 32 * WARPS), np.uint32).reshape(-1, 32) % 3 != 0


def source_lane(mode: str, lane: int, operand: int, control: int) -> tuple[int, bool]:
    """Where `shfl` reads, as the PTX ISA's own pseudocode has it."""
    bval, cval, mask = operand & 0x1F, control & 0x1F, control >> 8 & 0x1F
    max_lane = (lane & mask) | (cval & ~mask & 0x1F)
    min_lane = lane & mask
    match mode:
        case "UP":
            source = lane - bval
            inside = source >= max_lane
        case "DOWN":
            source = lane + bval
            inside = source <= max_lane
        case "BFLY":
            source = lane ^ bval
            inside = source <= max_lane
        case _:
            source = min_lane | (bval & ~mask & 0x1F)
            inside = source <= max_lane
    return (source if inside else lane), inside


@pytest.mark.parametrize("mode", ["UP", "DOWN", "BFLY", "IDX"])
def test_shuffles(mode: str) -> None:
    port = run(f"SHFL.{mode} P0, R8, R2, R3, R4", {"R2": lanes(A), "R3": lanes(B), "R4": lanes(C)})
    values, inside = [], []
    for i, (b, c) in enumerate(zip(B, C, strict=True)):
        source, found = source_lane(mode, i % 32, b, c)
        values.append(A[i - i % 32 + source])
        inside.append(found)
    assert register(port, "R8") == values
    assert predicate(port, "P0") == inside


def test_a_shuffle_by_constants() -> None:
    port = run("SHFL.DOWN PT, R8, R2, 0x10, 0x1f ; SHFL.BFLY PT, R9, R2, 0x1, 0x181f", {"R2": lanes(A)})
    assert register(port, "R8") == [A[i + 16] if i % 32 < 16 else A[i] for i in range(len(A))]
    assert register(port, "R9") == [A[i ^ 1] for i in range(len(A))]


def masked() -> LanePort:
    port = LanePort(WARPS)
    port.mask = MASK
    return port


def active_lanes(warp: int) -> list[int]:
    return [lane for lane in range(32) if MASK[warp, lane]]


def test_votes_count_active_lanes() -> None:
    flags = {"P1": lanes(A) % 2 == 1}
    port = run("VOTE.ANY R8, P2, P1 ; VOTE.ALL P3, P1 ; VOTE.EQ P4, !P1 ; VOTEU.ANY UR5, UPT, P1", {}, flags, masked())
    for warp in range(WARPS):
        active = active_lanes(warp)
        voters = [lane for lane in active if A[32 * warp + lane] % 2]
        ballot = sum(1 << lane for lane in voters)
        assert register(port, "UR5")[warp] == ballot
        for lane in active:
            at = 32 * warp + lane
            assert register(port, "R8")[at] == ballot
            assert predicate(port, "P2")[at] == bool(voters)
            assert predicate(port, "P3")[at] == (voters == active)
            assert predicate(port, "P4")[at] == (voters in (active, []))


REDUCTIONS: dict[str, Callable[[list[int]], int]] = {
    "": lambda values: functools.reduce(operator.and_, values),
    ".OR": lambda values: functools.reduce(operator.or_, values),
    ".XOR": lambda values: functools.reduce(operator.xor, values),
    ".SUM": sum,
    ".SUM.S32": sum,
    ".MIN": min,
    ".MAX": max,
    ".MIN.S32": lambda values: min(map(signed, values)),
    ".MAX.S32": lambda values: max(map(signed, values)),
}


@pytest.mark.parametrize("operation", REDUCTIONS)
def test_reductions_take_active_lanes(operation: str) -> None:
    port = run(f"REDUX{operation} UR4, R2", {"R2": lanes(A)}, {}, masked())
    expected = []
    for warp in range(WARPS):
        values = [A[32 * warp + lane] for lane in active_lanes(warp)]
        expected.append(REDUCTIONS[operation](values) & 0xFFFFFFFF)
    assert register(port, "UR4") == expected


SINGLES = [0x3F800000, 0xBF800000, 0x80000000, 0, 0x7FC00001, 0x40490FDB, 0xC2000000, 0x00000001]


@pytest.mark.parametrize("nan", ["", ".NAN"])
@pytest.mark.parametrize("operation", ["MIN", "MAX", "MINABS", "MAXABS"])
@pytest.mark.parametrize("some_nan", [False, True])
def test_reductions_of_singles(operation: str, nan: str, *, some_nan: bool) -> None:
    words = [SINGLES[(3 * a + i) % 8] for i, a in enumerate(A)]
    words = [word if some_nan or word != 0x7FC00001 else 0x41000000 for word in words]
    port = run(f"CREDUX.{operation}.F32{nan} UR4, R2", {"R2": lanes(words)}, {}, masked())
    expected = []
    for warp in range(WARPS):
        given = np.array([words[32 * warp + lane] for lane in active_lanes(warp)], np.uint32)
        values = (given & 0x7FFFFFFF if "ABS" in operation else given).view(np.float32)
        numbers = values[~np.isnan(values)]
        lost = not numbers.size or (nan and np.isnan(values).any())
        # Sorted by sign first, so that -0 is below +0.
        ordered = sorted(numbers, key=lambda number: (float(number), not np.signbit(number)))
        chosen = ordered[0 if operation.startswith("MIN") else -1] if numbers.size else np.float32(0)
        expected.append(0x7FFFFFFF if lost else int(chosen.view(np.uint32)))
    assert register(port, "UR4") == expected


def test_matches_find_equal_values() -> None:
    few = [a % 5 for a in A]
    same = [7 if i // 32 % 2 else a for i, a in enumerate(A)]
    port = run(
        "MATCH.ANY R8, R2 ; MATCH.ALL P1, R9, R4 ; MATCH.ANY.U64 R10, R2",
        {"R2": lanes(few), "R3": lanes([b % 2 for b in B]), "R4": lanes(same)},
        {},
        masked(),
    )
    for warp in range(WARPS):
        active = active_lanes(warp)
        everyone = sum(1 << lane for lane in active)
        agree = len({same[32 * warp + lane] for lane in active}) == 1
        for lane in active:
            at = 32 * warp + lane
            others = [k for k in active if few[32 * warp + k] == few[at]]
            assert register(port, "R8")[at] == sum(1 << k for k in others)
            both = [k for k in others if B[32 * warp + k] % 2 == B[at] % 2]
            assert register(port, "R10")[at] == sum(1 << k for k in both)
            assert register(port, "R9")[at] == (everyone if agree else 0)
            assert predicate(port, "P1")[at] == agree


def test_the_lowest_active_lane_is_elected() -> None:
    port = run("ELECT P0, UR4, PT ; R2UR UR5, R2", {"R2": lanes(A)}, {}, masked())
    for warp in range(WARPS):
        first = active_lanes(warp)[0]
        assert register(port, "UR4")[warp] == first
        assert register(port, "UR5")[warp] == A[32 * warp + first]
        for lane in active_lanes(warp):
            assert predicate(port, "P0")[32 * warp + lane] == (lane == first)
