"""Prepacked weights lie in the order in which lanes hold them for matrix instructions, by PTX's own formulas."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.advise.expressions import evaluate
from sectorwise.advise.prepack import Prepacking, list_prepackings
from sectorwise.errors import ArgumentError

ALL = [each for dtype in ("tf32", "fp16", "fp8", "int8", "int4") for each in list_prepackings(dtype)]


def hold_fragment(lane: int, element: int, depth: int) -> tuple[int, int]:
    """Row and column of an element that a lane holds of A of mma.m16n8k{depth}, as the PTX ISA writes it."""
    group, inside = lane >> 2, lane % 4
    match depth:
        case 8:
            return group + 8 * (element in {1, 3}), inside + 4 * (element >= 2)
        case 16:
            low = element < 2 or 4 <= element < 6
            return group + 8 * (not low), inside * 2 + (element & 1) + 8 * (element >= 4)
        case 32:
            low = element < 4 or 8 <= element < 12
            return group + 8 * (not low), inside * 4 + (element & 3) + 16 * (element >= 8)
        case _:
            low = element < 8 or 16 <= element < 24
            return group + 8 * (not low), inside * 8 + (element & 7) + 32 * (element >= 16)


@pytest.mark.parametrize("packing", ALL, ids=lambda each: f"{each.bits} bits for {each.instruction}")
def test_a_lane_loads_what_it_holds(packing: Prepacking) -> None:
    rows, columns = 32, 2 * packing.tile_depth
    weight = np.arange(rows * columns).reshape(rows, columns)
    packed = packing.pack(weight)
    assert sorted(packed.tolist()) == list(range(weight.size))
    a_lane, of_fragment = packing.elements_a_lane, packing.depth // 2
    assert a_lane * packing.bits == 128
    assert packing.fragments * of_fragment == a_lane
    tiles = packed.reshape(rows // 16, columns // packing.tile_depth, 32, packing.fragments, of_fragment)
    for tile_row, tile_column, lane, fragment, element in np.ndindex(*tiles.shape):
        row, column = hold_fragment(lane, element, packing.depth)
        # Halves that are taken out together: the two of a register lie four nibbles apart.
        where = element // 2 + element % 2 * 4 if packing.pairs else element
        wanted = weight[16 * tile_row + row, packing.tile_depth * tile_column + packing.depth * fragment + column]
        assert tiles[tile_row, tile_column, lane, fragment, where] == wanted


@pytest.mark.parametrize("packing", ALL, ids=lambda each: f"{each.bits} bits for {each.instruction}")
def test_the_expression_says_the_same(packing: Prepacking) -> None:
    rows, columns = 48, 3 * packing.tile_depth
    n, k = (axis.ravel() for axis in np.indices((rows, columns)))
    where = evaluate(packing.expression, {"n": n, "k": k, "K": np.full(n.shape, columns)})
    assert (where == packing.place(n, k, columns)).all()


def test_one_mask_takes_two_nibbles_of_a_register() -> None:
    (packing, _) = list_prepackings("int4")
    weight = np.arange(16 * 64).reshape(16, 64) % 16
    words = np.asarray(packing.pack(weight).reshape(-1, 8), dtype=np.int64)
    packed = (words << (4 * np.arange(8))).sum(axis=1)
    low, high = packed & 0xF, packed >> 16 & 0xF
    assert (low == words[:, 0]).all()
    assert (high == words[:, 4]).all()
    lane_0 = packing.pack(np.arange(16 * 64).reshape(16, 64))[:8]
    assert lane_0[4] == lane_0[0] + 1  # neighbours along K, the two halves of a register


def test_a_weight_of_broken_tiles_is_refused() -> None:
    (packing, _) = list_prepackings("int4")
    with pytest.raises(ArgumentError, match=r"multiples of 16 and 64, got \(16, 32\)"):
        packing.pack(np.zeros((16, 32)))
