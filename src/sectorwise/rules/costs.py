"""Turns sectors and passes beyond the ideal into nanoseconds, by the rates of the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.rules.shapes import SECTOR_BYTES

if TYPE_CHECKING:
    from sectorwise.model.kernel_model import KernelModel


def price_sectors(model: KernelModel, sectors: int) -> float:
    """Time in ns that so many sectors take on their way from the L2 to all SMs together.

    At the L2's measured rate; where that is not known, at that of DRAM, which is slower.
    """
    device = model.bound.device
    return sectors * SECTOR_BYTES / (device.l2_read_gbs or device.memory_bandwidth_gbs)


def price_wavefronts(model: KernelModel, wavefronts: int) -> float:
    """Time in ns of so many passes, one a cycle an SM at the boost clock, the blocks spread evenly over the SMs."""
    device = model.bound.device
    busy = min(device.sm_count, model.bound.launch.blocks_total)
    return wavefronts / busy / (device.boost_mhz / 1000)
