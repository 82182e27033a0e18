"""Turns measured launches into a table of how long each engine takes: `python -m benchmarks.measure [row ...]`."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.rows import ROWS, bind_row
from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native_engine import execute_native

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
REFERENCE_LANES = 200_000_000
"""Launches of more lane-instructions than this are not run by the reference engine."""


def measure(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median of wall-clock seconds."""
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure_row(row: str) -> str:
    """One line of the table: seconds with code made, with code kept, with all values; rates; the reference."""
    bound, options = bind_row(row), ExecutionOptions()
    os.environ["SECTORWISE_CACHE_DIR"] = "off"
    cold = measure(lambda: execute_native(bound, options), 3)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SECTORWISE_CACHE_DIR"] = folder
        lanes = int(execute_native(bound, options).lanes.sum())
        warm = measure(lambda: execute_native(bound, options))
        reference = "-"
        if lanes <= REFERENCE_LANES:
            reference = f"{measure(lambda: numpy_engine.execute(bound, options), 1):9.3f}"
    return f"{row:40} {lanes / 1e6:12,.1f} {cold:9.3f} {warm:9.3f} {lanes / warm / 1e6:12,.0f} {reference:>10}"


def main() -> None:
    """Prints the table."""
    head = f"{'launch':40} {'M lane-ins.':>12} {'cold s':>9} {'cached s':>9} {'M/s cached':>12} {'reference s':>10}"
    sys.stdout.write(head + "\n")
    for row in sys.argv[1:] or ROWS:
        sys.stdout.write(measure_row(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
