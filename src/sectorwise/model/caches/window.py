"""Turns a launch into a window of its blocks whose lines are known: executed, or placed like a block that was."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, structs

from sectorwise.launch.config import Contents
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import open_tally, run_blocks
from sectorwise.model.caches.lines import MOST_LINES, SECTORS_IN_LINE, Lines, count_warps, record_lines, unite_sectors
from sectorwise.model.caches.sets import ALL_WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access

_WORDS_IN_SECTOR: Final = 8

MOST_INSTRUCTIONS: Final = 1_500_000
"""Warp instructions executed to see a window: less than a second."""

MOST_LAST_INSTRUCTIONS: Final = 4 * MOST_INSTRUCTIONS
"""Warp instructions executed to see what the last blocks leave behind."""

FILLS: Final = 1.25
"""Times the L2's size that the last blocks bring, where so many can be followed: sets fill unevenly."""

MOST_BLOCKS: Final = 4_096
"""Blocks whose place is looked up one by one where they are taken to be alike."""

FEWEST_SMS: Final = 3
"""SMs whose blocks must be executed, at least, where blocks are not alike."""

ALIKE: Final = 0.9
"""The part of a block's lines that must lie where another block says, for it to stand for all."""

MOST_DISTINCT: Final = 1_000_000

WANTED_WAVES: Final = 4

EARLY_REQUESTS: Final = 48
"""Memory requests of a warp after which a block's place is known well enough: every load of a first iteration."""


LATE_REQUESTS: Final = 4_096
"""The same for the few blocks that are followed further."""


class Window(Struct, frozen=True):
    """The first `blocks` of a launch, or its last.

    Where they were executed `lines` are theirs and `shifts` is None. Otherwise `lines` are those of one block, and
    those of block b lie `shifts[b, s]` sectors further on for the instruction that `slots` maps to s: int64
    [blocks, slots]. `issued` int64 [instructions]: how many warps of the window issued each.
    """

    blocks: int
    lines: Lines
    issued: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64] | None = None
    slots: npt.NDArray[np.int64] | None = None

    def count_lines(self) -> int:
        """Lines of all blocks together."""
        return self.lines.line.size * (1 if self.shifts is None else self.blocks)

    def measure_blocks(self) -> npt.NDArray[np.int64]:
        """Requests of the busiest warp of each block, at least one."""
        lengths = np.maximum(self.lines.positions, 1).astype(np.int64)
        return lengths if self.shifts is None else np.full(self.blocks, lengths[0])

    def count_distinct(self, instruction: int) -> int:
        """Sectors that the instruction touches in all blocks together; at most so many where that is much work."""
        lines = self.lines
        rows = np.flatnonzero(lines.instruction == instruction)
        touched = np.concatenate(
            [lines.line[rows][lines.sectors[rows] >> bit & 1 > 0] * SECTORS_IN_LINE + bit for bit in range(4)]
        )
        touched = np.unique(touched)
        if self.shifts is None or self.slots is None:
            return touched.size
        shifts = np.unique(self.shifts[:, self.slots[instruction]])
        if touched.size * shifts.size > MOST_DISTINCT:
            return touched.size * shifts.size
        return np.unique(touched[:, None] + shifts[None, :]).size

    def repeat(self, blocks_total: int, instructions: Collection[int]) -> float:
        """How often all blocks of the launch do at one place what these instructions do in the lines that are kept.

        Of blocks that lie like one of them, each at so many places, all others do it elsewhere.
        """
        if self.shifts is None or self.slots is None:
            return blocks_total / self.blocks
        seen = [i for i in np.unique(self.lines.instruction).tolist() if i in instructions]
        return blocks_total / max((np.unique(self.shifts[:, self.slots[i]]).size for i in seen), default=1)

    def count_all_distinct(self, instructions: Iterable[int]) -> int | None:
        """Sectors that these instructions touch together; None where not all lines are known."""
        lines = self.lines
        if self.shifts is not None or not lines.complete:
            return None
        return int(np.unpackbits(unite_sectors(lines, instructions)).sum())

    def gather(
        self, blocks: npt.NDArray[np.int64], keep: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]
    ) -> Lines:
        """Lines of these blocks that `keep` wants, in the order of the blocks."""
        lines = self.lines
        if self.shifts is None or self.slots is None:
            chosen = np.zeros(self.blocks, np.bool_)
            chosen[blocks] = True
            return take_rows(lines, np.flatnonzero(chosen[lines.block] & keep(lines.line)))
        alike = [
            take_rows(lines, np.flatnonzero(self.slots[lines.instruction] == slot))
            for slot in range(self.shifts.shape[1])
        ]
        # Blocks that lie alike in one array, as those of a row of tiles do, are moved and looked through once.
        moved: dict[tuple[int, int], Lines] = {}
        parts = []
        for block in blocks.tolist():
            for slot, shift in enumerate(self.shifts[block].tolist()):
                part = moved.get((slot, shift))
                if part is None:
                    part = shift_lines(alike[slot], np.full(alike[slot].line.size, shift, np.int64))
                    part = moved[slot, shift] = take_rows(part, np.flatnonzero(keep(part.line)))
                if part.line.size:
                    parts.append(structs.replace(part, block=np.full(part.line.size, block, np.int32)))
        return _join(parts, lines)


