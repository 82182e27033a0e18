"""Turns the blocks of a launch into classes that are alike, and the run of one block of each into the counts of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.counting.request import Space
from sectorwise.machine.copy_sums import CopyCounter, merge_copies
from sectorwise.machine.likeness import find_alike
from sectorwise.machine.memory import WINDOW_BYTES, stack_bytes
from sectorwise.machine.native.session import collect, count_later, run_blocks, take_copies
from sectorwise.machine.native.watch import NEVER_GREATEST, NEVER_LEAST, make_extent
from sectorwise.machine.places import place_blocks
from sectorwise.machine.tables import Table, read_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.likeness import Axis
    from sectorwise.machine.native.alike import Alike, Strides
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.tally import Rows
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.native.watch import Watch

    Blocks = npt.NDArray[np.int64]
    Lengths = npt.NDArray[np.float64]

_TRIALS = 32
"""So many blocks are run as examples before it is asked whether that is worth it."""

_MOST_LATER = 1 << 15
"""So many patterns of cp.async are put off: examples share most of theirs, and each is dear to count."""


_WITNESSES = 64
_WITNESSES_OF_CLASS = 8
"""So many blocks at least stand for a launch, and for a class, of which some may go where others do not (`detours`)."""

_SHUFFLE = 6
"""The seed of their choice: what lies in buffers often repeats, and blocks a step apart may all be of one kind."""


class Classes(Struct, frozen=True):
    """What has run: `stop` of the context (0: all), issue counts [basic blocks, 2], blocks that nothing stands for.

    `copies` are the sums of copies of whole ranges, by instruction.
    """

    stop: int
    issued: npt.NDArray[np.int64]
    left: Blocks
    copies: dict[int, CopyCounter]


def place_columns(grid: Strides, blocks: Blocks, alike: Alike, axes: Iterable[Axis]) -> dict[Axis, Blocks]:
    """Where blocks lie along axes: steps along those of the grid, numbers of tables."""
    places = place_blocks(grid, blocks)
    columns: dict[Axis, Blocks] = {axis: places[:, axis] // max(alike.port.strides[axis], 1) for axis in range(3)}
    return columns | {axis: read_numbers(axis, blocks) for axis in axes if isinstance(axis, Table)}


def run_examples(
    session: Session,
    bound: BoundLaunch,
    translation: Translation,
    alike: Alike,
    progress: Callable[[int, int], None] | None,
    lengths: Lengths | None = None,
) -> Classes:
    """Runs one block of each class, and counts it for all of the class; gives back blocks of classes too small.

    Into `lengths` [blocks] go the warp instructions of each block.
    """
    sizes = np.array([block.stop - block.start for block in translation.blocks.values()], np.int64)
    total = bound.launch.blocks_total
    issued = np.zeros((len(translation.blocks), 2), np.int64)
    left: list[Blocks] = []
    done = examples = 0
    copies: dict[int, CopyCounter] = {}
    later: list[Rows] = []
    forms = [watch.form for watch in translation.watches]
    forms += [form for _, motion in translation.asides.values() for form in motion.forms]
    axes = {axis for form in forms for axis, _ in form}
    ways = [place for place, start in enumerate(translation.blocks) if start in alike.port.gone]
    classes = _split(bound.launch.grid, total, translation, alike)
    witnesses = max(_WITNESSES_OF_CLASS, -(-_WITNESSES // len(classes)))
    for members in classes:
        waiting = np.random.default_rng(_SHUFFLE).permutation(members) if ways else members
        while waiting.size:
            if examples >= _TRIALS and done < 2 * examples:
                left.append(waiting)
                break
            columns = place_columns(bound.launch.grid, waiting, alike, axes)
            stop, taken = _run_example(session, bound, translation, int(waiting[0]), columns)
            if ways:
                # Whether others go there is not known: several stand for a class, each for as many of it.
                taken[np.flatnonzero(taken)[-(-len(members) // witnesses) :]] = False
            if stop:
                return Classes(stop, issued, waiting, copies)
            count = int(np.count_nonzero(taken))
            counted = collect(session, count, later)
            count_later(session, later, _MOST_LATER)
            issued += counted
            for index, counter in take_copies(session, count).items():
                merge_copies(copies.setdefault(index, CopyCounter()), counter)
            if lengths is not None:
                lengths[waiting[taken]] = counted[:, 0] @ sizes / count
            waiting = waiting[~taken]
            done += count
            examples += 1
            if progress is not None:
                progress(done, total)
    count_later(session, later)
    return Classes(0, issued, np.sort(np.concatenate(left)) if left else np.zeros(0, np.int64), copies)


def _split(grid: Strides, total: int, translation: Translation, alike: Alike) -> list[Blocks]:
    """Blocks whose addresses have the same places in their periods, and which only differ along axes that may."""
    blocks = np.arange(total)
    places = place_blocks(grid, blocks)
    keys = [places[:, axis] % stride if stride else places[:, axis] for axis, stride in enumerate(alike.port.strides)]
    columns = place_columns(grid, blocks, alike, {axis for form, _ in translation.moves for axis, _ in form})
    with np.errstate(over="ignore"):
        for form, period in translation.moves:
            keys.append(sum((columns[axis] * np.int64(step) for axis, step in form), np.zeros(1, np.int64)) % period)
    keys += [read_numbers(table, blocks) for table in alike.port.splits]
    keys = [key for key in keys if (key != key[0]).any()]
    if not keys:
        return [blocks]
    _, first, inverse = np.unique(np.stack(keys, axis=1), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(inverse.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(inverse.reshape(-1)))
    members = np.split(blocks[order], ends[:-1])
    return [members[number] for number in np.argsort(first)]


def _run_example(
    session: Session, bound: BoundLaunch, translation: Translation, block: int, columns: dict[Axis, Blocks]
) -> tuple[int, npt.NDArray[np.bool_]]:
    """Runs a block, the first of those at `columns`; says which of them are like it."""
    table = session.regions["watches"].view(np.int64, 0, 2 * len(translation.watches)).reshape(-1, 2)
    table[:] = (NEVER_LEAST, NEVER_GREATEST)
    session.pending = []
    session.sights.clear()
    stop, _ = run_blocks(session, np.array([block]))
    seen = [
        (watch, int(least), int(greatest))
        for watch, (least, greatest) in zip(translation.watches, table, strict=True)
        if least <= greatest
    ]
    extents = [
        make_extent(watch, least, greatest, _find_bounds(bound, watch, least, greatest))
        for watch, least, greatest in seen
        if not watch.tabulated
    ]
    taken = find_alike(extents, columns)
    if session.sights:
        taken &= _copies_alike(session, bound, translation, columns)
    if not all(_agrees(watch, least, greatest, columns) for watch, least, greatest in seen if watch.tabulated):
        taken[:] = False
    taken[0] = True
    return stop, taken


def _copies_alike(
    session: Session, bound: BoundLaunch, translation: Translation, columns: dict[Axis, Blocks]
) -> npt.NDArray[np.bool_]:
    """Which blocks copy tiles and ranges as the first does."""
    from sectorwise.machine.native.aside_extents import find_extents, lie_alike

    motions = {index: motion for index, (_, motion) in translation.asides.items()}
    alike = find_alike(find_extents(session.sights, motions, bound), columns)
    return alike & lie_alike(session.sights, motions, columns)


def _agrees(watch: Watch, least: int, greatest: int, columns: dict[Axis, Blocks]) -> bool:
    """Whether a number was what its table says."""
    ((axis, _),) = watch.form
    return least == greatest == int(columns[axis][0])


def _find_bounds(bound: BoundLaunch, watch: Watch, least: int, greatest: int) -> tuple[int, int]:
    """How far addresses may go: within the buffer, or the window, in which all of them are."""
    for low, size in _regions(bound, watch.space):
        if low <= least and greatest + watch.width_bytes <= low + size:
            return low, low + size - watch.width_bytes
    return least, greatest


def _regions(bound: BoundLaunch, space: Space | None) -> list[tuple[int, int]]:
    local = stack_bytes(bound)
    match space:
        case Space.SHARED:
            return [(0, bound.shared_bytes)]
        case Space.LOCAL:
            return [(WINDOW_BYTES - local, local)]
        case Space.GENERIC:
            windows = [
                (bound.shared_window, bound.shared_bytes),
                (bound.local_window + WINDOW_BYTES - local, local),
            ]
            return windows + [(allocation.base, allocation.size_bytes) for allocation in bound.allocations]
        case _:
            return [(allocation.base, allocation.size_bytes) for allocation in bound.allocations]
