"""Turns the order in which a tensor-core instruction wants a weight into an offline permutation of its storage.

A lane of `mma.m16n8kK` holds of the 16 x K fragment A four registers: rows lane / 4 and lane / 4 + 8, and of each as
many neighbouring columns as a register has elements, from lane % 4 times that on, and from half of K further (PTX ISA,
"Matrix Fragments for mma.m16n8k16" and its like). Stored in the order in which it holds them, a lane's elements are one
16-byte load, and a warp's load is contiguous: what Marlin-like layouts do offline. Narrow types that are decoded to
halves first have several fragments in one load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

ROWS: Final = 16
_LANES: Final = 32
_LOAD_BITS: Final = 128
_NIBBLES: Final = 8


@dataclass(frozen=True, slots=True)
class Prepacking:
    """Where element (n, k) of a weight goes: `expression` over n, k and K, in elements of `bits`.

    `depth` is the K of the instruction's fragment, of which one load of a lane has `fragments`. With `pairs`, the two
    elements of a register of halves lie four nibbles apart, so that one mask takes both out of a word.
    """

    instruction: str
    bits: int
    depth: int
    fragments: int
    pairs: bool = False

    @property
    def tile_depth(self) -> int:
        """Columns of a tile: K must be a multiple of it, and N of 16."""
        return self.depth * self.fragments

    @property
    def elements_a_lane(self) -> int:
        """Elements of one load of a lane."""
        return _LOAD_BITS // self.bits

    @property
    def expression(self) -> str:
        """The place as an expression in C's operators, for `sectorwise access` and for a script."""
        of_fragment = self.depth // 2
        run = of_fragment // 4
        lane = f"(n % 8 * 4 + k % {self.depth // 2} / {run})"
        inside = f"k % {self.depth} / {self.depth // 2} * {2 * run} + n % 16 / 8 * {run} + k % {run}"
        if self.pairs:
            inside = f"k % {self.depth} / {self.depth // 2} * 2 + n % 16 / 8 + k % 2 * 4"
        if run == 1:
            inside = f"k % {self.depth} / {self.depth // 2} * 2 + n % 16 / 8"
        fragment = f" + k % {self.tile_depth} / {self.depth} * {of_fragment}" if self.fragments > 1 else ""
        tile = f"(n/16 * (K/{self.tile_depth}) + k/{self.tile_depth}) * {_LANES * self.elements_a_lane}"
        return f"{tile} + {lane} * {self.elements_a_lane}{fragment} + {inside}"

    def place(self, n: npt.NDArray[np.int64], k: npt.NDArray[np.int64], depth: int) -> npt.NDArray[np.int64]:
        """Where elements (n, k) of a weight of depth K go."""
        half, of_fragment = self.depth // 2, self.depth // 2
        run = of_fragment // 4
        lane = n % 8 * 4 + k % half // run
        inside = k % self.depth // half * 2 * run + n % ROWS // 8 * run + k % run
        if self.pairs:
            inside = inside // 2 + inside % 2 * (_NIBBLES // 2)
        fragment = k % self.tile_depth // self.depth
        tile = n // ROWS * (depth // self.tile_depth) + k // self.tile_depth
        a_lane = self.elements_a_lane
        return np.asarray(tile * _LANES * a_lane + lane * a_lane + fragment * of_fragment + inside)

    def pack(self, weight: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """The weight [N, K], an array element for each element, in fragment order, flat.

        Raises `ArgumentError` where the extents are no multiples of the tile's.
        """
        if weight.ndim != 2 or weight.shape[0] % ROWS or weight.shape[1] % self.tile_depth:
            raise ArgumentError(
                f"for {self.instruction} a weight must be [N, K] in multiples of {ROWS} and {self.tile_depth}, "
                f"got {weight.shape}"
            )
        n = np.arange(weight.shape[0], dtype=np.int64)[:, None]
        k = np.arange(weight.shape[1], dtype=np.int64)[None, :]
        packed = np.empty(weight.size, dtype=weight.dtype)
        packed[self.place(n, k, weight.shape[1])] = weight
        return packed


_TF32: Final = (Prepacking("mma.m16n8k8 of tf32", 32, 8, 1),)
_HALVES: Final = (Prepacking("mma.m16n8k16", 16, 16, 1),)
_DECODED_BYTES: Final = Prepacking("mma.m16n8k16, decoded to halves", 8, 16, 2)
_DECODED_NIBBLES: Final = Prepacking("mma.m16n8k16, decoded to halves", 4, 16, 4, pairs=True)
_BY_TYPE: Final = {
    "fp32": _TF32,
    "tf32": _TF32,
    "fp16": _HALVES,
    "bf16": _HALVES,
    "fp8": (_DECODED_BYTES, Prepacking("mma.m16n8k32 of fp8", 8, 32, 1)),
    "int8": (_DECODED_BYTES, Prepacking("mma.m16n8k32 of int8", 8, 32, 1)),
    "int4": (_DECODED_NIBBLES, Prepacking("mma.m16n8k64 of int4", 4, 64, 1)),
    "fp4": (_DECODED_NIBBLES,),
}


def list_prepackings(dtype: str) -> tuple[Prepacking, ...]:
    """The orders in which matrix instructions take weights of a type: decoded to halves, and as they are.

    >>> list_prepackings("int8")[1].expression
    '(n/16 * (K/32) + k/32) * 512 + (n % 8 * 4 + k % 16 / 4) * 16 + k % 32 / 16 * 8 + n % 16 / 8 * 4 + k % 4'
    """
    return _BY_TYPE.get(dtype, ())
