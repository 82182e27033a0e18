"""Turns measured launches and command lines into a table of what they take: `python -m benchmarks.measure`.

All times are medians of processor time, user and system together, so that other work on the machine disturbs them
little; on a quiet machine with several cores what a person waits for is less, never more.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rows import FOLDER, bind_row
from benchmarks.sources import DIVERGENT, LONG, SILENT, bind_source
from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native.compiler import compile_module, find_host, restrict_host
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.plan import make_module
from sectorwise.machine.native.translate import translate
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.program import decode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.compiler import Host

ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One line: what was done, what it took, what it may take (empty: no goal)."""

    what: str
    took: str
    goal: str = ""


def measure(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Median of seconds of processor time in this process."""
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        run()
        times.append(time.process_time() - begin)
    return statistics.median(times)


def measure_command(arguments: Sequence[str], cache: str, rounds: int = ROUNDS) -> float:
    """Median of seconds of processor time that a command takes."""
    return time_command(arguments, cache, rounds)[0]


def time_command(arguments: Sequence[str], cache: str, rounds: int = ROUNDS) -> tuple[float, float]:
    """Medians of seconds that a command takes: of processor time, and by the clock."""
    times, waits = [], []
    for _ in range(rounds):
        before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        environment = {**os.environ, "SECTORWISE_CACHE_DIR": cache}
        # As installed: pip leaves byte code beside the modules.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        waits.append(time.perf_counter() - begin)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(times), statistics.median(waits)


def measure_start() -> list[Measured]:
    """What a person waits for before anything is done."""
    bare = measure_command(["-c", ""], "off")
    loaded = measure_command(["-c", "import sectorwise"], "off")
    shown = measure_command(["-m", "sectorwise", "--help"], "off")
    own = max(0.0, loaded - bare)
    return [
        Measured("`import sectorwise`, without the interpreter's own start", f"{own:.2f} s", "0.15 s"),
        Measured("`sectorwise --help`", f"{shown:.2f} s", "0.2 s"),
    ]


def measure_check() -> list[Measured]:
    """The whole command on a product of matrices in shared memory, 49 million lane-instructions."""
    cubin, launches = FOLDER / "gemm.sm_90.cubin", FOLDER / "gemm.json"
    command = ["-m", "sectorwise", "check", str(cubin), "--launches", str(launches), "--kernel", "k_mm_tile16"]
    with tempfile.TemporaryDirectory() as folder:
        # A cache that is empty is filled, which switching it off would leave out.
        colds = [time_command(command, f"{folder}/{number}", 1) for number in range(9)]
    cold = statistics.median(times[0] for times in colds), statistics.median(times[1] for times in colds)
    with tempfile.TemporaryDirectory() as folder:
        measure_command(command, folder, 1)
        warm = time_command(command, folder, 9)
    return [
        Measured("`check` of `k_mm_tile16`, with an empty cache", _show_both(cold), "0.8 s"),
        Measured("the same from the cache", _show_both(warm), "0.5 s"),
    ]


def _show_both(seconds: tuple[float, float]) -> str:
    return f"{seconds[1]:.2f} s by the clock ({seconds[0]:.2f} s of processors)"


def measure_compiling() -> list[Measured]:
    """Machine code for a long kernel, all values computed."""
    bound = bind_source(LONG)

    def build(host: Host) -> object:
        flow = find_flow(decode(bound.kernel))
        banks = {bank: len(content) for bank, content in bound.banks.items()}
        return compile_module(make_module(translate(decode(bound.kernel), flow, banks, None)), host, 0)

    what = f"machine code of {len(bound.kernel.instructions):,} SASS instructions"
    goals = ("2 s for 2,000", "4 s for 2,000")
    return [
        Measured(f"{what}{where}", f"{measure(partial(build, host), 3):.2f} s", goal)
        for (where, host), goal in zip(list_hosts().items(), goals, strict=False)
    ]


def list_hosts() -> dict[str, Host]:
    """This machine, and as one that has AVX2 alone if it has more; what to call them."""
    host = find_host()
    if host is None:
        return {}
    return {"": host} | ({", AVX2 alone": restrict_host(host)} if "+avx512f" in host.features.split(",") else {})


def measure_rates() -> list[Measured]:
    """Lane-instructions a second of one core: masks, bounds, every request counted, every value computed."""
    found = []
    kernels = {
        "k_mm_tile16": bind_row("gemm:k_mm_tile16"),
        "divergent loops": bind_source(SILENT),
        "divergent loops that store": bind_source(DIVERGENT),
    }
    for name, bound in kernels.items():
        for (where, host), goal in zip(list_hosts().items(), (500, 300), strict=False):
            lanes, seconds = measure_rate(bound, host)
            what = f"{name}: {lanes / 1e6:,.0f} million lane-instructions{where}"
            found.append(Measured(what, f"{lanes / seconds / 1e6:,.0f} M/s", f"{goal} M/s"))
    bound = bind_row("gemm:k_mm_swapped")
    lanes = int(execute_native(bound, ExecutionOptions()).lanes.sum())
    seconds = measure(lambda: numpy_engine.execute(bound, ExecutionOptions()), 1)
    found.append(Measured("the reference engine, k_mm_swapped", f"{lanes / seconds / 1e6:,.0f} M/s"))
    return found


def measure_rate(bound: BoundLaunch, host: Host, rounds: int = ROUNDS) -> tuple[int, float]:
    """Lane-instructions, and the seconds that all blocks take with all of their values, their code at hand.

    Values that no count hangs on are computed when a buffer is asked for; what takes longer is the run with values.
    """
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SECTORWISE_CACHE_DIR"] = folder
        seconds = []
        for _ in range(rounds + 1):
            begin = time.process_time()
            execution = execute_native(bound, ExecutionOptions(sample_above=None), host=host)
            middle = time.process_time()
            execution.read_buffer(0)
            seconds.append(max(middle - begin, time.process_time() - middle))
        return int(execution.lanes.sum()), statistics.median(seconds[1:])


def measure_all() -> list[Measured]:
    """All of it."""
    return [*measure_start(), *measure_check(), *measure_compiling(), *measure_rates()]


def describe_machine() -> str:
    """The processor in words."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    vectors = "AVX-512" if "avx512f" in text else "AVX2" if "avx2" in text else "no AVX2"
    host = find_host()
    vectors += f" by its flags, {host.processor} to LLVM" if host is not None else ""
    return f"{len(names) or os.cpu_count()} cores, {names[0] if names else 'unknown processor'}, {vectors}"


def main() -> None:
    """Prints the table."""
    sys.stdout.write(describe_machine() + "\n")
    for line in measure_all():
        sys.stdout.write(f"{line.what:62} {line.took:>10}  {line.goal}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
