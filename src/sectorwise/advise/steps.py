"""Turns byte addresses of typical requests into what one warp issues, with the counts of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.counting.calculator import count_global, count_shared
from sectorwise.model.caches.lines import count_passes

if TYPE_CHECKING:
    import numpy.typing as npt

    Lanes = npt.NDArray[np.int64]

SECTOR_BYTES: Final = 32
WARP_LANES: Final = 32


@dataclass(frozen=True, slots=True)
class Step:
    """Instructions of one kind that a warp issues one after the other, `times` in a pass.

    `pipe` is the unit that executes them: fp32, int, memory. Of memory accesses the counts are those of one request,
    averaged, `passes` those of L1; `dram_share` and `l2_share` are the parts of the loads that come from there, the
    rest hits in L1. `waits` for all loads before it.
    """

    name: str
    pipe: str
    times: float = 1.0
    waits: bool = False
    is_load: bool = False
    is_store: bool = False
    is_shared: bool = False
    is_barrier: bool = False
    width_bytes: int = 0
    sectors: float = 0.0
    sectors_ideal: float = 0.0
    lines: float = 0.0
    passes: float = 0.0
    wavefronts: float = 0.0
    wavefronts_ideal: float = 0.0
    dram_share: float = 1.0
    l2_share: float = 0.0
    waiting_share: float = 0.0
    """Of `l2_share` what other blocks asked for at the same time, so that it is on its way from DRAM still."""
    pipe_cycles: float = 0.0
    """What one takes of its pipe in an SM, where lanes do not say it."""


def load(
    name: str, offsets: Lanes, width: int, *, times: float = 1.0, dram_share: float = 1.0, l2_share: float = 0.0
) -> Step:
    """Loads from global memory; `offsets` are byte addresses [n, 32] of typical requests."""
    return _access_global(name, offsets, width, times, (dram_share, l2_share), is_store=False)


def store(name: str, offsets: Lanes, width: int, *, times: float = 1.0, dram_share: float = 1.0) -> Step:
    """Stores to global memory; `offsets` are byte addresses [n, 32] of typical requests."""
    return _access_global(name, offsets, width, times, (dram_share, 1 - dram_share), is_store=True)


def shared(name: str, offsets: Lanes, width: int, *, operation: str = "load", times: float = 1.0) -> Step:
    """Accesses to shared memory; `offsets` are byte addresses [n, 32] of typical requests."""
    counts = count_shared(offsets, width, operation)
    return Step(
        name,
        "memory",
        times,
        is_load=operation.endswith("load"),
        is_store=operation.endswith("store"),
        is_shared=True,
        width_bytes=width,
        wavefronts=float(counts.wavefronts_hardware.mean()),
        wavefronts_ideal=float(counts.wavefronts_ideal.mean()),
    )


def work(name: str, times: float, *, pipe: str = "int", waits: bool = False, pipe_cycles: float = 0.0) -> Step:
    """Instructions that touch no memory; `pipe_cycles` is what one takes of an SM's pipe, 0: as its lanes say."""
    return Step(name, pipe, times, waits=waits, pipe_cycles=pipe_cycles)


def barrier() -> Step:
    """A block's warps wait for each other, and for their loads."""
    return Step("barrier", "int", waits=True, is_barrier=True)


def _access_global(
    name: str, offsets: Lanes, width: int, times: float, shares: tuple[float, float], *, is_store: bool
) -> Step:
    counts = count_global(offsets, width)
    active = np.ones(offsets.shape, dtype=np.bool_)
    return Step(
        name,
        "memory",
        times,
        is_load=not is_store,
        is_store=is_store,
        width_bytes=width,
        sectors=float(counts.sectors.mean()),
        sectors_ideal=float(counts.sectors_ideal.mean()),
        lines=float(counts.tag_requests.mean()),
        passes=float(np.minimum(counts.tag_requests, count_passes(offsets, active, width)).mean()),
        dram_share=shares[0],
        l2_share=shares[1],
    )
