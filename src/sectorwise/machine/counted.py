"""Turns what some blocks of a launch did into sums of them, and into what as many others are thought to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.machine.copy_sums import CopyCounter, merge_copies, scale_copies
from sectorwise.machine.site_sums import merge_counter, scale_counter
from sectorwise.machine.sites import SiteCounter

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Counted(Struct, frozen=True):
    """What some blocks did: counters of memory sites, and how many warps and lanes issued each place, `[places, 2]`.

    Places are basic blocks, or instructions. `bulk` is as in `batch.Tally`.
    """

    counters: dict[int, SiteCounter]
    issued: npt.NDArray[np.int64]
    bulk: dict[int, CopyCounter] = field(default_factory=dict)


def add_counted(total: Counted, more: Counted) -> None:
    """Adds what other blocks did."""
    total.issued[:] += more.issued
    for index, counter in more.counters.items():
        known = total.counters.get(index)
        if known is None:
            known = total.counters[index] = SiteCounter(index, counter.access)
        merge_counter(known, counter)
    for index, copies in more.bulk.items():
        merge_copies(total.bulk.setdefault(index, CopyCounter()), copies)


def scale_counted(counted: Counted, of: int, run: int) -> Counted:
    """What `of` blocks do, from what `run` of them did."""
    issued = counted.issued // run * of + (counted.issued % run * of + run // 2) // run
    bulk = {index: scale_copies(each, of, run) for index, each in counted.bulk.items()}
    return Counted({index: scale_counter(each, of, run) for index, each in counted.counters.items()}, issued, bulk)
