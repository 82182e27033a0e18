"""Buffers are compared bit for bit where they hold integers, and within rounding where they hold floats."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.analysis.outputs import TOLERANCES, compare_buffer

BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}


def test_integers_differ_by_a_bit() -> None:
    mine = np.arange(1000, dtype=np.int32)
    theirs = mine.copy()
    assert compare_buffer("a", "i32", mine, theirs).differing == 0
    theirs[700] ^= 1
    theirs[900] = -1
    found = compare_buffer("a", "i32", mine, theirs)
    assert (found.differing, found.rounded, found.first) == (2, 0, 700)
    assert (found.executed, found.on_device) == ("700", "701")


def test_floats_may_differ_by_rounding_and_no_more() -> None:
    mine = np.linspace(1, 2, 1000, dtype=np.float32)
    theirs = np.nextafter(mine, np.float32(9))
    found = compare_buffer("out", "f32", mine, theirs)
    assert (found.differing, found.rounded) == (0, 1000)
    theirs[3] *= 1 + 2.0**-14
    found = compare_buffer("out", "f32", mine, theirs)
    assert (found.differing, found.rounded, found.first) == (1, 999, 3)


@pytest.mark.parametrize(("dtype", "bits"), BITS.items())
def test_tolerance_is_some_steps_of_the_type_and_far_from_all_of_it(dtype: str, bits: int) -> None:
    assert 2.0 ** (2 - bits) <= TOLERANCES[dtype] <= 2.0 ** (9 - bits)


def test_what_cancels_may_be_as_wrong_as_its_addends() -> None:
    mine = np.array([1000.0, -1000.0, 1e-4], np.float32)
    assert compare_buffer("s", "f32", mine, np.array([1000.0, -1000.0, 2e-4], np.float32)).differing == 0
    assert compare_buffer("s", "f32", mine, np.array([1000.0, -1000.0, 1.0], np.float32)).differing == 1


@pytest.mark.parametrize("mask", [1e30, -3.4e38, 1e9])
def test_what_stands_for_infinity_lets_nothing_else_be_wrong(mask: float) -> None:
    mine = np.linspace(0, 1, 1000, dtype=np.float32)
    wrong = -7 * mine
    mine[::2] = wrong[::2] = mask
    found = compare_buffer("masked", "f32", mine, wrong)
    assert (found.differing, found.first) == (500, 1)
    assert compare_buffer("masked", "f32", mine, np.nextafter(mine, np.float32(0))).differing == 0


def test_nan_and_infinity_equal_themselves_alone() -> None:
    mine = np.array([np.nan, np.inf, -np.inf, 1.0, np.nan], np.float32)
    quiet = mine.copy()
    quiet.view(np.uint32)[0] ^= 5
    assert compare_buffer("n", "f32", mine, quiet).differing == 0
    assert (
        compare_buffer("n", "f32", mine, np.array([np.nan, -np.inf, -np.inf, np.inf, 1.0], np.float32)).differing == 3
    )


def test_bfloat16_is_read_as_such() -> None:
    one, next_one, two = 0x3F80, 0x3F81, 0x4000
    mine = np.array([one, one, one], np.uint16)
    found = compare_buffer("b", "bf16", mine, np.array([one, next_one, two], np.uint16))
    assert (found.differing, found.rounded, found.executed, found.on_device) == (1, 1, "1", "2")


def test_zeros_of_both_signs_are_equal() -> None:
    assert compare_buffer("z", "f16", np.zeros(2, np.float16), -np.zeros(2, np.float16)).differing == 0
