"""Turns one tiling of a matrix product (block, warp and thread tile, stages) into its cost at every level of memory.

Three tiles nest: what registers hold is read from shared memory once, what shared memory holds from the L2 once, what
blocks that run together share from DRAM once. At each boundary a tile has an intensity, and the device a ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.dtypes import Dtype, find_dtype
from sectorwise.advise.plan import L2_KEEPS
from sectorwise.counting.calculator import count_shared
from sectorwise.device import DeviceSpec, load_device, require_capability
from sectorwise.errors import ArgumentError
from sectorwise.model.latency import MEASURED_DEVICE, describe_memory
from sectorwise.model.occupancy import occupancy
from sectorwise.model.roofline import Level, Roofline, draw_roofline
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from sectorwise.model.occupancy import Occupancy

WARP_LANES: Final = 32
GROUP_WARPS: Final = 4
"""Warps that issue one matrix instruction together, from compute capability 9.0 on (wgmma)."""

_OVERHEAD_REGISTERS: Final = 40
"""Addresses, counters and fragments beside the accumulators: 56 registers for 16 sums in `k_mm64_rowmajor_4096`."""

_ACCUMULATOR_BYTES: Final = 4
_VECTOR_BYTES: Final = 16
_L2_BYTES_A_CYCLE: Final = 64
"""An SM's port to the L2."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A block's tile of C, the depth of its slices, how many are buffered, and how warps and threads divide it.

    `warp` is what one warp computes, `thread` what one lane does without tensor cores. `group_rows` blocks of one
    column run one after the other before the next column's. `split` blocks share one tile of C along K.
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

    @property
    def name(self) -> str:
        """`128x256x64x3`: sizes and stages; `/4` where four blocks share a tile of C along K."""
        return f"{self.bm}x{self.bn}x{self.bk}x{self.stages}{f'/{self.split}' if self.split > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Boundary:
    """Operations for each byte that crosses into a tile, and from which number on arithmetic is the limit there."""

    level: str
    intensity: float
    ridge: float


@dataclass(frozen=True, slots=True)
class TileCost:
    """What a tile costs; `time_ns` is None, and `excess` says why, where it fits no SM."""

    name: str
    tile: Tile
    time_ns: float | None
    tflops: float
    bound: str
    excess: tuple[str, ...]
    shared_bytes: int
    accumulator_bytes: int
    registers: int
    spills: bool
    blocks_per_sm: int
    limiter: str
    blocks: int
    waves: float
    last_wave_pct: float
    bytes_in_flight: float
    dram_bytes: float
    boundaries: tuple[Boundary, ...]

    def boundary(self, level: str) -> Boundary:
        """The boundary of that name: `shared`, `l2` or `dram`."""
        return next(each for each in self.boundaries if each.level == level)


@dataclass(frozen=True, slots=True)
class Product:
    """C [m, n] = A [m, k] B [k, n] of one element type on one device."""

    m: int
    n: int
    k: int
    dtype: Dtype
    device: DeviceSpec
    roofline: Roofline

    @property
    def element_bytes(self) -> float:
        """Bytes of an element of A and B."""
        return self.dtype.bits / 8

    @property
    def uses_tensor_cores(self) -> bool:
        """Whether the type has a matrix instruction; fp32 and fp64 are left to the lanes."""
        return self.dtype.name not in {"fp32", "fp64"}

    @property
    def operations(self) -> float:
        """Multiplications and additions."""
        return 2.0 * self.m * self.n * self.k


def make_product(m: int, n: int, k: int, dtype: str, device: str) -> Product:
    """The product, checked; raises `ArgumentError` for an extent of 0 or a type without a peak on the device."""
    for name, extent in (("M", m), ("N", n), ("K", k)):
        if not 1 <= extent <= 1 << 24:
            raise ArgumentError(f"{name} is {extent:,}; it must be 1 to {1 << 24:,}")
    found, spec = find_dtype(dtype), load_device(device)
    require_capability(spec)
    if found.name in {"int4", "fp64"}:
        raise ArgumentError(f"tiles are planned for fp32, tf32, fp16, bf16, fp8, int8 and fp4, not for {found.name}")
    roofline = draw_roofline(spec)
    roofline.peak(found.peak)
    return Product(m, n, k, found, spec, roofline)


