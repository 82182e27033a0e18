"""Turns a kernel, a launch and a device into a bound launch: constant banks, allocations and windows, all checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.device import DeviceSpec
    from sectorwise.launch.config import BufferArgument, LaunchConfig


@dataclass(frozen=True, slots=True)
class Allocation:
    """A global buffer: its first address (512-byte aligned), its size, its element type and what it holds at the start.

    Guard space on both sides belongs to no allocation. `argument` names it in reports (`argument 0`, `tab`).
    """

    base: int
    size_bytes: int
    argument: str
    buffer: BufferArgument


@dataclass(frozen=True, slots=True)
class BoundLaunch:
    """Everything the machine needs to run one launch.

    `banks` maps a constant bank to its bytes. Shared memory of a block occupies byte offsets 0 to `shared_bytes` of
    the shared window (the driver's reserved bytes included, which precede the kernel's own); generic addresses in
    `[shared_window, shared_window + 16 MiB)` and `[local_window, local_window + 16 MiB)` map to shared and local.
    """

    kernel: Kernel
    launch: LaunchConfig
    device: DeviceSpec
    banks: dict[int, bytes]
    allocations: tuple[Allocation, ...]
    shared_bytes: int
    local_bytes_per_thread: int
    shared_window: int
    local_window: int
