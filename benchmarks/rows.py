"""Turns measured launches into a table of what analysing each takes: `python -m benchmarks.rows [family:name ...]`.

Without names it takes all launches of more than 70,000 threads. Each runs in a process of its own, of which the table
gives the seconds of processor time (start-up aside), the greatest memory, how sure the counts are, and whether they are
the profiler's.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from functools import cache
from typing import TYPE_CHECKING

from sectorwise.analyze import analyze
from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.files import read_launch_file
from sectorwise.machine.native.compiler import find_host
from tests.measured.compare import analyze_row, list_counted, list_measured
from tests.measured.rows import FOLDER, MOST_THREADS, Row, list_families, read_rows

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch

ROWS = (
    "gemm:k_mm_tile16",
    "gemm:k_mm_swapped",
    "gemv:k_gemv_thread_per_row_16384",
    "gemms:t_mm_tile16",
    "gemm_schedule:k_mm64_colstripe_2048",
    "gemvs:t_gemv_tpc_14336",
    "reductions:t_sum_interleaved",
    "streams:t_stencil7_512",
    "streams:t_gather_hash",
    "transposes:t_tr_pad",
)
"""The launches that `benchmarks.measure` times."""


@cache
def _read_kernels(family: str) -> dict[str, Kernel]:
    cubin = read_cubin((FOLDER / f"{family}.sm_90.cubin").read_bytes(), family)
    return {kernel.name: kernel for kernel in cubin.kernels}


def bind_row(row: str) -> BoundLaunch:
    """The measured launch of this name (`gemm:k_mm_tile16`), for the device on which it was measured."""
    family, _, name = row.partition(":")
    config = next(case for case in read_launch_file(FOLDER / f"{family}.json").cases if case.case == name)
    return bind(_read_kernels(family)[config.kernel], config, load_device("h200"))


def list_large_rows() -> list[Row]:
    """The measured launches that fill the GPU."""
    return [row for family in list_families() for row in read_rows(family) if row.threads > MOST_THREADS]


def find_row(name: str) -> Row:
    """The row of this name."""
    family, _, case = name.partition(":")
    return next(row for row in read_rows(family) if row.name == case)


def describe_row(row: Row) -> str:
    """The line of a row, by a process of its own."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        os.write(write_end, _analyze(row).encode())
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        text = file.read()
    os.waitpid(child, 0)
    return f"{row.family + ':' + row.name:42} {row.threads:12,} {text or 'ended without a result'}"


def _analyze(row: Row) -> str:
    begin = time.process_time()
    kernel = analyze_row(row)
    seconds = time.process_time() - begin
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    certainties = ", ".join(sorted({str(site.certainty) for site in kernel.sites})) or "no sites"
    equal = "equal" if list_counted(kernel) == list_measured(row) else "NOT equal"
    return f"{seconds:7.2f} {mebibytes:6} {equal:9} {certainties}"


def load_all() -> None:
    """Loads what an analysis does, so that it is not taken for a row's."""
    find_host()
    analyze(FOLDER / "transpose.sm_90.cubin", FOLDER / "transpose.json", kernel="k_tr_pad", device="h200")


def main() -> None:
    """Prints the table."""
    load_all()
    rows = [find_row(name) for name in sys.argv[1:]] or list_large_rows()
    sys.stdout.write(f"{'launch':42} {'threads':>12} {'CPU s':>7} {'MiB':>6} {'counts':9} certainty\n")
    for row in rows:
        sys.stdout.write(describe_row(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
