"""Turns a tile that fits into how long its product takes: what a slice costs each part of an SM, slice after slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.steps import WARP_LANES, Step, load, shared
from sectorwise.device import load_device, require_capability
from sectorwise.model.bounds import PROLOGUE_NS
from sectorwise.model.latency import MEASURED_DEVICE, describe_memory
from sectorwise.model.roofline import Level

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.advise.tile_shapes import Product, Tile
    from sectorwise.model.occupancy import Occupancy

    Lanes = npt.NDArray[np.int64]

GROUP_WARPS: Final = 4
"""Warps that issue one matrix instruction together, from compute capability 9.0 on (wgmma)."""

_VECTOR_BYTES: Final = 16
_L2_BYTES_A_CYCLE: Final = 64
"""An SM's port to the L2."""

_AROUND: Final = 16
"""Instructions of a warp and slice for addresses, the loop and its barriers: 19 in `c_mm64_groups_of_8` and `c_mm128`,
13 in `k_mm_tile32`."""

_PITCH: Final = 4096


@dataclass(frozen=True, slots=True)
class Slice:
    """What one slice of one block takes of an SM by itself: of what computes and issues, and of L1's data stage."""

    compute_ns: float
    passes_ns: float

    def join(self, blocks: int, warps_per_scheduler: float) -> float:
        """Time of so many blocks' slices; of the shorter part as much shows as few warps cannot overlap.

        As in `model.time`: where a pipe moves data, 1 / warps of a scheduler.
        """
        parts = blocks * self.compute_ns, blocks * self.passes_ns
        return max(parts) + min(parts) / max(1.0, warps_per_scheduler)


