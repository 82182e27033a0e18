"""Turns a block's threads, registers and shared memory into how many blocks an SM holds, and what limits them."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sectorwise.device import DeviceSpec, load_device, require_capability
from sectorwise.errors import ArgumentError
from sectorwise.launch.limits import GRID_LIMITS
from sectorwise.model.carveout import allocate_shared, choose_carveout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.device import Capability


MOST_CLUSTER_BLOCKS: Final = 16
"""With `cudaFuncAttributeNonPortableClusterSizeAllowed`; 8 without."""

MOST_BLOCKS: Final = math.prod(GRID_LIMITS)
"""Of a grid."""

MOST_BARRIERS: Final = 16
"""Named barriers of a block (PTX ISA, `barrier`)."""


class Limiter(StrEnum):
    """A resource of an SM that runs out, in the order in which ties are named."""

    WARPS = "warps"
    REGISTERS = "registers"
    SHARED = "shared"
    BLOCKS = "blocks"
    BARRIERS = "barriers"


@dataclass(frozen=True, slots=True)
class Occupancy:
    """How many blocks of a kernel an SM holds at once.

    The `limit_*` are blocks an SM by each resource alone, under the profiler's definitions; None: it does not limit.
    `limit_shared` holds at `shared_config_bytes`, the configuration that the driver picks (`assumed` names it where
    the driver's rule was not measured on this architecture), `limit_shared_max_carveout` at the largest one; it is
    the latter that counts for `limiter`, since the driver picks the former to suit. `limiters` are all resources
    that allow no more than `blocks_per_sm`, `limiter` the first.

    Launches in clusters of `cluster_blocks` can hold fewer blocks: all blocks of a cluster start together on SMs of one
    GPC, and how many SMs a GPC has, and which are free, only the driver knows (`cudaOccupancyMaxActiveClusters`). What
    stands here is then an upper bound, and `assumed` names `blocks_per_sm`.
    """

    device: str
    threads_per_block: int
    registers_per_thread: int
    shared_bytes_per_block: int
    barriers_per_block: int
    shared_allocated_bytes: int
    warps_per_block: int
    limit_warps: int
    limit_registers: int
    limit_shared: int | None
    limit_shared_max_carveout: int | None
    limit_blocks: int
    limit_barriers: int | None
    shared_config_bytes: int
    l1_bytes: int
    blocks_per_sm: int
    warps_per_sm: int
    max_warps_per_sm: int
    limiters: tuple[Limiter, ...]
    cluster_blocks: int = 1
    preferred_carveout_pct: int | None = None
    assumed: tuple[str, ...] = ()

    @property
    def limiter(self) -> Limiter:
        """The resource that runs out first."""
        return self.limiters[0]

    @property
    def theoretical_pct(self) -> float:
        """Resident warps as a percentage of the warps that the SM can hold."""
        return 100 * self.warps_per_sm / self.max_warps_per_sm


def occupancy(
    threads_per_block: int,
    registers_per_thread: int,
    shared_bytes_per_block: int = 0,
    *,
    device: str | DeviceSpec = "h200",
    barriers: int = 0,
    cluster_blocks: int = 1,
    preferred_carveout_pct: int | None = None,
) -> Occupancy:
    """How many blocks of this size an SM holds at once, as `cuda_occupancy.h` of CUDA 13.0 computes it.

    `shared_bytes_per_block` is static plus dynamic, without what the driver reserves; `barriers` are the named
    barriers of a block, which limit from 9.0 on; `cluster_blocks` are the blocks of a cluster, from 9.0 on, too.
    `preferred_carveout_pct` is the launch's preferred carve-out, None for the driver's choice. A block that cannot be
    resident at all raises `ArgumentError` with each resource that it exceeds and by how much; a device without a
    compute capability raises `UnsupportedDeviceError`.
    """
    spec = load_device(device)
    capability = require_capability(spec)
    # NumPy's narrow integers would overflow below.
    threads_per_block = _to_int("threads_per_block", threads_per_block)
    registers_per_thread = _to_int("registers_per_thread", registers_per_thread)
    shared_bytes_per_block = _to_int("shared_bytes_per_block", shared_bytes_per_block)
    barriers = _to_int("barriers", barriers)
    cluster_blocks = _to_int("cluster_blocks", cluster_blocks)
    if preferred_carveout_pct is not None:
        preferred_carveout_pct = _to_int("preferred_carveout_pct", preferred_carveout_pct)
    check_block(threads_per_block, registers_per_thread, shared_bytes_per_block, device=spec, barriers=barriers)
    _check_cluster(cluster_blocks, spec, capability)
    warps_per_block = -(-threads_per_block // capability.warp_size)
    allocated_bytes = allocate_shared(shared_bytes_per_block, capability)
    limit_registers = _count_by_registers(warps_per_block, registers_per_thread, capability)
    limits = _count_limits(warps_per_block, limit_registers, allocated_bytes, barriers, capability)
    carveout = choose_carveout(
        _smallest(limits), warps_per_block, shared_bytes_per_block, capability, preferred_pct=preferred_carveout_pct
    )
    limit_shared = _count_by_shared(carveout.shared_bytes, allocated_bytes)
    # The driver's own choice always holds what the largest configuration holds; a preferred one may not.
    limits_here = limits if preferred_carveout_pct is None else limits | {Limiter.SHARED: limit_shared}
    blocks_per_sm = _smallest(limits_here)
    return Occupancy(
        device=spec.id,
        threads_per_block=threads_per_block,
        registers_per_thread=registers_per_thread,
        shared_bytes_per_block=shared_bytes_per_block,
        barriers_per_block=barriers,
        shared_allocated_bytes=allocated_bytes,
        warps_per_block=warps_per_block,
        limit_warps=capability.max_warps_per_sm // warps_per_block,
        limit_registers=limit_registers,
        limit_shared=limit_shared,
        limit_shared_max_carveout=limits[Limiter.SHARED],
        limit_blocks=capability.max_blocks_per_sm,
        limit_barriers=limits[Limiter.BARRIERS],
        shared_config_bytes=carveout.shared_bytes,
        l1_bytes=carveout.l1_bytes,
        blocks_per_sm=blocks_per_sm,
        warps_per_sm=blocks_per_sm * warps_per_block,
        max_warps_per_sm=capability.max_warps_per_sm,
        limiters=tuple(limiter for limiter, limit in limits_here.items() if limit == blocks_per_sm),
        cluster_blocks=cluster_blocks,
        preferred_carveout_pct=preferred_carveout_pct,
        assumed=(
            *(() if cluster_blocks == 1 else ("blocks_per_sm",)),
            *(() if carveout.measured else ("shared_config_bytes", "l1_bytes", "limit_shared")),
        ),
    )


def _count_limits(
    warps: int, limit_registers: int, allocated_bytes: int, barriers: int, capability: Capability
) -> dict[Limiter, int | None]:
    """How many blocks of so many warps each resource holds, at the largest carve-out; None where it does not limit."""
    return {
        Limiter.WARPS: capability.max_warps_per_sm // warps,
        Limiter.REGISTERS: limit_registers,
        Limiter.SHARED: _count_by_shared(capability.carveouts_bytes[-1], allocated_bytes),
        Limiter.BLOCKS: capability.max_blocks_per_sm,
        Limiter.BARRIERS: capability.barriers_per_sm // barriers if barriers and capability.barriers_per_sm else None,
    }


def check_block(
    threads_per_block: int, registers_per_thread: int, shared_bytes_per_block: int, *, device: DeviceSpec, barriers: int
) -> None:
    """Raise `ArgumentError` unless one block can be resident; the text has each resource exceeded, and by how much."""
    capability = require_capability(device)
    for name, value, least in (
        ("threads_per_block", threads_per_block, 1),
        ("registers_per_thread", registers_per_thread, 1),
        ("shared_bytes_per_block", shared_bytes_per_block, 0),
        ("barriers", barriers, 0),
    ):
        if _to_int(name, value) < least:
            raise ArgumentError(f"{name} is {value}; it must be at least {least}")
    excesses = list(
        _list_excesses(threads_per_block, registers_per_thread, shared_bytes_per_block, barriers, capability)
    )
    if excesses:
        block = f"a block of {threads_per_block:,} threads, {registers_per_thread} registers a thread and"
        block += f" {shared_bytes_per_block:,} bytes of shared memory"
        where = f"cannot be resident on an SM of {device.name} ({device.id})"
        raise ArgumentError("\n".join([f"{block} {where}:", *(f"  {excess}" for excess in excesses)]))


def check_grid(blocks: int, cluster_blocks: int = 1) -> int:
    """The number of blocks of a grid, as it is given; raises `ArgumentError` where no launch has such a grid.

    `cudaLaunchKernelEx` takes grids of whole clusters only (CUDA C++ Programming Guide, "Thread Block Clusters").
    """
    if not 1 <= _to_int("blocks", blocks) <= MOST_BLOCKS:
        raise ArgumentError(f"blocks is {blocks:,}; a grid has 1 to {MOST_BLOCKS:,}")
    if blocks % cluster_blocks:
        below, above = blocks // cluster_blocks * cluster_blocks, -(-blocks // cluster_blocks) * cluster_blocks
        near = f"{below:,} or {above:,}" if below else f"{above:,}"
        raise ArgumentError(
            f"{blocks:,} blocks are no whole number of clusters of {cluster_blocks}: the launch fails; "
            f"a grid of {near} would not"
        )
    return blocks


def _to_int(name: str, value: object) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise ArgumentError(f"{name} is {value!r}; it must be a whole number")


def _check_cluster(cluster_blocks: int, device: DeviceSpec, capability: Capability) -> None:
    if cluster_blocks < 1:
        raise ArgumentError(f"cluster_blocks is {cluster_blocks}; it must be at least 1")
    # Blocks of a cluster meet at barriers of the SM that came with them.
    if cluster_blocks > 1 and capability.barriers_per_sm is None:
        has = f"{device.name} ({device.id}) has compute capability {device.architecture}"
        raise ArgumentError(f"{has}; clusters of blocks begin with 9.0")
    if cluster_blocks > MOST_CLUSTER_BLOCKS:
        raise ArgumentError(f"cluster_blocks is {cluster_blocks}; a cluster has at most {MOST_CLUSTER_BLOCKS} blocks")


def _list_excesses(
    threads: int, registers: int, shared_bytes: int, barriers: int, capability: Capability
) -> Iterator[str]:
    if threads > capability.max_threads_per_block:
        most = capability.max_threads_per_block
        yield f"threads: {threads:,} asked for, a block has at most {most:,}: {threads - most:,} too many"
    if registers > capability.max_regs_per_thread:
        most = capability.max_regs_per_thread
        yield f"registers: {registers} a thread asked for, a thread has at most {most}: {registers - most} too many"
    warps = -(-threads // capability.warp_size)
    needed = _allocate_registers(registers, capability) * _round_up(warps, capability.warp_granularity)
    if threads <= capability.max_threads_per_block and needed > capability.regs_per_block:
        over = needed - capability.regs_per_block
        fitting = capability.regs_per_block // _round_up(warps, capability.warp_granularity)
        fitting = fitting // capability.reg_granularity_per_warp * capability.reg_granularity_per_warp
        fitting = min(fitting // capability.warp_size, capability.max_regs_per_thread)
        yield (
            f"registers: {needed:,} needed, an SM has {capability.regs_per_block:,}: {over:,} too many; "
            f"{fitting} a thread would fit"
        )
    if shared_bytes > capability.shared_per_block_optin_bytes:
        most = capability.shared_per_block_optin_bytes
        yield (
            f"shared memory: {shared_bytes:,} bytes asked for, a block has at most {most:,}: "
            f"{shared_bytes - most:,} too many"
        )
    if barriers > MOST_BARRIERS:
        most = MOST_BARRIERS
        yield f"barriers: {barriers} asked for, a block has at most {most}: {barriers - most} too many"


def _count_by_registers(warps_per_block: int, registers_per_thread: int, capability: Capability) -> int:
    """Blocks whose registers fit: warps are dealt to sub-partitions, each with its share of the file."""
    per_warp = _allocate_registers(registers_per_thread, capability)
    per_sub_partition = capability.regs_per_sm // capability.sub_partitions
    return per_sub_partition // per_warp * capability.sub_partitions // warps_per_block


def _allocate_registers(registers_per_thread: int, capability: Capability) -> int:
    """Registers that a warp takes, in whole units."""
    return _round_up(registers_per_thread * capability.warp_size, capability.reg_granularity_per_warp)


def _count_by_shared(config_bytes: int, allocated_bytes: int) -> int | None:
    return config_bytes // allocated_bytes if allocated_bytes else None


def _smallest(limits: dict[Limiter, int | None]) -> int:
    return min(limit for limit in limits.values() if limit is not None)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
