"""Turns an occupancy into what would change it: the curve over one resource, and the nearest values that matter."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sectorwise.device import load_device, require_capability
from sectorwise.errors import ArgumentError
from sectorwise.model.occupancy import Limiter, occupancy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sectorwise.model.occupancy import Occupancy


@dataclass(frozen=True, slots=True)
class Step:
    """A run of values of one resource, `first` to `last`, over which as many blocks are resident.

    Values are registers a thread, bytes of shared memory a block, or threads a block (then `warps_per_sm` is that of
    the last). At `blocks_per_sm` 0 no block can be resident.
    """

    first: int
    last: int
    blocks_per_sm: int
    warps_per_sm: int


@dataclass(frozen=True, slots=True)
class Cliffs:
    """Where one more block fits, and where one falls out, as one resource alone changes; None: nowhere.

    `resource` is `REGISTERS` (a thread) or `SHARED` (bytes a block). `gain` ends at the largest smaller value with
    more blocks, `loss` begins at the smallest larger value with fewer.
    """

    resource: Limiter
    gain: Step | None
    loss: Step | None


def trace_occupancy(at: Occupancy, resource: Limiter) -> tuple[Step, ...]:
    """The whole curve over registers (1 to 255), shared bytes (0 to a block's most) or `WARPS` (threads by warps).

    All else is as in `at`, the preferred carve-out too. Ascending, without gaps.
    """
    values = list(_list_values(at, resource))
    steps: list[Step] = []
    for first, last in values:
        blocks, warps = _count_at(at, resource, last)
        if steps and steps[-1].blocks_per_sm == blocks and resource is not Limiter.WARPS:
            steps[-1] = replace(steps[-1], last=last)
        else:
            steps.append(Step(first, last, blocks, warps))
    return tuple(steps)


def find_cliffs(at: Occupancy, resource: Limiter) -> Cliffs:
    """The nearest values of registers or shared memory at which a block fits or falls out."""
    value = at.registers_per_thread if resource is Limiter.REGISTERS else at.shared_bytes_per_block
    values = list(_list_values(at, resource))
    here = next(place for place, (first, last) in enumerate(values) if first <= value <= last)

    def count(place: int) -> int:
        return _count_at(at, resource, values[place][1])[0]

    # More of a resource never lets more blocks fit, so that halving finds where a count begins and ends.
    first = _find_first(count, count(here), here)
    after = _find_first(count, count(here) - 1, len(values), here)
    return Cliffs(
        resource=resource,
        gain=None
        if first == 0
        else _make_step(at, resource, values, _find_first(count, count(first - 1), first), first - 1),
        loss=None
        if after == len(values)
        else _make_step(at, resource, values, after, _find_first(count, count(after) - 1, len(values), after) - 1),
    )


def _find_first(count: Callable[[int], int], blocks: int, stop: int, start: int = 0) -> int:
    """The first place from `start` on, and before `stop`, with at most so many blocks; `stop` if there is none."""
    while start < stop:
        middle = (start + stop) // 2
        if count(middle) <= blocks:
            stop = middle
        else:
            start = middle + 1
    return stop


def _make_step(at: Occupancy, resource: Limiter, values: list[tuple[int, int]], begin: int, end: int) -> Step:
    return Step(values[begin][0], values[end][1], *_count_at(at, resource, values[end][1]))


def _list_values(at: Occupancy, resource: Limiter) -> Iterator[tuple[int, int]]:
    """Runs of values that the hardware rounds to the same allocation."""
    capability = require_capability(load_device(at.device))
    match resource:
        case Limiter.REGISTERS:
            for value in range(1, capability.max_regs_per_thread + 1):
                yield value, value
        case Limiter.SHARED:
            first, reserved = 0, capability.shared_reserved_per_block_bytes
            while first <= capability.shared_per_block_optin_bytes:
                unit = capability.shared_granularity_bytes
                last = -(-(first + reserved) // unit) * unit - reserved
                yield first, min(last, capability.shared_per_block_optin_bytes)
                first = last + 1
        case Limiter.WARPS:
            unit = capability.warp_size
            for last in range(unit, capability.max_threads_per_block + 1, unit):
                yield last - unit + 1, last
        case _:
            raise ArgumentError(f"occupancy has no curve over {resource}: it is a fixed limit")


def _count_at(at: Occupancy, resource: Limiter, value: int) -> tuple[int, int]:
    """Blocks and warps an SM with one resource changed; zeros where no block fits."""
    threads = value if resource is Limiter.WARPS else at.threads_per_block
    registers = value if resource is Limiter.REGISTERS else at.registers_per_thread
    shared_bytes = value if resource is Limiter.SHARED else at.shared_bytes_per_block
    try:
        found = occupancy(
            threads,
            registers,
            shared_bytes,
            device=at.device,
            barriers=at.barriers_per_block,
            preferred_carveout_pct=at.preferred_carveout_pct,
        )
    except ArgumentError:
        return 0, 0
    return found.blocks_per_sm, found.warps_per_sm
