"""Turns a compile target into the places in constant bank 0 where the driver puts what a kernel expects to find there.

No table of the cubin has them. Each place was read off compiled probes (a kernel that stores `blockDim.x`, converts an
address, ...), and `tests/binary/test_abi.py` compiles the probes again for every target and compares.
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import replace

from sectorwise.errors import UnsupportedDeviceError

_FIRST_WITH_DESCRIPTOR = 80
_FIRST_WITH_CLUSTERS = 90
_FIRST_WITH_HIGH_CONSTANTS = 100
_FIRST = 75
_LAST = 129


class ClusterConstants(Struct, frozen=True):
    """Where a kernel finds its cluster: three words each, and the blocks of a cluster in one word.

    `block_reciprocals` are floats, 1 / blocks of a cluster, for x, y, z. From sm_100 on the offsets are relative to
    -160 * SR_CgaSize, which is taken as 0 here: no launch without clusters was seen to say otherwise.
    """

    blocks: int
    block_reciprocals: int
    clusters: int
    blocks_total: int


class DriverConstants(Struct, frozen=True):
    """Byte offsets in constant bank 0, by what the driver writes there; None: this target has no such word.

    Words of 4 bytes: `block_dimensions` and `grid_dimensions` (three each: x, y, z), `stack_pointer` (first value of
    R1), `dynamic_shared_bytes`, `reserved_shared_bytes`, `multiprocessors`, `environment` (32 words for `%envreg`).
    Words of 8 bytes: `local_window` and `shared_window` (first generic address of the windows), `constant_window`
    (generic address of bank 3), `parameter_window` (generic address of bank 0's byte `parameter_window_start`),
    `grid_number`, `descriptor` (of the global-memory accesses). `parameters` is where kernel parameters start.

    Where `shared_window` is None, a kernel takes the upper half of the window's address from SR_SWINHI, and a shared
    address of block `SR_CgaCtaId` in its cluster starts at that number << 24.
    """

    block_dimensions: int
    grid_dimensions: int
    stack_pointer: int
    dynamic_shared_bytes: int
    grid_number: int
    local_window: int
    constant_window: int
    parameter_window: int
    environment: int
    multiprocessors: int
    parameters: int
    parameter_window_start: int
    shared_window: int | None = None
    descriptor: int | None = None
    reserved_shared_bytes: int | None = None
    cluster: ClusterConstants | None = None


_SM_75 = DriverConstants(
    block_dimensions=0x0,
    grid_dimensions=0xC,
    shared_window=0x18,
    local_window=0x20,
    stack_pointer=0x28,
    dynamic_shared_bytes=0x2C,
    grid_number=0x30,
    parameter_window=0x40,
    constant_window=0x50,
    environment=0x88,
    multiprocessors=0x10C,
    parameters=0x160,
    parameter_window_start=0x0,
)

_SM_80 = replace(_SM_75, reserved_shared_bytes=0x114, descriptor=0x118)

_SM_90 = DriverConstants(
    block_dimensions=0x0,
    grid_dimensions=0xC,
    local_window=0x20,
    stack_pointer=0x28,
    dynamic_shared_bytes=0x2C,
    grid_number=0x30,
    environment=0x40,
    constant_window=0xD0,
    multiprocessors=0x10C,
    reserved_shared_bytes=0x114,
    cluster=ClusterConstants(blocks=0x144, block_reciprocals=0x150, clusters=0x15C, blocks_total=0x188),
    parameter_window=0x198,
    descriptor=0x208,
    parameters=0x210,
    parameter_window_start=0x210,
)

_SM_100 = DriverConstants(
    constant_window=0x120,
    grid_number=0x140,
    reserved_shared_bytes=0x16C,
    environment=0x250,
    cluster=ClusterConstants(blocks=0x2A0, block_reciprocals=0x2B0, clusters=0x2C0, blocks_total=0x2CC),
    dynamic_shared_bytes=0x2AC,
    multiprocessors=0x2D0,
    local_window=0x2F8,
    parameter_window=0x348,
    descriptor=0x358,
    block_dimensions=0x360,
    grid_dimensions=0x370,
    stack_pointer=0x37C,
    parameters=0x380,
    parameter_window_start=0x380,
)


def find_driver_constants(target: str) -> DriverConstants:
    """Return the places for a compile target such as `sm_90` or `sm_100a`.

    Raises:
        UnsupportedDeviceError: no probe was compiled for that target.
    """
    found = re.fullmatch(r"sm_(\d+)[af]?", target)
    number = int(found[1]) if found else 0
    if not _FIRST <= number <= _LAST:
        message = f"the constants that the driver passes to kernels are known for sm_75 to sm_121, not for {target!r}"
        raise UnsupportedDeviceError(message)
    if number >= _FIRST_WITH_HIGH_CONSTANTS:
        return _SM_100
    if number >= _FIRST_WITH_CLUSTERS:
        return _SM_90
    return _SM_80 if number >= _FIRST_WITH_DESCRIPTOR else _SM_75
