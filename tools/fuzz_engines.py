"""Compares the engines on generated kernels: `python -m tools.fuzz_engines --values FIRST:LAST --indices FIRST:LAST`.

`--values` takes the kernels of the device fuzzer: machine code against the reference engine, all that both give and all
that is left in memory. `--indices` takes kernels that compute indices of their blocks: what is proven of blocks that
are alike against the run of all.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.frontends.nvrtc import Program, compile_program, load_nvrtc
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native.unsupported import UnsupportedError
from tests.machine.native.agreement import list_differences
from tools.fuzz.generate import KERNELS_PER_FILE, generate
from tools.fuzz.indices import IndexKernel, generate_indices
from tools.fuzz.on_engine import DEVICE, STEP_LIMIT, TARGET, bind_fuzzed, compile_kernels, read_kernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.binding import BoundLaunch

OPTIONS = ExecutionOptions(step_limit=STEP_LIMIT, sample_above=None)


def list_values(seeds: range) -> Iterator[tuple[int, BoundLaunch]]:
    """Launches of the device fuzzer's kernels."""
    for first in range(seeds.start, seeds.stop, KERNELS_PER_FILE):
        fuzzed = [generate(seed) for seed in range(first, min(first + KERNELS_PER_FILE, seeds.stop))]
        kernels = read_kernels(compile_kernels(fuzzed)[0])
        yield from ((each.seed, bind_fuzzed(each, kernels[each.name])) for each in fuzzed)


def list_indices(seeds: range) -> Iterator[tuple[int, BoundLaunch]]:
    """Launches of kernels that compute indices."""
    for first in range(seeds.start, seeds.stop, KERNELS_PER_FILE):
        own = range(first, min(first + KERNELS_PER_FILE, seeds.stop))
        drafted = [generate_indices(seed) for seed in own]
        yield from zip(own, bind_indices(drafted), strict=True)


def bind_indices(drafted: Sequence[IndexKernel]) -> list[BoundLaunch]:
    """Kernels that compute indices, compiled in one file, with their launches."""
    text = "\n".join(each.source for each in drafted)
    options = (f"-arch={TARGET}", "-default-device", "-w")
    cubin, _ = compile_program(load_nvrtc(), Program("indices.cu", text, (), options, ()))
    kernels = {kernel.name: kernel for kernel in read_cubin(cubin, "indices.cubin").kernels}
    return [bind(kernels[each.name], parse_launch(each.launch), load_device(DEVICE)) for each in drafted]


def compare(launches: Iterator[tuple[int, BoundLaunch]], *, races: bool = False) -> tuple[int, int, int]:
    """Kernels compared, those that are for the reference engine alone, and those that differ, which it prints.

    Where threads race, what they leave in buffers is not compared.
    """
    count = left = wrong = 0
    for seed, bound in launches:
        count += 1
        try:
            differences = _compare(bound, races=races)
        except UnsupportedError:
            left += 1
            continue
        if differences:
            wrong += 1
            print(f"{bound.kernel.name}, seed {seed}: {differences[0][:300]}", flush=True)
    return count, left, wrong


def _compare(bound: BoundLaunch, *, races: bool) -> list[str]:
    """What differs; where machine code would be less sure of its counts, all but how sure it is."""
    try:
        return list_differences(bound, OPTIONS, races=races)
    except UnsupportedError:
        return list_differences(bound, OPTIONS, races=races, assumes=True)


def _read_range(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or int(first) + 1))


def main() -> int:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=_read_range, default=range(0))
    parser.add_argument("--indices", type=_read_range, default=range(0))
    given = parser.parse_args()
    bad = 0
    for name, launches in (("values", list_values(given.values)), ("indices", list_indices(given.indices))):
        count, left, wrong = compare(launches, races=name == "indices")
        print(f"{name}: {count} kernels, {left} for the reference engine alone, {wrong} differ", flush=True)
        bad += wrong
    return min(bad, 1)


if __name__ == "__main__":
    sys.exit(main())
