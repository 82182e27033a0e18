"""Turns launches that run long into what a second tier of machine code saves of them: `python -m benchmarks.tiers`."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.sources import LONG_RUNS, bind_source
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native import tiers
from sectorwise.machine.native_engine import execute_native

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch

ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Saved:
    """One line: the launch, seconds of processor time with code of the first tier alone, and with both."""

    launch: str
    one_tier_seconds: float
    two_tiers_seconds: float


def compare_tiers() -> list[Saved]:
    """Each launch, counted and then run for all of its values, from an empty cache; medians of runs in turn."""
    found = []
    for name, source in LONG_RUNS.items():
        bound = bind_source(source)
        seconds: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(ROUNDS):
            for both, taken in seconds.items():
                taken.append(_run(bound, both=both))
        found.append(Saved(name, statistics.median(seconds[False]), statistics.median(seconds[True])))
    return found


def _run(bound: BoundLaunch, *, both: bool) -> float:
    pays = tiers.is_worth_it if both else _never_pays
    with tempfile.TemporaryDirectory() as folder, patch.object(tiers, "is_worth_it", pays):
        os.environ["SECTORWISE_CACHE_DIR"] = folder
        begin = time.process_time()
        execution = execute_native(bound, ExecutionOptions(sample_above=None), assumes=True)
        for number in range(len(bound.allocations)):
            execution.read_buffer(number)
        return time.process_time() - begin


def _never_pays(tier: tiers.Tier, run_seconds: float, done: int) -> bool:
    del tier, run_seconds, done
    return False


def main() -> None:
    """Prints the table."""
    for line in compare_tiers():
        both = f"{line.two_tiers_seconds:7.2f} s with both"
        sys.stdout.write(f"{line.launch:42} {line.one_tier_seconds:7.2f} s with one tier {both}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