def make_tile(
    product: Product,
    sizes: tuple[int, int, int, int],
    *,
    threads: int | None = None,
    warp: tuple[int, int] | None = None,
    thread: tuple[int, int] | None = None,
    group_rows: int = 8,
    split: int = 1,
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
    return Tile(bm, bn, bk, stages, bm * bn // (warp[0] * warp[1]) * WARP_LANES, warp, thread, group_rows, split)


def judge(product: Product, tile: Tile) -> TileCost:
    """What the tile costs, at each boundary and in time."""
    slice_bytes = round((tile.bm + tile.bn) * tile.bk * product.element_bytes)
    shared_bytes = tile.stages * slice_bytes
    accumulator = tile.bm * tile.bn * _ACCUMULATOR_BYTES
    wanted = accumulator // _ACCUMULATOR_BYTES // tile.threads + _OVERHEAD_REGISTERS
    most = require_capability(product.device).max_regs_per_thread
    registers = min(wanted, most)
    excess = find_excess(product, (tile.bm, tile.bn, tile.bk, tile.stages), tile.threads)
    held = None if excess else occupancy(tile.threads, registers, shared_bytes, device=product.device)
    blocks = -(-product.m // tile.bm) * -(-product.n // tile.bn) * tile.split
    waves = count_waves(blocks, held.blocks_per_sm if held else 1, product.device.sm_count)
    dram_bytes = count_dram_bytes(product, tile)
    boundaries = _find_boundaries(product, tile, dram_bytes)
    time_ns, bound, flying = (None, "fits no SM", 0.0)
    if held is not None:
        time_ns, bound, flying = _estimate(product, tile, held, dram_bytes, slice_bytes)
    return TileCost(
        name=tile.name,
        tile=tile,
        time_ns=time_ns,
        tflops=product.operations / time_ns / 1000 if time_ns else 0.0,
        bound=bound,
        excess=excess,
        shared_bytes=shared_bytes,
        accumulator_bytes=accumulator,
        registers=registers,
        spills=wanted > most,
        blocks_per_sm=held.blocks_per_sm if held else 0,
        limiter=str(held.limiter) if held else "",
        blocks=blocks,
        waves=waves.waves,
        last_wave_pct=waves.last_wave_pct,
        bytes_in_flight=flying,
        dram_bytes=dram_bytes,
        boundaries=boundaries,
    )


def find_excess(product: Product, sizes: tuple[int, int, int, int], threads: int | None = None) -> tuple[str, ...]:
    """Each limit of an SM that a tile (BM, BN, BK, stages) exceeds, in words; without threads, those of any number."""
    capability = require_capability(product.device)
    bm, bn, bk, stages = sizes
    shared_bytes = stages * round((bm + bn) * bk * product.element_bytes)
    accumulator = bm * bn * _ACCUMULATOR_BYTES
    excess = []
    if shared_bytes > capability.shared_per_block_optin_bytes:
        excess.append(f"{shared_bytes:,} B of slices, a block has {capability.shared_per_block_optin_bytes:,}")
    if accumulator > capability.regs_per_sm * 4:
        excess.append(f"an accumulator of {accumulator:,} B, an SM's registers hold {capability.regs_per_sm * 4:,}")
    if excess or threads is None:
        return tuple(excess)
    wanted = bm * bn // threads + _OVERHEAD_REGISTERS
    if threads > capability.max_threads_per_block:
        return (f"{threads:,} threads, a block has {capability.max_threads_per_block:,}",)
    if wanted > capability.max_regs_per_thread:
        return (f"{wanted} registers a thread, so that they spill: a thread has {capability.max_regs_per_thread}",)
    if -(-wanted // 8) * 8 * threads > capability.regs_per_sm:
        return (f"{wanted * threads:,} registers, an SM has {capability.regs_per_sm:,}",)
    return ()


def count_dram_bytes(product: Product, tile: Tile) -> float:
    """What DRAM moves: A, B and C once, where the L2 holds A and B; else what blocks that start together do not share.

    As many blocks as there are SMs start together and go through K in step, so that what they share is read once; later
    ones have drifted apart. That is near the three block orders that were measured in 4096 x 4096 tiles of 64 (2.04 GB
    row by row, 0.67 GB in groups of eight rows) and 128 (0.34 GB), of which it makes 2.15, 0.80 and 0.59.
    """
    element = product.element_bytes
    result = product.m * product.n * min(4.0, max(2.0, element))
    inputs = (product.m + product.n) * product.k * element
    if inputs <= L2_KEEPS * product.device.l2_bytes:
        return inputs + result
    rows, columns = -(-product.m // tile.bm), -(-product.n // tile.bn)
    together = min(product.device.sm_count, rows * columns)
    group = min(tile.group_rows, rows)
    if together >= group * columns:
        band, across = together / columns, float(columns)
    else:
        band, across = float(group), together / group
    shared = (band * tile.bm + across * tile.bn) * product.k * element
    return max(inputs, rows * columns / together * shared) + result * (2 * tile.split - 1)


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


def _find_boundaries(product: Product, tile: Tile, dram_bytes: float) -> tuple[Boundary, ...]:
    element, peak = product.element_bytes, product.dtype.peak

    def of_tile(rows: float, columns: float) -> float:
        return 2 / ((1 / rows + 1 / columns) * element)

    held = _find_register_tile(product, tile)
    return (
        Boundary("shared", of_tile(*held), product.roofline.ridge(peak, Level.L1)),
        Boundary("l2", of_tile(tile.bm, tile.bn), product.roofline.ridge(peak, Level.L2)),
        Boundary("dram", product.operations / dram_bytes, product.roofline.ridge(peak, Level.DRAM)),
    )


def _find_register_tile(product: Product, tile: Tile) -> tuple[int, int]:
    """What is read from shared memory once: a warp's tile; of four warps together where they issue together."""
    wide = product.uses_tensor_cores and (product.device.compute_capability or (0, 0)) >= (9, 0)
    if wide and tile.threads >= GROUP_WARPS * WARP_LANES:
        warps = tile.threads // WARP_LANES
        groups = max(1, warps // GROUP_WARPS)
        return (tile.bm // groups, tile.bn) if tile.bm // groups >= 64 else (tile.bm, max(8, tile.bn // groups))
    return tile.warp


def _find_arithmetic_ns(product: Product, tile: Tile) -> float:
    """Time in which an SM by itself computes one slice of one block, operands from shared memory included."""
    of_sm = product.roofline.peak(product.dtype.peak) / product.device.sm_count
    ideal_ns = 2 * tile.bm * tile.bn * tile.bk / of_sm
    if product.uses_tensor_cores:
        rows, columns = _find_register_tile(product, tile)
        intensity = 2 / ((1 / rows + 1 / columns) * product.element_bytes)
        return ideal_ns * max(1.0, product.roofline.ridge(product.dtype.peak, Level.L1) / intensity)
    warps, cycles_per_ns = tile.threads / WARP_LANES, product.device.boost_mhz / 1000
    passes = warps * tile.bk * _count_operand_passes(product, tile)
    issued = warps * tile.bk * _count_issued(product, tile) / require_capability(product.device).sub_partitions
    return max(ideal_ns, passes / cycles_per_ns, issued / cycles_per_ns)


def _count_issued(product: Product, tile: Tile) -> float:
    """Instructions of a warp for one k: FMAs, loads of operands, and its share of filling the slice."""
    rows, columns = tile.thread or (4, 4)
    a_vector = max(1.0, _VECTOR_BYTES / product.element_bytes)
    operands = -(-rows // a_vector) + -(-columns // a_vector)
    filling = 2 * (tile.bm + tile.bn) / (tile.threads * a_vector)
    return rows * columns + operands + filling


def _count_operand_passes(product: Product, tile: Tile) -> float:
    """Wavefronts with which a warp reads its operands for one k: each lane its rows of A and its columns of B."""
    rows, columns = tile.thread or (4, 4)
    across = tile.warp[1] // columns
    lane = np.arange(WARP_LANES, dtype=np.int64)
    element = round(product.element_bytes)
    passes = 0.0
    for index, count in ((lane // across, rows), (lane % across, columns)):
        width = min(_VECTOR_BYTES, count * element)
        counts = count_shared(index * width, width)
        passes += float(counts.wavefronts_hardware[0]) * count * element / width
    return passes


def _estimate(
    product: Product, tile: Tile, held: Occupancy, dram_bytes: float, slice_bytes: int
) -> tuple[float, str, float]:
    """Time, what bounds it, and bytes in flight an SM."""
    device, memory = product.device, describe_memory(product.device)
    pace = device.pace or load_device(MEASURED_DEVICE).pace
    launch_ns, turnaround_ns = (pace.launch_ns, pace.block_turnaround_ns) if pace else (0.0, 0.0)
    slices = -(-product.k // (tile.bk * tile.split))
    blocks = -(-product.m // tile.bm) * -(-product.n // tile.bn) * tile.split
    room = held.blocks_per_sm * device.sm_count
    full, last = divmod(blocks, room)
    l2_gbs = product.roofline.ceiling(Level.L2).per_ns
    dram_gbs = product.roofline.ceiling(Level.DRAM).per_ns
    inputs = slice_bytes * slices * blocks
    from_dram = min(1.0, dram_bytes / inputs) if inputs else 1.0
    latency_ns = memory.l2_hit_ns + from_dram * (memory.mean_ns - memory.l2_hit_ns)
    arithmetic_ns = _find_arithmetic_ns(product, tile)
    result_bytes = tile.bm * tile.bn * 4.0 * (1 if tile.split == 1 else 2)
    schedulers = require_capability(device).sub_partitions
    total, parts = launch_ns, {"compute": 0.0, "l2": 0.0, "latency": 0.0}
    flying = 0.0
    kinds = [(full, held.blocks_per_sm, device.sm_count)] if full else []
    kinds += [(1, -(-last // device.sm_count), min(last, device.sm_count))] if last else []
    for times, resident, sms in kinds:
        of_sm = min(l2_gbs / sms, _L2_BYTES_A_CYCLE * device.boost_mhz / 1000)
        moving_ns = slice_bytes / of_sm
        waits = latency_ns + moving_ns
        # With one buffer a block loads, then computes; with more, loads of later slices are on their way meanwhile.
        alone_ns = waits + arithmetic_ns if tile.stages == 1 else max(arithmetic_ns, waits / (tile.stages - 1))
        shares = {"compute": resident * arithmetic_ns, "l2": resident * moving_ns, "latency": alone_ns}
        name = max(shares, key=lambda key: shares[key])
        # At the barrier of a slice a block starts anew, which only other blocks can cover; and as in `model.time` a
        # scheduler with few warps cannot overlap all that they wait for.
        shares[name] += memory.l1_hit_ns / resident
        if name != "latency" and not product.uses_tensor_cores:
            shares[name] += alone_ns / max(1.0, resident * tile.threads / WARP_LANES / schedulers)
        around = latency_ns + turnaround_ns + resident * result_bytes / of_sm
        parts[name] += times * slices * shares[name]
        total += times * (slices * shares[name] + around)
        flying = max(flying, min(resident * max(1, tile.stages - 1) * slice_bytes, latency_ns * of_sm + slice_bytes))
    bound = max(parts, key=lambda key: parts[key])
    dram_ns = launch_ns + dram_bytes / dram_gbs
    return (dram_ns, "dram", flying) if dram_ns > total else (total, bound, flying)
