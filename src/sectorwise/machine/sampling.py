"""Turns blocks that nothing stands for into samples of them, and what these did into an estimate of what all do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.counting.patterns import list_distinct
from sectorwise.machine.counted import Counted, add_counted, scale_counted
from sectorwise.machine.execution import Sampling
from sectorwise.machine.places import place_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    Blocks = npt.NDArray[np.int64]
    Lengths = npt.NDArray[np.float64]

FEWEST_BLOCKS = 256
"""Fewer blocks than this all run."""

SETTLED = 0.005
"""An estimate has settled when twice the blocks move no count by more than this, as a fraction."""

WIDEST = 0.01
"""Nor is an estimate settled that may be off by more than this, as a fraction, by how much blocks differ."""

_LEAST_SPENT = 0.125
"""An estimate that has settled before so much of the work allowed is done is not believed."""

_LEAST_SHARE = 1e-3
"""Counts below this share of the greatest of their kind do not have to settle."""

_GOLDEN = (5**0.5 - 1) / 2


class Runner(Struct, frozen=True):
    """Who runs blocks: `count` runs some, `open` gives what none did.

    `sizes` [places] are the instructions of each place that is counted, `weights` [places] what issuing it costs.
    Blocks come in groups of `together` neighbours, and are first sampled `at_first` groups of a kind; where it takes
    long to begin, kinds are few (`is_coarse`).
    """

    count: Callable[[Blocks], Counted]
    open: Callable[[], Counted]
    sizes: npt.NDArray[np.int64]
    weights: npt.NDArray[np.int64]
    at_first: int
    together: int = 1
    is_coarse: bool = False


class Sampled(Struct, frozen=True):
    """What the launch is thought to do in blocks of which a sample has run."""

    counted: Counted
    sampling: Sampling


class _Stratum(Struct):
    """Groups of blocks `[groups, together]` of which those that have run, `groups[:done]`, stand for all.

    They are in an order whose every part is spread.
    """

    groups: Blocks
    counted: Counted
    done: int = 0


def split_strata(
    grid: tuple[int, int, int], blocks: Blocks, together: int = 1, *, is_coarse: bool = False
) -> list[Blocks]:
    """Groups of blocks by whether they lie first, last or between along each axis.

    Corners and edges are by themselves; where `is_coarse` all corners are, and all edges. Each is `[groups, together]`,
    of neighbours in `blocks`.
    """
    places = place_blocks(grid, blocks)
    keys = np.zeros(len(blocks), np.int64)
    for axis, count in enumerate(grid):
        ends = (places[:, axis] == 0) + 2 * (places[:, axis] == count - 1)
        keys = keys + (ends > 0) if is_coarse else 4 * keys + ends
    groups = blocks.reshape(-1, together)
    join = np.maximum if is_coarse else np.bitwise_or
    kinds = join.reduce(keys.reshape(-1, together), axis=1)
    return [groups[kinds == kind] for kind in list_distinct(kinds)]


def spread(blocks: Blocks) -> Blocks:
    """The same blocks in an order in which any number of the first are spread evenly over all, in step with nothing.

    Multiples of the golden ratio, modulo 1, are such an order of places on a line.
    """
    places = (np.arange(1, len(blocks) + 1) * _GOLDEN) % 1.0
    # Place k of the order goes to the block with the rank of the k-th number.
    ranks = np.empty(len(blocks), np.int64)
    ranks[np.argsort(places, kind="stable")] = np.arange(len(blocks))
    return blocks[ranks]


def is_little(runner: Runner, blocks: Blocks, most_work: int) -> bool:
    """Whether running all blocks is no more than `most_work`, by the mean of some that are spread over them."""
    some = np.sort(spread(blocks)[: runner.at_first])
    return _work_of(runner.count(some), runner) * len(blocks) <= most_work * len(some)


def sample_blocks(
    runner: Runner,
    grid: tuple[int, int, int],
    blocks: Blocks,
    most_work: int,
    lengths: Lengths | None,
    report: Callable[[int], None] | None,
) -> Sampled | None:
    """An estimate from some of the blocks; None where running them all is less than `most_work`, or they are few.

    Work is what issuing costs. The sample is doubled until the estimate settles when an eighth of `most_work` is done,
    or all of it is. `lengths` [all blocks] are the instructions of those that have run, None where they are not kept.
    """
    if len(blocks) < FEWEST_BLOCKS:
        return None
    kinds = split_strata(grid, blocks, runner.together, is_coarse=runner.is_coarse)
    strata = [_Stratum(spread(each), runner.open()) for each in kinds]
    target, change, error = runner.at_first, 1.0, None
    estimate = _extend(runner, strata, target)
    if _work_of(estimate, runner) <= most_work:
        return None
    while any(stratum.done < len(stratum.groups) for stratum in strata):
        spent = sum(_work_of(stratum.counted, runner) for stratum in strata)
        # Few blocks may agree by chance: those that do most of the work may not be among them yet.
        settled = change <= SETTLED and (error or 0.0) <= WIDEST and spent >= _LEAST_SPENT * most_work
        if settled or (2 * spent > most_work and target > runner.at_first):
            break
        target *= 2
        before, estimate = estimate, _extend(runner, strata, target)
        change, error = _compare(before, estimate), _estimate_error(strata, lengths)
        if report is not None:
            report(sum(stratum.done for stratum in strata) * runner.together)
    if report is not None:
        report(len(blocks))
    run = np.sort(np.concatenate([stratum.groups[: stratum.done].reshape(-1) for stratum in strata]))
    instructions = int(estimate.issued[:, 0] @ runner.sizes)
    return Sampled(estimate, Sampling(tuple(run.tolist()), len(blocks), change, instructions, error))


def _estimate_error(strata: Sequence[_Stratum], lengths: Lengths | None) -> float | None:
    """By how much all instructions are off, as a fraction, in 19 of 20 samples as large, if lengths vary as they did.

    The variance of a sum over strata of which samples without replacement ran (Cochran, Sampling Techniques, 5.3).
    """
    if lengths is None:
        return None
    total = variance = 0.0
    for stratum in strata:
        groups, run = len(stratum.groups), stratum.done
        own = lengths[stratum.groups[:run]].sum(axis=1)
        total += groups * float(own.mean())
        if run < groups:
            variance += groups**2 * (1 - run / groups) * float(own.var(ddof=1)) / run
    return 1.96 * variance**0.5 / total if total else 0.0


def _extend(runner: Runner, strata: Sequence[_Stratum], target: int) -> Counted:
    """Runs more blocks, until `target` groups of each stratum have run; gives what all are thought to do."""
    total = runner.open()
    for stratum in strata:
        more = np.sort(stratum.groups[stratum.done : target], axis=0).reshape(-1)
        if more.size:
            add_counted(stratum.counted, runner.count(more))
            stratum.done = min(target, len(stratum.groups))
        add_counted(total, scale_counted(stratum.counted, len(stratum.groups), stratum.done))
    return total


def _work_of(counted: Counted, runner: Runner) -> int:
    return int(counted.issued[:, 0] @ runner.weights)


def _compare(before: Counted, after: Counted) -> float:
    """The greatest change of a count, as a fraction; of counts that matter."""
    change = 0.0
    indices = sorted(after.counters)
    for old, new in zip(_list_counts(before, indices), _list_counts(after, indices), strict=True):
        scale = np.maximum(new, _LEAST_SHARE * new.max(initial=0.0))
        change = max(change, float(np.max(np.abs(new - old) / np.maximum(scale, 1.0), initial=0.0)))
    return change


def _list_counts(counted: Counted, indices: Sequence[int]) -> list[npt.NDArray[np.float64]]:
    """Counts by kind: how often places were issued, then each of the sums of these sites."""
    found = counted.counters
    sums = np.array([found[index].sums if index in found else np.zeros(9) for index in indices], np.float64)
    issued = counted.issued[:, 0].astype(np.float64)
    return [issued, *sums.T] if sums.size else [issued]
