"""Measures, and writes docs/performance.md from it: `python -m benchmarks.write_page`."""

from __future__ import annotations

import datetime as dt
import os
import platform
from pathlib import Path

from benchmarks.levels import compare_levels
from benchmarks.measure import describe_machine, measure_all
from benchmarks.peers import compare_cubins, compare_transposes, list_versions
from benchmarks.rows import describe_row, list_large_rows, load_all
from benchmarks.tiers import compare_tiers

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"

TEXT = """# Performance

Measured on {today}: {machine}, Python {python}, {versions}.
`python -m benchmarks.write_page` measures all of it again and writes this page.
Times are medians of processor time (user and system, all threads and processes), where nothing else is said. The load
of the machine at the start was {load:.1f}: where others share it, it is faster alone.

## What commands and machine code take

| | measured | goal |
|---|---:|---:|
{measured}

Of `check` from the cache half goes into loading NumPy, LLVM and the package's own modules, with the byte code that an
installation has. With an empty cache NVIDIA's nvdisasm takes a quarter of a second, however little it lists; it runs on
another core while Python loads ([architecture.md](architecture.md), "The start"). "AVX2 alone" is code for the same
machine without its AVX-512; no older machine was measured. A rate is that of all active lanes, and holds all that a run
takes but compiling. In the divergent loops some 28 of 32 lanes are active; those that store make a pattern of their own
for nearly every request.

## A second tier

`python -m benchmarks.levels`: what compiling a kernel takes at LLVM's levels, and what its code then does in a second.

| kernel | level | compiling | lane-instructions |
|---|---:|---:|---:|
{levels}

Code of level 1 runs up to a quarter faster than that of level 0 and takes up to twice as long to compile; level 2 takes
twice as long again, and its code runs 6 % slower to 12 % faster than that. So code begins at level 0, and the second
tier is level 1. That is compiled beside a run which has taken longer than compiling will, if a fifth of what is left is
worth more than that.

`python -m benchmarks.tiers`: launches of which all values are asked for, which are counted and then run once more, from
an empty cache, in turn with code of the first tier alone and with both.

| launch | first tier alone | both |
|---|---:|---:|
{tiers}

Work of others moves these by some percent: in another run the divergent loops took 20.4 s and 18.5 s.

## Launches that fill a GPU

All measured launches of more than 70,000 threads, from the cubin to the analysis, each in a process of its own (its
start aside). Blocks that are proven alike run once ([architecture.md](architecture.md)); `equal` compares every memory
instruction with the profiler's counters.

| launch | threads | seconds | MiB | counts | certainty |
|---|---:|---:|---:|---|---|
{rows}

All are exact. The cubin kept of `t_softmax_rows` was compiled again after the measurement: its instructions are others
than those counted, around the same accesses.

## Beside others

One run, side by side, with the cache off. The tools answer different questions; the last column says which.

| task | tool | seconds | what it tells |
|---|---|---:|---|
{peers}

Numba's simulator runs one Python thread for each thread of the launch: launches of more than 16,384 threads are left
out, as they take minutes. cuxray reads a cubin without a launch, so it cannot know what hangs on arguments, on loaded
indices or on the block: of the naive transpose's eight accesses 0.6.0 calls four clean and four not analysable, and an
H200 counted 32 sectors a request for these. It needs NVIDIA's nvdisasm and cuobjdump.
"""


def main() -> None:
    """Measures everything, and writes the page."""
    load = os.getloadavg()[0]
    load_all()
    rows = []
    for row in list_large_rows():
        name, threads, seconds, mebibytes, *rest = describe_row(row).split(maxsplit=4)
        counts, _, certainty = rest[0].partition(" ")
        rows.append(f"| `{name}` | {threads} | {seconds} | {mebibytes} | {counts} | {certainty.strip()} |")
    measured = [f"| {line.what} | {line.took} | {line.goal} |" for line in measure_all()]
    levels = [
        f"| {line.kernel} | O{line.level} | {line.compile_seconds:.2f} s | {line.rate:,.0f} M/s |"
        for line in compare_levels()
    ]
    saved = [
        f"| {line.launch} | {line.one_tier_seconds:.1f} s | {line.two_tiers_seconds:.1f} s |"
        for line in compare_tiers()
    ]
    peers = [
        f"| {line.task} | {line.tool} | {line.took.removesuffix(' s')} | {line.tells} |"
        for line in (*compare_transposes(), *compare_cubins())
    ]
    text = TEXT.format(
        load=load,
        today=dt.datetime.now(dt.UTC).date().isoformat(),
        machine=describe_machine(),
        python=platform.python_version(),
        versions=list_versions(),
        measured="\n".join(measured),
        levels="\n".join(levels),
        tiers="\n".join(saved),
        rows="\n".join(rows),
        peers="\n".join(peers),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
