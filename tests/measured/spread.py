"""How far apart times of one launch lie: by what was measured again, and what that says of launches that were not."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

SPREAD = Path(__file__).parent / "device" / "spread.json"
"""Launches measured again and again on one afternoon (`tools/measure_spread.py`), as the rows were."""

TOGETHER = " + "
LONG_NS = 10_000
"""Shorter launches were measured again for themselves; of those that were not the relative spread is that of others."""


@cache
def read_times() -> dict[str, tuple[int, ...]]:
    """The times in ns of each launch that was measured again."""
    families = json.loads(SPREAD.read_text(encoding="utf-8"))["times_ns"].values()
    return {name: tuple(times) for family in families for name, times in family.items()}


@cache
def find_spread() -> float:
    """By what part a launch of at least `LONG_NS` was above or below the middle of its times at most."""
    long = [times for times in read_times().values() if min(times) >= LONG_NS]
    return max((max(times) - min(times)) / (max(times) + min(times)) for times in long)


def measure_range(name: str, time_ns: float) -> tuple[float, float]:
    """Between which times a launch lies that once took `time_ns`: as measured again, or as others of its length do.

    `a + b` are two launches, one after the other, that were both measured again.
    """
    if TOGETHER in name:
        ranges = [read_times()[part] for part in name.split(TOGETHER)]
        return sum(min(times) for times in ranges), sum(max(times) for times in ranges)
    times = read_times().get(name)
    if times is not None:
        return min(*times, time_ns), max(*times, time_ns)
    return time_ns * (1 - find_spread()), time_ns * (1 + find_spread())


def is_faster(one: str, one_ns: float, other: str, other_ns: float) -> bool:
    """Whether a launch is faster than another beyond their spreads; if neither is, they are equal."""
    return measure_range(one, one_ns)[1] < measure_range(other, other_ns)[0]
