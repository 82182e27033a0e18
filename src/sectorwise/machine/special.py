"""Turns a launch's geometry into the special registers of the warps of a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.clusters import find_places

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch

    Words = npt.NDArray[np.uint32]

UNKNOWN_REASONS = {
    "SR_CLOCKLO": "the clock is not known",
    "SR_CLOCKHI": "the clock is not known",
    "SR_GLOBALTIMERLO": "the timer is not known",
    "SR_GLOBALTIMERHI": "the timer is not known",
    "SR_VIRTUALSMID": "which SM a block runs on is not known",
    "SR_SMID": "which SM a block runs on is not known",
    "SR_VIRTID": "which SM a block runs on is not known",
    "SR_WARPID": "which slot a warp occupies is not known",
    "SR_NWARPID": "how many slots an SM offers is not known",
}


def special_registers(bound: BoundLaunch, blocks: npt.NDArray[np.int64]) -> dict[str, Words]:
    """Words by printed name in blocks of these numbers, each of the smallest shape that broadcasts to `[warps, 32]`."""
    grid, block = bound.launch.grid, bound.launch.block
    warps_per_block = -(-bound.launch.threads_per_block // 32)
    thread = np.arange(warps_per_block * 32).reshape(1, warps_per_block, 32)
    linear = blocks.reshape(-1, 1, 1)
    thread_place = (thread % block[0], thread // block[0] % block[1], thread // (block[0] * block[1]))
    block_place = (linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1]))
    lane = np.arange(32).reshape(1, 1, 32)
    values: dict[str, npt.NDArray[np.int64]] = {
        "SR_LANEID": lane,
        "SRZ": np.zeros((1, 1, 1), np.int64),
        "SR_CgaCtaId": find_places(bound, linear)[1],
        # By this the offsets of a cluster's constants are moved (see `ClusterConstants`).
        "SR_CgaSize": np.zeros((1, 1, 1), np.int64),
        "SR_GRIDID": np.ones((1, 1, 1), np.int64),
        "SR_EQMASK": 1 << lane,
        "SR_LTMASK": (1 << lane) - 1,
        "SR_LEMASK": (2 << lane) - 1,
        "SR_GTMASK": 0xFFFFFFFF - ((2 << lane) - 1),
        "SR_GEMASK": 0xFFFFFFFF - ((1 << lane) - 1),
        "SR_SWINLO": np.full((1, 1, 1), bound.shared_window & 0xFFFFFFFF, np.int64),
        "SR_SWINHI": np.full((1, 1, 1), bound.shared_window >> 32, np.int64),
        "SR_LWINLO": np.full((1, 1, 1), bound.local_window & 0xFFFFFFFF, np.int64),
        "SR_LWINHI": np.full((1, 1, 1), bound.local_window >> 32, np.int64),
        "SR_TID": thread_place[0] | thread_place[1] << 16 | thread_place[2] << 26,
    }
    for axis, letter in enumerate("XYZ"):
        values[f"SR_TID.{letter}"] = thread_place[axis]
        values[f"SR_CTAID.{letter}"] = block_place[axis]
        values[f"SR_NTID.{letter}"] = np.full((1, 1, 1), block[axis], np.int64)
        values[f"SR_NCTAID.{letter}"] = np.full((1, 1, 1), grid[axis], np.int64)
    return {name: _shrink(value, len(blocks), warps_per_block) for name, value in values.items()}


def _shrink(value: npt.NDArray[np.int64], blocks: int, warps_per_block: int) -> Words:
    full = np.broadcast_to(value, (blocks, warps_per_block, value.shape[2])).reshape(blocks * warps_per_block, -1)
    words = full.astype(np.uint32)
    if (words == words[:, :1]).all():
        words = words[:, :1]
    if (words == words[:1]).all():
        words = words[:1]
    return words
