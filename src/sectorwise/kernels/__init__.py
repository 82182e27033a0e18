"""Kernels at the limit of the memory, for arrays on a GPU: what the tool advises, in running form."""

from __future__ import annotations

from sectorwise.kernels.moving import aos_from_soa, copy, soa_from_aos, transpose

__all__ = ["aos_from_soa", "copy", "soa_from_aos", "transpose"]
