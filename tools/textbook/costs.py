"""Turns what several claims ask about into what this package computes of it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import sectorwise as sw

if TYPE_CHECKING:
    from sectorwise.advise.access import AccessCost
    from sectorwise.advise.gemv import Mapping
    from sectorwise.advise.ranking import Ranking
    from sectorwise.advise.records import RecordLayout
    from sectorwise.advise.transpose import TransposeWay

PARTICLE = "x:f4,y:f4,z:f4,vx:f4,vy:f4,vz:f4,m:f4,q:f4,r:f4,s:f4,t:f4,u:f4"


@cache
def reach(where: str, width: int = 4, space: str = "global", operation: str = "load") -> AccessCost:
    """What one access costs."""
    return sw.access(where, width, space=space, operation=operation)


@cache
def mappings(n: int, k: int, layout: str = "NK", dtype: str = "bf16") -> Ranking[Mapping]:
    """Mappings of a matrix-vector product on an H200."""
    return sw.advise_gemv(n, k, dtype, layout, crossovers=False)


@cache
def layouts(touch: str, pattern: str = "stream") -> Ranking[RecordLayout]:
    """Layouts of the particle for one kernel."""
    return sw.advise_records(PARTICLE, touch, pattern=pattern)


@cache
def transposes() -> Ranking[TransposeWay]:
    """Ways of transposing 8192 x 8192 floats."""
    return sw.advise_transpose(8192, 8192)


def needed_kb() -> float:
    """What keeps 95 % of an H200's bandwidth busy, an SM."""
    from sectorwise.device import load_device
    from sectorwise.model.latency import describe_memory

    device = load_device("h200")
    return describe_memory(device).needed_bytes(0.95) / device.sm_count / 1000
