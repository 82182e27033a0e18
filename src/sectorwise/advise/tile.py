"""Turns one tiling of a matrix product (block, warp and thread tile, stages) into its cost at every level of memory.

At each boundary between levels a tile has an intensity, and the device a ridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.advise.plan import L2_KEEPS
from sectorwise.advise.tile_shapes import count_registers
from sectorwise.advise.tile_time import estimate_tile, find_register_tile
from sectorwise.device import require_capability
from sectorwise.model.occupancy import occupancy
from sectorwise.model.roofline import Level
from sectorwise.model.waves import count_waves

if TYPE_CHECKING:
    from sectorwise.advise.tile_shapes import Product, Tile


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


def judge(product: Product, tile: Tile) -> TileCost:
    """What the tile costs, at each boundary and in time."""
    padding = tile.pad * (tile.bm + tile.bk) * round(product.a_bytes)
    shared_bytes = tile.stages * (product.slice_bytes(tile.bm, tile.bn, tile.bk) + padding)
    wanted = count_registers(product, (tile.bm, tile.bn), tile.threads, tile.thread)
    most = require_capability(product.device).max_regs_per_thread
    registers = min(wanted, most)
    excess = find_excess(product, (tile.bm, tile.bn, tile.bk, tile.stages), tile.threads, tile.thread)
    held = None if excess else occupancy(tile.threads, registers, shared_bytes, device=product.device)
    blocks = -(-product.m // tile.bm) * -(-product.n // tile.bn) * tile.split
    if held is not None and tile.streams:
        blocks = min(held.blocks_per_sm * product.device.sm_count, blocks * -(-product.k // tile.bk))
    waves = count_waves(blocks, held.blocks_per_sm if held else 1, product.device.sm_count)
    dram_bytes = count_dram_bytes(product, tile)
    boundaries = _find_boundaries(product, tile, dram_bytes)
    time_ns, bound, flying = (None, "fits no SM", 0.0)
    if held is not None:
        time_ns, bound, flying = estimate_tile(product, tile, held, dram_bytes)
    return TileCost(
        name=tile.name,
        tile=tile,
        time_ns=time_ns,
        tflops=product.operations / time_ns / 1000 if time_ns else 0.0,
        bound=bound,
        excess=excess,
        shared_bytes=shared_bytes,
        accumulator_bytes=tile.bm * tile.bn * product.sum_bytes,
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


def find_excess(
    product: Product,
    sizes: tuple[int, int, int, int],
    threads: int | None = None,
    thread: tuple[int, int] | None = None,
) -> tuple[str, ...]:
    """Each limit of an SM that a tile (BM, BN, BK, stages) exceeds, in words; without threads, those of any number."""
    capability = require_capability(product.device)
    bm, bn, bk, stages = sizes
    shared_bytes = stages * product.slice_bytes(bm, bn, bk)
    accumulator = bm * bn * product.sum_bytes
    excess = []
    if shared_bytes > capability.shared_per_block_optin_bytes:
        excess.append(f"{shared_bytes:,} B of slices, a block has {capability.shared_per_block_optin_bytes:,}")
    if accumulator > capability.regs_per_sm * 4:
        excess.append(f"an accumulator of {accumulator:,} B, an SM's registers hold {capability.regs_per_sm * 4:,}")
    if excess or threads is None:
        return tuple(excess)
    wanted = count_registers(product, (bm, bn), threads, thread)
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
    result = product.m * product.n * min(float(product.sum_bytes), max(2.0, product.b_bytes))
    inputs = (product.m * product.a_bytes + product.n * product.b_bytes) * product.k
    if inputs <= L2_KEEPS * product.device.l2_bytes:
        return inputs + result
    rows, columns = -(-product.m // tile.bm), -(-product.n // tile.bn)
    together = min(product.device.sm_count, rows * columns)
    group = min(tile.group_rows, rows)
    if together >= group * columns:
        band, across = together / columns, float(columns)
    else:
        band, across = float(group), together / group
    shared = (band * tile.bm * product.a_bytes + across * tile.bn * product.b_bytes) * product.k
    return max(inputs, rows * columns / together * shared) + result * (2 * tile.split - 1)


def _find_boundaries(product: Product, tile: Tile, dram_bytes: float) -> tuple[Boundary, ...]:
    held = find_register_tile(product, tile)
    return (
        Boundary("shared", product.intensity(*held), product.ridge(Level.L1)),
        Boundary("l2", product.intensity(tile.cluster * tile.bm, tile.bn), product.ridge(Level.L2)),
        Boundary("dram", product.operations / dram_bytes, product.ridge(Level.DRAM)),
    )