def shift_lines(lines: Lines, shifts: npt.NDArray[np.int64]) -> Lines:
    """The same requests so many sectors further on: lines part in two where the shift is no multiple of a line."""
    whole, rest = shifts >> 2, (shifts & 3).astype(np.uint8)
    if not rest.any():
        return structs.replace(lines, line=lines.line + whole)
    spread = lines.sectors.astype(np.uint16) << rest
    low, high = (spread & 15).astype(np.uint8), (spread >> 4).astype(np.uint8)
    moved_words = lines.words.astype(np.uint64) << (np.uint64(_WORDS_IN_SECTOR) * rest)
    low_words, high_words = moved_words & np.uint64(ALL_WORDS), moved_words >> np.uint64(32)
    rows = np.concatenate([np.flatnonzero(low), np.flatnonzero(high)])
    order = np.argsort(rows, kind="stable")
    moved = take_rows(lines, rows[order])
    line = np.concatenate([(lines.line + whole)[low > 0], (lines.line + whole + 1)[high > 0]])
    words = np.concatenate([low_words[low > 0], high_words[high > 0]]).astype(np.uint32)[order]
    return structs.replace(
        moved, line=line[order], sectors=np.concatenate([low[low > 0], high[high > 0]])[order], words=words
    )


def take_rows(lines: Lines, rows: npt.NDArray[np.intp]) -> Lines:
    """These of the lines, in this order."""
    return structs.replace(
        lines,
        block=lines.block[rows],
        warp=lines.warp[rows],
        position=lines.position[rows],
        instruction=lines.instruction[rows],
        line=lines.line[rows],
        sectors=lines.sectors[rows],
        words=lines.words[rows],
    )


def _join(parts: list[Lines], like: Lines) -> Lines:
    if not parts:
        return take_rows(like, np.zeros(0, np.intp))
    return structs.replace(
        like,
        block=np.concatenate([part.block for part in parts]),
        warp=np.concatenate([part.warp for part in parts]),
        position=np.concatenate([part.position for part in parts]),
        instruction=np.concatenate([part.instruction for part in parts]),
        line=np.concatenate([part.line for part in parts]),
        sectors=np.concatenate([part.sectors for part in parts]),
        words=np.concatenate([part.words for part in parts]),
    )


