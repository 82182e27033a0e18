"""Turns what memory instructions met that CUDA leaves undefined into sentences, where counts depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.taint import INEXACT, ORDERED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.machine.sites import SiteCounter

# What an instruction has met is a set of these.
COLLIDED = 1
"""Lanes of one warp stored different values to one place."""
UNWRITTEN = 2
"""A lane read shared or local memory that nothing had written."""

_SENTENCES = {
    COLLIDED: "lanes of one warp store different values to one place here, and CUDA does not say which stays: counts "
    "that hang on it are marked as dependent on the schedule",
    UNWRITTEN: "it reads shared or local memory that nothing has written, here taken as zeros: counts that hang on it "
    "are marked as assumed, or as dependent on the schedule where lanes update it",
}


def explain_encounters(counters: Mapping[int, SiteCounter]) -> list[tuple[int, str]]:
    """Instructions with what they met, of the sort that some count is in doubt for."""
    doubts = 0
    for counter in counters.values():
        doubts |= counter.doubts
    wanted = (COLLIDED if doubts & ORDERED else 0) | (UNWRITTEN if doubts & INEXACT else 0)
    return [
        (index, sentence)
        for index, counter in sorted(counters.items())
        for flag, sentence in _SENTENCES.items()
        if counter.met & wanted & flag
    ]
