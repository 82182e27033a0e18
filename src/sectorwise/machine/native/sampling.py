"""Turns blocks that nothing stands for into samples of them, and what these did into an estimate of what all do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.execution import Sampling
from sectorwise.machine.native.lookups import place_blocks
from sectorwise.machine.native.plan import Counted, add_counted, count_blocks, open_counters
from sectorwise.machine.site_sums import scale_counter

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from sectorwise.machine.native.plan import Crew
    from sectorwise.machine.program import Step

    Blocks = npt.NDArray[np.int64]

FEWEST_BLOCKS = 256
"""Fewer blocks than this all run."""

SETTLED = 0.005
"""An estimate has settled when twice the blocks move no count by more than this, as a fraction."""

_FIRST_SAMPLE = 64
_LEAST_SPENT = 0.125
"""An estimate that has settled before so much of the work allowed is done is not believed."""

_ACCESS_WORK = 100
"""A memory access takes as long as so many instructions that compute."""

_LEAST_SHARE = 1e-3
"""Counts below this share of the greatest of their kind do not have to settle."""

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the launch is thought to do in blocks of which a sample has run."""

    counted: Counted
    sampling: Sampling


@dataclass(slots=True)
class _Stratum:
    """Blocks of which those that have run, `blocks[:done]`, stand for all; in an order whose every part is spread."""

    blocks: Blocks
    counted: Counted
    done: int = 0


def split_strata(grid: tuple[int, int, int], blocks: Blocks) -> list[Blocks]:
    """Blocks by whether they lie first, last or between along each axis: corners and edges are by themselves."""
    places = place_blocks(grid, blocks)
    keys = np.zeros(len(blocks), np.int64)
    for axis, count in enumerate(grid):
        ends = (places[:, axis] == 0) + 2 * (places[:, axis] == count - 1)
        keys = 4 * keys + ends
    return [blocks[keys == key] for key in list_distinct(keys)]


def spread(blocks: Blocks) -> Blocks:
    """The same blocks in an order in which any number of the first are spread evenly over all, in step with nothing.

    Multiples of the golden ratio, modulo 1, are such an order of places on a line.
    """
    places = (np.arange(1, len(blocks) + 1) * _GOLDEN) % 1.0
    # Place k of the order goes to the block with the rank of the k-th number.
    ranks = np.empty(len(blocks), np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(len(blocks))
    return blocks[ranks]


def sample_blocks(crew: Crew, blocks: Blocks, most_work: int, report: Callable[[int], None] | None) -> Sampled | None:
    """An estimate from some of the blocks; None where running them all is less than `most_work`, or they are few.

    Work is counted as `ExecutionOptions` says. The sample is doubled until the estimate settles when an eighth of
    `most_work` is done, or all of it is.
    """
    if len(blocks) < FEWEST_BLOCKS:
        return None
    strata = [
        _Stratum(spread(each), _count_nothing(crew)) for each in split_strata(crew.tally.bound.launch.grid, blocks)
    ]
    weights = _weigh_blocks(crew)
    target, change = _FIRST_SAMPLE, 1.0
    estimate = _extend(crew, strata, target)
    if _work_of(estimate, weights) <= most_work:
        return None
    while any(stratum.done < len(stratum.blocks) for stratum in strata):
        spent = sum(_work_of(stratum.counted, weights) for stratum in strata)
        # Few blocks may agree by chance: those that do most of the work may not be among them yet.
        settled = change <= SETTLED and spent >= _LEAST_SPENT * most_work
        if settled or (2 * spent > most_work and target > _FIRST_SAMPLE):
            break
        target *= 2
        before, estimate = estimate, _extend(crew, strata, target)
        change = _compare(before, estimate)
        if report is not None:
            report(sum(stratum.done for stratum in strata))
    if report is not None:
        report(len(blocks))
    run = np.sort(np.concatenate([stratum.blocks[: stratum.done] for stratum in strata]))
    instructions = sum(
        int(warps) * (block.stop - block.start)
        for (warps, _), block in zip(estimate.issued.tolist(), crew.translation.blocks.values(), strict=True)
    )
    return Sampled(estimate, Sampling(tuple(run.tolist()), len(blocks), change, instructions))


def _count_nothing(crew: Crew) -> Counted:
    return Counted(open_counters(crew.plan, crew.translation), np.zeros((len(crew.translation.blocks), 2), np.int64))


def _extend(crew: Crew, strata: Sequence[_Stratum], target: int) -> Counted:
    """Runs more blocks, until `target` of each stratum have run; gives what all are thought to do."""
    total = _count_nothing(crew)
    for stratum in strata:
        more = np.sort(stratum.blocks[stratum.done : target])
        if more.size:
            add_counted(stratum.counted, count_blocks(crew, more))
            stratum.done += len(more)
        add_counted(total, _scale(stratum.counted, len(stratum.blocks), stratum.done))
    return total


def _scale(counted: Counted, of: int, run: int) -> Counted:
    """What `of` blocks do, from what `run` of them did."""
    issued = counted.issued // run * of + (counted.issued % run * of + run // 2) // run
    return Counted({index: scale_counter(each, of, run) for index, each in counted.counters.items()}, issued)


def _weigh_blocks(crew: Crew) -> npt.NDArray[np.int64]:
    """What running each basic block costs a warp: its instructions that compute something, and its accesses."""
    relevant = crew.plan.relevant

    def weigh(step: Step) -> int:
        if step.access is not None:
            return _ACCESS_WORK
        return int(relevant is None or step.instruction.index in relevant)

    return np.asarray([sum(map(weigh, block.all_steps)) for block in crew.translation.blocks.values()], np.int64)


def _work_of(counted: Counted, weights: npt.NDArray[np.int64]) -> int:
    return int(counted.issued[:, 0] @ weights)


def _compare(before: Counted, after: Counted) -> float:
    """The greatest change of a count, as a fraction; of counts that matter."""
    change = 0.0
    for old, new in zip(_list_counts(before), _list_counts(after), strict=True):
        scale = np.maximum(new, _LEAST_SHARE * new.max(initial=0.0))
        change = max(change, float(np.max(np.abs(new - old) / np.maximum(scale, 1.0), initial=0.0)))
    return change


def _list_counts(counted: Counted) -> list[npt.NDArray[np.float64]]:
    """Counts by kind: issues of basic blocks, then each of the sums of all sites."""
    sums = np.array([counter.sums for counter in counted.counters.values()], np.float64)
    issued = counted.issued[:, 0].astype(np.float64)
    return [issued, *sums.T] if sums.size else [issued]
