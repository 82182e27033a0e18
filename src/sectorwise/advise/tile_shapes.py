"""Turns the sizes of a matrix product, and of the tiles that divide it, into shapes that fit together.

Three tiles nest: what registers hold is read from shared memory once, what shared memory holds from the L2 once, what
blocks that run together share from DRAM once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.advise.dtypes import Dtype, find_dtype
from sectorwise.advise.steps import WARP_LANES
from sectorwise.device import DeviceSpec, load_device, require_capability
from sectorwise.errors import ArgumentError, UnsupportedDeviceError
from sectorwise.model.roofline import Level, Roofline, draw_roofline

if TYPE_CHECKING:
    from sectorwise.device import Capability

_REGISTER_BYTES: Final = 4
_MATRIX_REGISTERS: Final = 40
"""Addresses, counters and fragments beside the accumulators, where tensor cores compute."""

_LANE_REGISTERS: Final = 27
"""The same where lanes compute, beside two sets of operands: the next are loaded while these are used. That makes 32
registers for one sum (`t_mm_tile16`: 32), 59 for 4 x 4 (`c_mm64_groups_of_8`: 56), 123 for 8 x 8 (`c_mm128`: 127)."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile of C, the depth of its slices, how many are buffered, and how warps and threads divide it.

    `warp` is what one warp computes, `thread` what one lane does without tensor cores. `group_rows` blocks of one
    column run one after the other before the next column's. `split` blocks share one tile of C along K; with `streams`
    there are as many blocks as fit at once, and each takes an equal part of all slices of all tiles (stream-K). Of a
    `cluster` blocks lie one below the other, and what they share of B comes from the L2 once, to all (multicast). Rows
    of slices are `pad` elements longer than BK, so that no vector along K is aligned.
    """

    bm: int
    bn: int
    bk: int
    stages: int
    threads: int
    warp: tuple[int, int]
    thread: tuple[int, int] | None = None
    group_rows: int = 8
    split: int = 1
    streams: bool = False
    cluster: int = 1
    pad: int = 0

    @property
    def name(self) -> str:
        """`128x128x64x3`: sizes and stages.

        Behind it `/4` where four blocks share a tile of C along K, `sk` of stream-K, `c2` of clusters of two blocks.
        """
        suffix = " sk" if self.streams else f"/{self.split}" if self.split > 1 else ""
        together = f" c{self.cluster}" if self.cluster > 1 else ""
        return f"{self.bm}x{self.bn}x{self.bk}x{self.stages}{suffix}{together}"

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return self.threads // WARP_LANES


@dataclass(frozen=True, slots=True)
class Product:
    """C [m, n] = A [m, k] B [k, n] on one device, computed in one element type.

    A has elements of `a_bytes`, B of `b_bytes`: the same, but for weights of 4 bits, which are decoded to the halves of
    A on their way into registers. `operations_per_ns` is the peak.
    """

    m: int
    n: int
    k: int
    dtype: Dtype
    device: DeviceSpec
    roofline: Roofline
    operations_per_ns: float
    a_bytes: float
    b_bytes: float

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether the type has a matrix instruction; fp32 and fp64 are left to the lanes."""
        return self.dtype.name not in {"fp32", "fp64"}

    @property
    def sum_bytes(self) -> int:
        """Bytes of an accumulator."""
        return 8 if self.dtype.name == "fp64" else 4

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.m * self.n * self.k

    def ridge(self, level: Level) -> float:
        """Operations a byte from which on arithmetic is the limit at a level of memory."""
        return self.operations_per_ns / self.roofline.ceiling(level).per_ns

    def intensity(self, rows: float, columns: float) -> float:
        """Operations for each byte that a tile of so many rows of A and columns of B reads."""
        return 2 / (self.b_bytes / rows + self.a_bytes / columns)

    def slice_bytes(self, rows: int, columns: float, depth: int) -> int:
        """Bytes of so many rows of A and columns of B, `depth` deep."""
        return round((rows * self.a_bytes + columns * self.b_bytes) * depth)


def make_product(m: int, n: int, k: int, dtype: str, device: str) -> Product:
    """The product, checked; raises `ArgumentError` for an extent of 0 or a type without a peak on the device."""
    for name, extent in (("M", m), ("N", n), ("K", k)):
        if not 1 <= extent <= 1 << 24:
            raise ArgumentError(f"{name} is {extent:,}; it must be 1 to {1 << 24:,}")
    found, spec = find_dtype(dtype), load_device(device)
    capability = require_capability(spec)
    roofline = draw_roofline(spec)
    peak = _find_double_peak(spec, capability) if found.name == "fp64" else roofline.peak(found.peak)
    size = found.bits / 8
    # Weights of 4 bits meet activations of halves.
    return Product(m, n, k, found, spec, roofline, peak, 2.0 if found.name == "int4" else size, size)


