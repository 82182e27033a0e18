"""The pocket calculator gives closed forms for strides, arrays for rows, and errors that name the lane."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sectorwise.counting.calculator import sectors, wavefronts
from sectorwise.errors import ArgumentError

LANES = np.arange(32)


def test_one_warp_gives_an_int() -> None:
    assert sectors(LANES * 16, width=16) == 16
    assert sectors(LANES * 8192, width=2) == 32
    assert isinstance(sectors(LANES * 4), int)
    assert isinstance(wavefronts(LANES * 4), int)


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("stride", range(1, 70))
def test_sectors_of_a_strided_warp(width: int, stride: int) -> None:
    step = stride * width
    expected = 32 if step >= 32 else (31 * step + width - 1) // 32 + 1
    assert sectors(LANES * step, width=width) == expected


@pytest.mark.parametrize("stride", range(1, 130))
@pytest.mark.parametrize("operation", ["load", "store"])
def test_wavefronts_of_strided_words_are_the_gcd_with_the_banks(stride: int, operation: str) -> None:
    assert wavefronts(LANES * 4 * stride, operation=operation) == math.gcd(stride, 32)


@pytest.mark.parametrize(("width", "floor"), [(1, 1), (2, 1), (4, 1), (8, 2), (16, 4)])
def test_contiguous_accesses_take_the_passes_of_their_width(width: int, floor: int) -> None:
    assert wavefronts(LANES * width, width=width) == floor
    assert wavefronts(LANES * width, width=width, operation="store") == floor


def test_broadcasts_are_free_for_loads_and_cost_the_width_for_stores() -> None:
    same = np.full(32, 4096)
    assert [wavefronts(same, width=width) for width in (4, 8, 16)] == [1, 1, 2]
    assert [wavefronts(same, width=width, operation="store") for width in (4, 8, 16)] == [1, 2, 4]
    assert wavefronts(same, operation="atomic") == 32


def test_matrix_loads_of_four_matrices() -> None:
    rows = np.arange(32)
    assert wavefronts(rows * 16, width=16, operation="matrix_load") == 4
    assert wavefronts(rows * 128, width=16, operation="matrix_load") == 32
    assert wavefronts(rows * 128, width=16, operation="matrix_load", mask=rows < 8) == 8


def test_rows_of_warps_give_an_array_of_their_shape() -> None:
    rows = np.stack([LANES * 4, LANES * 128, np.zeros(32, dtype=int)])
    assert sectors(rows).tolist() == [4, 32, 1]  # type: ignore[union-attr]
    assert wavefronts(rows).tolist() == [1, 32, 1]  # type: ignore[union-attr]
    nested = sectors(rows.reshape(1, 3, 32))
    assert isinstance(nested, np.ndarray)
    assert nested.shape == (1, 3)


def test_masked_lanes_touch_nothing() -> None:
    assert sectors(LANES * 128, mask=LANES < 5) == 5
    assert sectors(LANES * 128, mask=LANES < 0) == 0
    assert wavefronts(LANES * 128, mask=LANES < 5) == 5
    assert sectors(LANES * 4 + (LANES == 9), mask=LANES != 9) == 4


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: sectors(np.arange(31) * 4), r"rows of 32, got shape \(31,\)"),
        (lambda: sectors(7), r"rows of 32, got shape \(\)"),
        (lambda: sectors(LANES * 1.0), "must be integers, got float64"),
        (lambda: sectors(LANES * 4, width=3), "width must be one of 1, 2, 4, 8, 16, 32 bytes, got 3"),
        (lambda: wavefronts(LANES * 32, width=32), "width must be one of 1, 2, 4, 8, 16 bytes, got 32"),
        (lambda: wavefronts(LANES * 4, operation="matrix_load"), "width must be one of 16 bytes, got 4"),
        (
            lambda: sectors(LANES * 4 + 2 * (LANES == 9)),
            "lane 9 accesses 4 bytes at byte 38, which is no multiple of 4",
        ),
        (lambda: sectors(np.stack([LANES * 8, LANES * 4]), width=8), "lane 1 of row 1 accesses 8 bytes at byte 4"),
        (lambda: sectors(LANES * 4, mask=LANES[:4] > 0), r"mask must have the addresses' shape \(32,\), got \(4,\)"),
        (lambda: wavefronts(LANES * 4, operation="laod"), "unknown operation 'laod'; did you mean load"),
    ],
)
def test_errors_say_what_was_expected_and_where(call: object, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        call()  # type: ignore[operator]
