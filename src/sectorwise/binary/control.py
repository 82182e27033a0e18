"""Turns the 128 bits of an instruction into its scheduling fields."""

from __future__ import annotations

from functools import lru_cache

from sectorwise.binary.ir import Control

INSTRUCTION_BYTES = 16
_FIRST_BIT = 105


def read_control(encoding: int) -> Control:
    """Read the scheduling fields of a 128-bit instruction.

    From bit 105 up: stall cycles 4 bits, yield 1, write barrier 3, read barrier 3, wait mask 6, reuse 4 (Jia et al.,
    "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, section 2.1). Yield is active low.
    """
    return _read_fields(encoding >> _FIRST_BIT & 0x1FFFFF)


@lru_cache(maxsize=4096)
def _read_fields(bits: int) -> Control:
    return Control(
        stall_cycles=bits & 0xF,
        yield_hint=not bits >> 4 & 1,
        write_barrier=bits >> 5 & 7,
        read_barrier=bits >> 8 & 7,
        wait_mask=bits >> 11 & 0x3F,
        reuse_mask=bits >> 17 & 0xF,
    )