def find_register_tile(product: Product, tile: Tile) -> tuple[int, int]:
    """What is read from shared memory once: a warp's tile; of four warps together where they issue together."""
    wide = product.uses_tensor_cores and (product.device.compute_capability or (0, 0)) >= (9, 0)
    if wide and tile.warps >= GROUP_WARPS:
        groups = max(1, tile.warps // GROUP_WARPS)
        return (tile.bm // groups, tile.bn) if tile.bm // groups >= 64 else (tile.bm, max(8, tile.bn // groups))
    return tile.warp


def weigh_slice(product: Product, tile: Tile) -> Slice:
    """What one slice of one block takes of an SM by itself, operands from shared memory and its filling included."""
    device = product.device
    cycles_per_ns = device.boost_mhz / 1000
    schedulers = require_capability(device).sub_partitions
    ideal_ns = 2 * tile.bm * tile.bn * tile.bk / (product.operations_per_ns / device.sm_count)
    if product.uses_tensor_cores:
        intensity = product.intensity(*find_register_tile(product, tile))
        decoded = tile.warps * tile.warp[1] * tile.bk / WARP_LANES if product.a_bytes != product.b_bytes else 0.0
        decode_ns = decoded * product.dtype.decode_instructions / schedulers / cycles_per_ns
        return Slice(max(ideal_ns * max(1.0, product.ridge(Level.L1) / intensity), decode_ns), 0.0)
    reads, fills = _read_operands(product, tile), _fill_slice(product, tile)
    rows, columns = tile.thread or (4, 4)
    issued = tile.bk * rows * columns + sum(step.times for step in (*reads, *fills)) + _AROUND
    passes = sum(step.times * (step.wavefronts + step.passes) for step in (*reads, *fills))
    return Slice(max(ideal_ns, tile.warps * issued / schedulers / cycles_per_ns), tile.warps * passes / cycles_per_ns)


def _read_operands(product: Product, tile: Tile) -> tuple[Step, Step]:
    """A warp's loads of a slice from shared memory: each lane its rows of A and its columns of B.

    Several rows of a lane lie side by side, A being turned as it is stored; of few, a vector is read along K, where
    rows that are padded leave it aligned.
    """
    rows, columns = tile.thread or (4, 4)
    element = round(product.a_bytes)
    across = tile.warp[1] // columns
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    of_b = _share_out(columns, element)
    b = shared("b", lane % across * of_b, of_b, times=tile.bk * columns * element / of_b)
    if not _is_turned(product, tile):
        of_a = element if tile.pad else min(_VECTOR_BYTES, tile.bk * element)
        return shared(
            "a", lane // across * (tile.bk + tile.pad) * element, of_a, times=rows * tile.bk * element / of_a
        ), b
    of_a = _share_out(rows, element)
    return shared("a", lane // across * of_a, of_a, times=tile.bk * rows * element / of_a), b


def _fill_slice(product: Product, tile: Tile) -> tuple[Step, ...]:
    """A warp's part of filling a slice through registers: loads, and stores to shared memory, A's turned or not."""
    columns = (tile.thread or (4, 4))[1]
    element = round(product.a_bytes)
    turned = _is_turned(product, tile)
    thread = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    of_a = _VECTOR_BYTES if turned and tile.bk * element >= _VECTOR_BYTES else element
    of_b = _share_out(columns, element) if columns > 1 else element
    a_row, a_column = _walk_rows(thread, tile.bk * element // of_a)
    b_row, b_column = _walk_rows(thread, tile.bn * element // of_b)
    a_times = tile.bm * tile.bk * element / (of_a * tile.threads)
    b_times = tile.bn * tile.bk * element / (of_b * tile.threads)
    a_load = load("a", a_row * _PITCH * element + a_column * of_a, of_a, times=a_times)
    b_load = load("b", b_row * _PITCH * element + b_column * of_b, of_b, times=b_times)
    b_store = shared("b", b_row * tile.bn * element + b_column * of_b, of_b, operation="store", times=b_times)
    if turned:
        a_place = (a_column * (of_a // element) * tile.bm + a_row) * element
        a_store = shared("a", a_place, element, operation="store", times=a_times * of_a / element)
    else:
        a_store = shared("a", a_row * tile.bk * element + a_column * of_a, of_a, operation="store", times=a_times)
    return a_load, b_load, a_store, b_store


def _is_turned(product: Product, tile: Tile) -> bool:
    rows = (tile.thread or (4, 4))[0]
    return rows * round(product.a_bytes) >= _VECTOR_BYTES


def _share_out(count: int, element: int) -> int:
    """Bytes of the widest load of so many neighbours: 16 at most, and a power of two."""
    width = min(_VECTOR_BYTES, count * element)
    return 1 << (width.bit_length() - 1)


def _walk_rows(thread: Lanes, across: int) -> tuple[Lanes, Lanes]:
    across = max(1, across)
    return thread // across, thread % across


def estimate_tile(product: Product, tile: Tile, held: Occupancy, dram_bytes: float) -> tuple[float, str, float]:
    """Time, what bounds it, and bytes in flight an SM."""
    device, memory = product.device, describe_memory(product.device)
    pace = device.pace or load_device(MEASURED_DEVICE).pace
    launch_ns, turnaround_ns = (pace.launch_ns, pace.block_turnaround_ns + PROLOGUE_NS) if pace else (0.0, 0.0)
    slice_bytes = product.slice_bytes(tile.bm, tile.bn, tile.bk)
    slices, kinds = _deal(product, tile, held)
    dram_gbs = product.roofline.ceiling(Level.DRAM).per_ns
    inputs = slice_bytes * slices * sum(times * blocks for times, _, blocks in kinds)
    from_dram = min(1.0, dram_bytes / inputs) if inputs else 1.0
    latency_ns = memory.l2_hit_ns + from_dram * (memory.mean_ns - memory.l2_hit_ns)
    weight = weigh_slice(product, tile)
    schedulers = require_capability(device).sub_partitions
    total, parts = launch_ns, {"compute": 0.0, "l1": 0.0, "l2": 0.0, "latency": 0.0}
    # A part of a tile is written, and read again by the block that adds it; stream-K has two of them a block.
    result_bytes = tile.bm * tile.bn * float(product.sum_bytes) * (3 if tile.streams else 2 if tile.split > 1 else 1)
    flying = 0.0
    for times, resident, blocks in kinds:
        l2_gbs = product.roofline.ceiling(Level.L2).per_ns
        of_sm = min(l2_gbs / min(blocks, device.sm_count), _L2_BYTES_A_CYCLE * device.boost_mhz / 1000)
        # What a cluster shares leaves the L2 once; through its port an SM gets all of it.
        port_ns = slice_bytes / (_L2_BYTES_A_CYCLE * device.boost_mhz / 1000)
        moving_ns = max(port_ns, product.slice_bytes(tile.bm, tile.bn / tile.cluster, tile.bk) / of_sm)
        waits = latency_ns + moving_ns
        own = tile.warps / schedulers
        by_itself = weight.join(1, own)
        # With one buffer a block loads, then computes; with more, loads of later slices are on their way meanwhile.
        alone_ns = waits + by_itself if tile.stages == 1 else max(by_itself, waits / (tile.stages - 1))
        busy = "l1" if weight.passes_ns > weight.compute_ns else "compute"
        shares = {busy: weight.join(resident, resident * own), "l2": resident * moving_ns, "latency": alone_ns}
        name = max(shares, key=lambda key: shares[key])
        # At the barrier of a slice a block starts anew, which only other blocks can cover; and as in `model.time` a
        # scheduler with few warps cannot overlap all that they wait for.
        shares[name] += memory.l1_hit_ns / resident
        if name != "latency" and not product.uses_tensor_cores:
            shares[name] += alone_ns / max(1.0, resident * own)
        around = latency_ns + turnaround_ns + resident * result_bytes / of_sm
        parts[name] += times * slices * shares[name]
        total += times * (slices * shares[name] + around)
        flying = max(flying, min(resident * max(1, tile.stages - 1) * slice_bytes, latency_ns * of_sm + slice_bytes))
    bound = max(parts, key=lambda key: parts[key])
    dram_ns = launch_ns + dram_bytes / dram_gbs
    return (dram_ns, "dram", flying) if dram_ns > total else (total, bound, flying)


def _deal(product: Product, tile: Tile, held: Occupancy) -> tuple[float, list[tuple[float, int, int]]]:
    """Slices of a block, and the kinds of waves: how many, blocks an SM, blocks in all."""
    room, sms = held.blocks_per_sm * product.device.sm_count, product.device.sm_count
    tiles = -(-product.m // tile.bm) * -(-product.n // tile.bn)
    slices = -(-product.k // (tile.bk * tile.split))
    if tile.streams:
        blocks = min(room, tiles * slices)
        return float(-(-tiles * slices // blocks)), [(1.0, -(-blocks // sms), blocks)]
    full, last = divmod(tiles * tile.split, room)
    kinds = [(float(full), held.blocks_per_sm, room)] if full else []
    kinds += [(1.0, -(-last // sms), last)] if last else []
    return float(slices), kinds
