"""Turns a matrix in boxes and its address into the 128 bytes that the unit which copies boxes reads: a CUtensorMap."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Final

from sectorwise.verify.driver import call

if TYPE_CHECKING:
    from sectorwise.kernels.plan import TensorMap
    from sectorwise.verify.driver import Driver

MAP_BYTES: Final = 128
_ALIGNMENT: Final = 64
"""Both of cuda.h's CUtensorMap."""

_KINDS: Final = {"u8": 0, "f16": 6, "bf16": 9}  # CU_TENSOR_MAP_DATA_TYPE_* of cuda.h
_NO_INTERLEAVE, _SWIZZLE_128B, _PROMOTE_128B, _ZEROS_OUTSIDE = 0, 3, 2, 0  # CU_TENSOR_MAP_* of cuda.h


def encode_map(driver: Driver, described: TensorMap, address: int) -> bytes:
    """The bytes of a tensor map for a matrix at an address.

    Raises:
        DeviceRunError: the driver refuses it.
    """
    memory = ctypes.create_string_buffer(MAP_BYTES + _ALIGNMENT)
    begin = -ctypes.addressof(memory) % _ALIGNMENT
    call(
        driver,
        "cuTensorMapEncodeTiled",
        ctypes.c_void_p(ctypes.addressof(memory) + begin),
        _KINDS[described.kind],
        3,
        ctypes.c_void_p(address),
        (ctypes.c_uint64 * 3)(*described.extents),
        (ctypes.c_uint64 * 2)(*described.steps_bytes),
        (ctypes.c_uint32 * 3)(*described.box, 1),
        (ctypes.c_uint32 * 3)(1, 1, 1),
        *(_NO_INTERLEAVE, _SWIZZLE_128B, _PROMOTE_128B, _ZEROS_OUTSIDE),
    )
    return memory.raw[begin : begin + MAP_BYTES]
