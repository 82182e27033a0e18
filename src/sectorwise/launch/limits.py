"""Turns a launch and what its kernel needs of an SM into an error, where the device could not start it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.device import require_capability
from sectorwise.launch.addresses import find_buffers
from sectorwise.launch.carets import launch_error
from sectorwise.launch.dtypes import size_of

if TYPE_CHECKING:
    from sectorwise.device import DeviceSpec
    from sectorwise.launch.config import LaunchConfig, Span

# CUDA programming guide, technical specifications per compute capability: the same for all since 3.0.
GRID_LIMITS = ((1 << 31) - 1, 65_535, 65_535)
BLOCK_LIMITS = (1024, 1024, 64)


def check_limits(
    launch: LaunchConfig,
    device: DeviceSpec,
    registers_per_thread: int,
    static_shared_bytes: int,
    max_threads_per_block: int | None,
) -> None:
    """Raise LaunchError, with what was asked for and the limit, if the device cannot hold or start this launch.

    `max_threads_per_block` is the kernel's own (`__launch_bounds__`), None if it has none.
    """
    _check_dimensions(launch, launch.grid, launch.grid_span, GRID_LIMITS, "block", "grid")
    _check_dimensions(launch, launch.block, launch.block_span, BLOCK_LIMITS, "thread", "block")
    _check_threads(launch, device, max_threads_per_block)
    _check_registers(launch, device, registers_per_thread)
    _check_shared(launch, device, static_shared_bytes)
    _check_memory(launch, device)


def _check_dimensions(
    launch: LaunchConfig,
    sizes: tuple[int, int, int],
    span: Span | None,
    limits: tuple[int, int, int],
    unit: str,
    of: str,
) -> None:
    for axis, size, limit in zip("xyz", sizes, limits, strict=True):
        if not 1 <= size <= limit:
            message = f"expected 1 to {limit:,} {unit}s along {axis} of the {of}, got {size:,}"
            raise launch_error(message, span, f"launch of {launch.kernel}")


def _check_threads(launch: LaunchConfig, device: DeviceSpec, own_limit: int | None) -> None:
    threads = launch.threads_per_block
    limit = require_capability(device).max_threads_per_block
    whose = f"{device.name} allows"
    if own_limit is not None and own_limit < limit:
        limit, whose = own_limit, "the kernel is compiled for (__launch_bounds__)"
    if threads > limit:
        message = f"the block has {threads:,} threads ({_spell(launch.block)}), more than the {limit:,} that {whose}"
        raise launch_error(message, launch.block_span, f"launch of {launch.kernel}")


def _check_registers(launch: LaunchConfig, device: DeviceSpec, registers_per_thread: int) -> None:
    """Registers come in units a warp, warps in fours in this test alone (cuda_occupancy.h of CUDA 13.0)."""
    capability = require_capability(device)
    warps = _round_up(-(-launch.threads_per_block // capability.warp_size), capability.warp_granularity)
    a_warp = _round_up(registers_per_thread * capability.warp_size, capability.reg_granularity_per_warp)
    if warps * a_warp > capability.regs_per_block:
        message = (
            f"the block needs {warps * a_warp:,} registers ({launch.threads_per_block:,} threads of "
            f"{registers_per_thread}), more than the {capability.regs_per_block:,} that {device.name} has for a block"
        )
        raise launch_error(message, launch.block_span, f"launch of {launch.kernel}")


def _check_shared(launch: LaunchConfig, device: DeviceSpec, static_bytes: int) -> None:
    dynamic_bytes = launch.dynamic_shared_bytes
    limit = require_capability(device).shared_per_block_optin_bytes
    message = None
    if dynamic_bytes < 0:
        message = f"expected 0 or more shared bytes, got {dynamic_bytes:,}"
    elif static_bytes + dynamic_bytes > limit:
        message = (
            f"the block needs {static_bytes + dynamic_bytes:,} bytes of shared memory ({static_bytes:,} static, "
            f"{dynamic_bytes:,} dynamic), more than the {limit:,} that {device.name} allows"
        )
    if message is not None:
        raise launch_error(message, launch.shared_span or launch.block_span, f"launch of {launch.kernel}")


def _check_memory(launch: LaunchConfig, device: DeviceSpec) -> None:
    sizes = [(size_of(buffer), buffer) for _, _, buffer in find_buffers(launch)]
    total_bytes = sum(size_bytes for size_bytes, _ in sizes)
    # The product's name counts in powers of ten or of two; what is surely too much is more than the latter.
    if total_bytes > device.memory_gb << 30:
        largest = max(sizes, key=lambda sized: sized[0])[1]
        message = f"the buffers take {total_bytes / 1e9:,.1f} GB, more than the {device.memory_gb} GB of {device.name}"
        raise launch_error(message, largest.span, f"launch of {launch.kernel}")


def _spell(block: tuple[int, int, int]) -> str:
    return " x ".join(str(size) for size in block)


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
