"""Adds and scales what counters of one memory instruction have counted."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from sectorwise.machine.sites import SiteCounter, keep_patterns


def merge_counter(counter: SiteCounter, other: SiteCounter) -> None:
    """Adds what another counter of the same site has counted."""
    counter.executed += other.executed
    counter.lanes += other.lanes
    counter.sums += other.sums
    counter.modelled |= other.modelled
    counter.doubts |= other.doubts
    counter.unknown |= other.unknown
    counter.sampled |= other.sampled
    counter.met |= other.met
    for parts, group in groupby(other.kept.values(), lambda kept: kept.parts):
        kept = list(group)
        counts, times = np.stack([each.counts for each in kept]), np.array([each.times for each in kept])
        keep_patterns(counter, np.stack([each.key for each in kept]), parts, counts, times)
    if other.first is not None and (counter.first is None or other.first.warp < counter.first.warp):
        counter.first = other.first


def scale_counter(counter: SiteCounter, of: int, run: int) -> SiteCounter:
    """What `of` blocks count where `run` of them have counted this: rounded to the nearest."""
    scaled = SiteCounter(counter.instruction, counter.access)
    merge_counter(scaled, counter)
    scaled.sums = counter.sums // run * of + (counter.sums % run * of + run // 2) // run
    scaled.lanes = (2 * counter.lanes * of + run) // (2 * run)
    scaled.executed = (2 * counter.executed * of + run) // (2 * run)
    for kept in scaled.kept.values():
        kept.times = kept.times * of // run
    scaled.sampled = run < of
    return scaled
