"""Turns the address pattern of a request into the shape that people see in it: steps, runs, scattered lanes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTOR_BYTES = 32
LANES = 32
_FEW_RUNS = 8


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes without a gap that some lanes of a request cover together, and how many lanes those are."""

    start: int
    size_bytes: int
    lanes: int


@dataclass(frozen=True, slots=True)
class Shape:
    """How the active lanes of one request lie.

    `lanes` are active; `step_bytes` is what each is from the one before, None where that differs or there is one lane.
    `runs` are in order of their addresses.
    """

    lanes: int
    width_bytes: int
    step_bytes: int | None
    runs: tuple[Run, ...]

    @property
    def useful_bytes(self) -> int:
        """Distinct bytes of all lanes."""
        return sum(run.size_bytes for run in self.runs)

    @property
    def touched_sectors(self) -> int:
        """Distinct 32-byte blocks of all lanes."""
        blocks = (
            range(run.start // SECTOR_BYTES, (run.start + run.size_bytes - 1) // SECTOR_BYTES + 1) for run in self.runs
        )
        return len({block for blocks_of_run in blocks for block in blocks_of_run})

    @property
    def packed_sectors(self) -> int:
        """Sectors that the runs would touch if each began at a multiple of 32 bytes."""
        return sum(-(-run.size_bytes // SECTOR_BYTES) for run in self.runs)


def find_shape(addresses: Sequence[int], mask: int, width_bytes: int) -> Shape:
    """The shape of a request: byte addresses of 32 lanes, bit l of `mask` set where lane l accesses."""
    active = [addresses[lane] for lane in range(LANES) if mask >> lane & 1]
    steps = {second - first for first, second in pairwise(active)}
    return Shape(
        lanes=len(active),
        width_bytes=width_bytes,
        step_bytes=steps.pop() if len(steps) == 1 else None,
        runs=_find_runs(active, width_bytes),
    )


def _find_runs(active: Sequence[int], width_bytes: int) -> tuple[Run, ...]:
    runs: list[Run] = []
    for address in sorted(active):
        last = runs[-1] if runs else None
        if last is None or address > last.start + last.size_bytes:
            runs.append(Run(address, width_bytes, 1))
        else:
            size_bytes = max(last.size_bytes, address + width_bytes - last.start)
            runs[-1] = Run(last.start, size_bytes, last.lanes + 1)
    return tuple(runs)


def describe_shape(shape: Shape) -> str:
    """In words: `lanes step 8,192 B`, `8 runs of 16 B 4,096 B apart`, `lanes in 17 scattered places`."""
    runs = shape.runs
    if shape.lanes == 1:
        return "a single lane"
    if shape.step_bytes == 0:
        return f"all {shape.lanes} lanes at one address"
    if len(runs) == 1:
        return f"{shape.lanes} lanes side by side"
    if shape.step_bytes is not None:
        return f"lanes step {shape.step_bytes:,} B"
    sizes = {run.size_bytes for run in runs}
    if len(sizes) == 1 and runs[0].size_bytes > shape.width_bytes:
        apart = {second.start - first.start for first, second in pairwise(runs)}
        distance = f"{apart.pop():,} B apart" if len(apart) == 1 else "in scattered places"
        return f"{len(runs)} runs of {runs[0].size_bytes} B {distance}"
    if len(sizes) > 1 and len(runs) <= _FEW_RUNS:
        span = "and" if len(sizes) == 2 else "to"
        return f"lanes in {len(runs)} runs of {min(sizes)} {span} {max(sizes)} B"
    return f"lanes in {_describe_places(runs)}"


def _describe_places(runs: Sequence[Run]) -> str:
    """`16 places 32 B apart`, `2 rows of 8 places 32 B apart`, or `17 scattered places`; runs are in order."""
    starts = [run.start for run in runs]
    gaps = [second - first for first, second in pairwise(starts)]
    step = min(gaps)
    ends = [number for number, gap in enumerate(gaps, 1) if gap != step]
    if not ends:
        return f"{len(starts)} places {step:,} B apart"
    sizes = {second - first for first, second in pairwise([0, *ends, len(starts)])}
    if len(sizes) == 1 and (size := sizes.pop()) > 1:
        return f"{len(starts) // size} rows of {size} places {step:,} B apart"
    return f"{len(starts)} scattered places"
