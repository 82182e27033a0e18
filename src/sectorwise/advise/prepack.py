"""Turns the order in which a tensor-core instruction wants a weight into an offline permutation of its storage.

A lane of `mma.m16n8k16` holds of the 16 x 16 fragment A the elements at rows lane / 4 and lane / 4 + 8, and at columns
lane % 4 * 2 and the next, and eight further (PTX ISA, "Matrix Fragments for mma.m16n8k16"). Stored in the order in
which it holds them, the eight elements are one 16-byte load, and a warp's load is contiguous: what Marlin-like layouts
do offline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

TILE: Final = 16
_LANES: Final = 32
_ELEMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Prepacking:
    """Where element (n, k) of the weight goes: `expression` over n, k and K, in elements; `tile` is square."""

    expression: str
    tile: int
    elements_a_lane: int


def describe_prepacking() -> Prepacking:
    """The permutation as an index expression with `n`, `k` and `K` as names; bits of an element do not change it."""
    lane = "(n % 8 * 4 + k % 8 / 2)"
    inside = "(k % 16 / 8 * 4 + n % 16 / 8 * 2 + k % 2)"
    return Prepacking(f"(n/16 * (K/16) + k/16) * 256 + {lane} * 8 + {inside}", TILE, _ELEMENTS)


def prepack(weight: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The weight [N, K] in fragment order, flat; both extents must be multiples of 16.

    Raises `ArgumentError` for another shape.
    """
    if weight.ndim != 2 or weight.shape[0] % TILE or weight.shape[1] % TILE:
        raise ArgumentError(f"a weight must be [N, K] in multiples of {TILE}, got {weight.shape}")
    n = np.arange(weight.shape[0], dtype=np.int64)[:, None]
    k = np.arange(weight.shape[1], dtype=np.int64)[None, :]
    packed = np.empty(weight.size, dtype=weight.dtype)
    packed[place(n, k, weight.shape[1])] = weight
    return packed


def place(n: npt.NDArray[np.int64], k: npt.NDArray[np.int64], depth: int) -> npt.NDArray[np.int64]:
    """Where elements (n, k) of a weight of depth K go."""
    lane = n % 8 * 4 + k % 8 // 2
    inside = k % 16 // 8 * 4 + n % 16 // 8 * 2 + k % 2
    return np.asarray((n // TILE * (depth // TILE) + k // TILE) * (_LANES * _ELEMENTS) + lane * _ELEMENTS + inside)
