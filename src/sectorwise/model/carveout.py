"""Turns a block's needs into the split of an SM's L1 and shared memory that the driver picks for the launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    from sectorwise.device import Capability


class Carveout(Struct, frozen=True):
    """How an SM's unified memory is split while a kernel runs; `measured` is false where the rule is an assumption."""

    shared_bytes: int
    l1_bytes: int
    measured: bool


def allocate_shared(shared_bytes_per_block: int, capability: Capability) -> int:
    """Bytes of shared memory that a block takes of its SM: with the driver's own, in whole granules."""
    needed = shared_bytes_per_block + capability.shared_reserved_per_block_bytes
    return -(-needed // capability.shared_granularity_bytes) * capability.shared_granularity_bytes


def choose_carveout(
    resident_blocks: int,
    warps_per_block: int,
    shared_bytes_per_block: int,
    capability: Capability,
    *,
    preferred_pct: int | None = None,
) -> Carveout:
    """The configuration that the driver picks when `resident_blocks` fit an SM at the largest one.

    The rule is the project's own, found from launches on an H200 (`carveout_ample_bytes` names them) and exact on
    all of them. The driver takes the smallest configuration that holds the resident blocks. Where more than one is
    resident and the configuration stays within `carveout_ample_bytes`, it makes room for more than can be resident:
    twice as many, or any number if the kernel has no shared memory of its own, but never more than the SM's blocks
    less the warps of a block. Elsewhere than on 9.0 only the first half is taken, and said to be assumed.

    `preferred_pct` is what `cudaFuncAttributePreferredSharedMemoryCarveout` was set to, 0 to 100: then it is that
    share of the largest configuration, rounded up to the next one, or more if a block needs more (cuda_occupancy.h).
    """
    allocated_bytes = allocate_shared(shared_bytes_per_block, capability)
    if preferred_pct is not None:
        if not 0 <= preferred_pct <= 100:
            raise ArgumentError(f"a preferred carve-out is a percentage from 0 to 100, not {preferred_pct}")
        wanted_bytes = -(-preferred_pct * capability.carveouts_bytes[-1] // 100)
        return _split(_fit(max(wanted_bytes, allocated_bytes), capability), capability, measured=True)
    needed_bytes = _fit(resident_blocks * allocated_bytes, capability)
    ample_bytes = capability.carveout_ample_bytes
    if ample_bytes is None or resident_blocks <= 1:
        return _split(needed_bytes, capability, measured=ample_bytes is not None)
    wanted_blocks = capability.max_blocks_per_sm - warps_per_block
    if shared_bytes_per_block:
        wanted_blocks = min(wanted_blocks, 2 * resident_blocks)
    wanted_bytes = min(_fit(wanted_blocks * allocated_bytes, capability), ample_bytes)
    return _split(max(needed_bytes, wanted_bytes), capability, measured=True)


def _fit(size_bytes: int, capability: Capability) -> int:
    """The smallest configuration of at least this size, else the largest."""
    return next((c for c in capability.carveouts_bytes if c >= size_bytes), capability.carveouts_bytes[-1])


def _split(shared_bytes: int, capability: Capability, *, measured: bool) -> Carveout:
    return Carveout(shared_bytes, capability.unified_l1_shared_bytes - shared_bytes, measured)
