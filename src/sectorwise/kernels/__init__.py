"""Kernels at the limit of the memory, for arrays on a GPU: what the tool advises, in running form."""

from __future__ import annotations

from sectorwise.kernels.moving import aos_from_soa, copy, soa_from_aos, transpose
from sectorwise.kernels.products import gemv, gemv_fp8, gemv_int4, gemv_int8, matmul, pack_int4
from sectorwise.kernels.torch_operators import register as register_torch

__all__ = [
    "aos_from_soa",
    "copy",
    "gemv",
    "gemv_fp8",
    "gemv_int4",
    "gemv_int8",
    "matmul",
    "pack_int4",
    "register_torch",
    "soa_from_aos",
    "transpose",
]

register_torch()