def open_window(
    bound: BoundLaunch, instructions: int, lines: int, blocks_per_wave: int, wanted_waves: int = WANTED_WAVES
) -> Window:
    """A window of a launch that issues so many warp instructions, which touch so many lines.

    It has at least one wave, up to `wanted_waves`, as far as they can be seen in about a second.
    Blocks that are too long for that are taken to be alike: one is executed whole, of the others only the beginning,
    which says where each of its arrays begins.
    """
    total = bound.launch.blocks_total
    wanted = min(total, wanted_waves * blocks_per_wave)
    affordable = min(MOST_INSTRUCTIONS * total // max(1, instructions), MOST_LINES * total // max(1, lines))
    if affordable >= min(wanted, blocks_per_wave):
        return observe_blocks(bound, 0, min(wanted, affordable))
    placed = _place_blocks(bound, min(wanted, MOST_BLOCKS))
    enough = FEWEST_SMS * -(-blocks_per_wave // bound.device.sm_count)
    return placed if affordable < enough or _are_alike(bound, placed) else observe_blocks(bound, 0, affordable)


def _are_alike(bound: BoundLaunch, placed: Window) -> bool:
    """Whether another block touches the lines that its place says it does, or most of them."""
    other = placed.blocks // 5
    seen = observe_blocks(bound, other, 1).lines
    forecast = placed.gather(np.array([other]), lambda line: np.ones(line.size, np.bool_))
    one, two = (np.unique(each.line << 12 | each.instruction) for each in (seen, forecast))
    return np.intersect1d(one, two).size >= ALIKE * max(1, one.size, two.size)


def observe_blocks(bound: BoundLaunch, first: int, blocks: int) -> Window:
    """The window of so many blocks from `first` on, executed; they count from 0 in it."""
    recorder = record_lines(bound, first, blocks)
    tally = open_tally(leave_noise_out(bound), ExecutionOptions(observers=(recorder,)))
    run_blocks(tally, first, blocks)
    lines = recorder.close()
    return Window(blocks, structs.replace(lines, block=(lines.block - first).astype(np.int32)), tally.issued)


def observe_last(bound: BoundLaunch, issued: int, window: Window, blocks_to_fill: float) -> Window | None:
    """The last blocks of a launch, enough to fill the L2 if these can be followed; None where the window has them all.

    Nor are blocks followed that are too long for more than a wave of them: what the last ones leave is not known then.
    """
    total = bound.launch.blocks_total
    affordable = MOST_LAST_INSTRUCTIONS * total // max(1, issued)
    blocks = min(total - window.blocks, affordable, int(np.ceil(FILLS * blocks_to_fill)))
    if blocks <= 0 or window.shifts is not None:
        return None
    return observe_blocks(bound, total - blocks, blocks)


def leave_noise_out(bound: BoundLaunch) -> BoundLaunch:
    """The launch with zeros where contents are not specified: no address may depend on them, and zeros cost nothing."""
    allocations = tuple(
        structs.replace(each, buffer=dataclasses.replace(each.buffer, contents=Contents("zeros")))
        if each.buffer.contents.kind == "noise"
        else each
        for each in bound.allocations
    )
    return structs.replace(bound, allocations=allocations)


class _Seen(Exception):  # noqa: N818 - not an error: enough of a block was seen
    """Ends the execution of some blocks."""


class _FirstPlaces(Struct):
    """An observer that keeps the first sector of each instruction of each block, and stops when warps have come far."""

    warps_per_block: int
    slots: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    requests: npt.NDArray[np.int32]
    enough: int

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: npt.NDArray[np.int64],
        active: npt.NDArray[np.bool_],
    ) -> None:
        """Keeps the lowest active lane's sector of warp 0 of each block."""
        np.add.at(self.requests, warps // self.warps_per_block, 1)
        slot = self.slots[instruction]
        # Bulk copies are one warp's work, whichever it is.
        first = (warps % self.warps_per_block == 0) | access.opcode.startswith("U")
        leading = first & active.any(axis=1)
        if slot >= 0 and leading.any():
            blocks = warps[leading] // self.warps_per_block
            lane = active[leading].argmax(axis=1)
            lines = addresses[leading][np.arange(lane.size), lane] >> 5
            blocks, kept = np.unique(blocks, return_index=True)
            unseen = self.places[blocks, slot] < 0
            self.places[blocks[unseen], slot] = lines[kept][unseen]
        here = np.unique(warps // self.warps_per_block)
        if (self.requests[here] >= self.enough * self.warps_per_block).all() and self._is_whole(here):
            raise _Seen

    def _is_whole(self, blocks: npt.NDArray[np.int64]) -> bool:
        """Whether all blocks of the batch are among those that issue now: none lags behind."""
        started = np.flatnonzero(self.requests)
        return bool(np.isin(started[self.requests[started] < self.enough * self.warps_per_block], blocks).all())


def _place_blocks(bound: BoundLaunch, blocks: int) -> Window:
    grid = bound.launch.grid
    # A block in the middle: those at the edges often do less.
    chosen = min(blocks - 1, blocks // 2 + grid[0] // 2)
    recorder = record_lines(bound, chosen, 1)
    quiet = leave_noise_out(bound)
    whole = open_tally(quiet, ExecutionOptions(observers=(recorder,)))
    run_blocks(whole, chosen, 1)
    lines = recorder.close()
    used = np.unique(lines.instruction)
    slots = np.full(len(bound.kernel.instructions), -1, np.int64)
    slots[used] = np.arange(used.size)
    step = max(1, 32768 // (32 * recorder.warps_per_block))
    runs = [(first, min(step, blocks - first)) for first in range(0, blocks, step)]
    places = _see_places(quiet, slots, runs, (blocks, used.size), EARLY_REQUESTS)
    if (places[chosen] < 0).any():
        _complete(quiet, slots, places, chosen)
    return Window(blocks, lines, whole.issued * blocks, _find_shifts(lines, places, slots, chosen), slots)


def _see_places(
    bound: BoundLaunch, slots: npt.NDArray[np.int64], runs: list[tuple[int, int]], shape: tuple[int, int], requests: int
) -> npt.NDArray[np.int64]:
    """The first sector of each slot in each block, int64 [blocks, slots], -1 where it was not come to."""
    places = np.full(shape, -1, np.int64)
    seen = _FirstPlaces(count_warps(bound), slots, places, np.zeros(shape[0], np.int32), requests)
    tally = open_tally(bound, ExecutionOptions(observers=(seen,)))
    for first, count in runs:
        try:
            run_blocks(tally, first, count)
        except _Seen:
            continue
    return places


def _complete(bound: BoundLaunch, slots: npt.NDArray[np.int64], places: npt.NDArray[np.int64], chosen: int) -> None:
    """Fill in where blocks first touch what they come to late, where that moves evenly along the axes of the grid.

    A few neighbours of the chosen block are followed further: one along each axis, and one along all of them, which
    must lie where the others say.
    """
    x, y, _ = bound.launch.grid
    strides = [(size, stride) for size, stride in ((x, 1), (y, x), (places.shape[0] // (x * y), x * y)) if size > 1]
    moved = [chosen + stride if chosen + stride < places.shape[0] else chosen - stride for _, stride in strides]
    corner = chosen + sum(other - chosen for other in moved)
    if not 0 <= corner < places.shape[0]:
        return
    late = _see_places(bound, slots, [(block, 1) for block in {chosen, corner, *moved}], places.shape, LATE_REQUESTS)
    steps = [(late[other] - late[chosen]) * (1 if other > chosen else -1) for other in moved]
    signs = [1 if other > chosen else -1 for other in moved]
    forecast = late[chosen] + sum(sign * step for sign, step in zip(signs, steps, strict=True))
    even = (late[chosen] >= 0) & (late[corner] == forecast) & (late[moved] >= 0).all(axis=0)
    blocks = np.arange(places.shape[0])
    filled = np.repeat(late[chosen][None, :], places.shape[0], axis=0)
    for (size, stride), step in zip(strides, steps, strict=True):
        filled += ((blocks // stride % size) - chosen // stride % size)[:, None] * step[None, :]
    for slot in np.flatnonzero(even & (places[chosen] < 0)):
        places[:, slot] = filled[:, slot]


def _find_shifts(
    lines: Lines, places: npt.NDArray[np.int64], slots: npt.NDArray[np.int64], chosen: int
) -> npt.NDArray[np.int64]:
    """How many sectors each block's lines lie from those of the chosen block, by instruction.

    An instruction that a block comes to late lies as far as one that touched the same lines early; if there is none it
    is taken to touch memory of its own in each block.
    """
    shifts: npt.NDArray[np.int64] = places - places[chosen]
    count = places.shape[1]
    known = [int((places[:, slot] >= 0).sum()) if places[chosen, slot] >= 0 else 0 for slot in range(count)]
    spans = {slot: _find_span(lines.line[slots[lines.instruction] == slot]) for slot in range(count)}
    for slot in range(count):
        late = np.flatnonzero((places[:, slot] < 0) | (places[chosen, slot] < 0))
        if late.size:
            first, last = spans[slot]
            alike = [
                other
                for other in range(count)
                if known[other] > known[slot] and spans[other][0] <= last and first <= spans[other][1]
            ]
            best = max(alike, key=lambda other: known[other], default=None)
            own = (late - chosen) * 4 * (last - first + 1)
            shifts[late, slot] = own if best is None else np.where(places[late, best] >= 0, shifts[late, best], own)
    return shifts


def _find_span(line: npt.NDArray[np.int64]) -> tuple[int, int]:
    return (int(line.min()), int(line.max())) if line.size else (0, 0)
