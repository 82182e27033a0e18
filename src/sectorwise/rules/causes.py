"""Turns the patterns of a global memory instruction into the cause of most of the sectors beyond its ideal."""

from __future__ import annotations

from collections import Counter
from enum import Enum, auto
from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation
from sectorwise.rules.requests import find_sector_shape, find_wasteful
from sectorwise.rules.shapes import SECTOR_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.machine.execution import Pattern, Site
    from sectorwise.model.kernel_model import KernelModel

_RECORD_LIMIT_BYTES = 128
"""Neighbouring lanes within a line are taken for fields of an array of records, further ones for rows of a matrix."""


class Cause(Enum):
    """Why a request touches more sectors than its bytes need; each site is told by one of them."""

    SCATTERED = auto()
    MISALIGNED = auto()
    RECORDS = auto()
    SHORT_ROWS = auto()
    SPLIT_COPY = auto()


def find_by_cause(model: KernelModel, cause: Cause) -> Iterator[Site]:
    """Sites most of whose excess has this cause."""
    return (site for site in find_wasteful(model) if classify_site(site) is cause)


def classify_site(site: Site) -> Cause:
    """The cause of most of the sectors that a site moves in vain; scattered lanes where no pattern was kept."""
    blame: Counter[Cause] = Counter()
    for pattern in site.patterns:
        excess = pattern.sectors - pattern.sectors_ideal
        if excess > 0:
            blame[_classify_pattern(site, pattern)] += excess * pattern.times
    return blame.most_common(1)[0][0] if blame else Cause.SCATTERED


def _classify_pattern(site: Site, pattern: Pattern) -> Cause:
    shape = find_sector_shape(site, pattern)
    if site.access.operation is Operation.ASYNC_COPY and shape.touched_sectors <= pattern.sectors_ideal:
        return Cause.SPLIT_COPY
    if shape.packed_sectors <= pattern.sectors_ideal:
        return Cause.MISALIGNED
    step_bytes = abs(shape.step_bytes or 0)
    if shape.width_bytes < step_bytes < _RECORD_LIMIT_BYTES:
        return Cause.RECORDS
    sizes = {run.size_bytes for run in shape.runs}
    if shape.step_bytes is None and len(sizes) == 1 and shape.width_bytes < min(sizes) < 4 * SECTOR_BYTES:
        return Cause.SHORT_ROWS
    return Cause.SCATTERED
