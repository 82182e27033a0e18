"""Turns LLVM's levels of optimisation into what compiling and running cost: `python -m benchmarks.levels`.

It says whether a second tier, code that is compiled again for launches that run long, would gain anything.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from msgspec.structs import replace

from benchmarks.measure import list_hosts, measure, measure_rate
from benchmarks.rows import bind_row
from benchmarks.sources import DIVERGENT, SILENT, bind_source
from sectorwise.machine.native.compiler import compile_module
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.plan import make_module
from sectorwise.machine.native.translate import translate
from sectorwise.machine.program import decode

LEVELS = (0, 1, 2)


@dataclass(frozen=True, slots=True)
class Level:
    """One line: the kernel, the level, seconds to compile, million lane-instructions a second."""

    kernel: str
    level: int
    compile_seconds: float
    rate: float


def compare_levels() -> list[Level]:
    """The kernels of `benchmarks.measure`, all values computed, at each level."""
    kernels = {
        "k_mm_tile16": bind_row("gemm:k_mm_tile16"),
        "divergent loops": bind_source(SILENT),
        "divergent loops that store": bind_source(DIVERGENT),
    }
    found = []
    for name, bound in kernels.items():
        program = decode(bound.kernel)
        banks = {bank: len(content) for bank, content in bound.banks.items()}
        text = make_module(translate(program, find_flow(program), banks, None))
        for where, plain in list_hosts().items():
            for level in LEVELS:
                host = replace(plain, level=level)
                seconds = measure(lambda host=host, text=text: compile_module(text, host, host.level), 3)
                lanes, run_seconds = measure_rate(bound, host, 3)
                found.append(Level(name + where, level, seconds, lanes / run_seconds / 1e6))
    return found


def main() -> None:
    """Prints the table."""
    for line in compare_levels():
        sys.stdout.write(f"{line.kernel:42} O{line.level} {line.compile_seconds:6.2f} s {line.rate:8,.0f} M/s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