def _find_double_peak(device: DeviceSpec, capability: Capability) -> float:
    """Operations a ns in double precision, by the lanes: two for each lane and cycle."""
    if capability.fp64_lanes is None:
        raise UnsupportedDeviceError(f"the lanes for fp64 of {device.name} ({device.id}) are not known")
    return 2 * capability.fp64_lanes * device.sm_count * device.boost_mhz / 1000


def count_registers(product: Product, sizes: tuple[int, int], threads: int, thread: tuple[int, int] | None) -> int:
    """Registers that a thread wants: its part of the accumulator, operands, and what is around."""
    sums = sizes[0] * sizes[1] * product.sum_bytes // (_REGISTER_BYTES * threads)
    if product.uses_tensor_cores:
        return sums + _MATRIX_REGISTERS
    rows, columns = thread or (4, 4)
    operand = max(1, round(product.a_bytes) // _REGISTER_BYTES)
    return sums + 2 * (rows + columns) * operand + _LANE_REGISTERS


def make_tile(
    product: Product,
    sizes: tuple[int, int, int, int],
    *,
    threads: int | None = None,
    warp: tuple[int, int] | None = None,
    thread: tuple[int, int] | None = None,
    group_rows: int = 8,
    split: int = 1,
    streams: bool = False,
) -> Tile:
    """A tile of block sizes and stages, with warp and thread tiles that fit it where they are not given.

    Raises `ArgumentError` where they do not fit together: the text has what would.
    """
    bm, bn, bk, stages = sizes
    for name, value in (("BM", bm), ("BN", bn), ("BK", bk), ("stages", stages), ("split", split)):
        if value < 1:
            raise ArgumentError(f"{name} is {value}; it must be at least 1")
    for name, pair in (("warp", warp), ("thread", thread)):
        if pair is not None and min(pair) < 1:
            raise ArgumentError(f"{name} is {pair[0]}x{pair[1]}; both must be at least 1")
    if thread is not None and warp is not None and warp[0] * warp[1] != WARP_LANES * thread[0] * thread[1]:
        a_lane = warp[0] * warp[1] / WARP_LANES
        raise ArgumentError(
            f"a warp tile of {warp[0]}x{warp[1]} is {a_lane:g} elements a lane; {thread[0]}x{thread[1]} a lane makes a "
            f"warp tile of {thread[0] * 8}x{thread[1] * 4} or {thread[0] * 4}x{thread[1] * 8}: either is fine, not both"
        )
    if not product.uses_tensor_cores:
        thread = thread or (8, 8) if bm * bn >= 128 * 64 else thread or (4, 4)
        warp = warp or (thread[0] * 4, thread[1] * 8)
    if warp is None:
        warp = _choose_warp(bm, bn, (threads,) if threads else (_choose_threads(bm, bn), 64, 32))
    if bm % warp[0] or bn % warp[1]:
        raise ArgumentError(f"a block of {bm}x{bn} is no whole number of warp tiles of {warp[0]}x{warp[1]}")
    number = bm * bn // (warp[0] * warp[1]) * WARP_LANES
    return Tile(bm, bn, bk, stages, number, warp, thread, group_rows, split, streams)


def _choose_threads(bm: int, bn: int) -> int:
    """The least of 128, 256 and 512 threads whose accumulators take at most 128 registers each."""
    return next((threads for threads in (128, 256, 512) if bm * bn <= 128 * threads), 512)


def _choose_warp(bm: int, bn: int, threads: tuple[int, ...]) -> tuple[int, int]:
    """The division of a block into warps that reads shared memory least, by the first number of threads that can.

    Warp tiles are multiples of 16 x 8, the least of a matrix instruction.
    """
    for number in threads:
        warps = number // WARP_LANES
        shapes = [
            (bm // rows, bn * rows // warps)
            for rows in range(1, warps + 1)
            if warps % rows == 0 and bm % rows == 0 and bn % (warps // rows) == 0
        ]
        usable = [shape for shape in shapes if shape[0] % 16 == 0 and shape[1] % 8 == 0]
        if usable:
            return min(usable, key=lambda shape: 1 / shape[0] + 1 / shape[1])
    raise ArgumentError(f"a block of {bm}x{bn} divides into no warp tiles of multiples of 16x8")
