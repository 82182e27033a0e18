"""Turns copies of whole ranges (UBLKCP, UBLKRED, UTMALDG and kin) into memory, and what they owe to mbarriers.

A copy is done at once: nobody may look before the barrier, or the group of copies, says so. No lane makes a request;
the sectors that they move are counted apart, and said once for each instruction.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sectorwise.binary.ir import Address, Register
from sectorwise.counting.pieces import LINE_BYTES, SECTOR_BYTES, UNIT_BYTES, count_pieces, count_spread_pieces
from sectorwise.counting.request import Space
from sectorwise.machine.arrivals import Arrivals
from sectorwise.machine.bulk_rows import (
    RANKS,
    barrier_words,
    complete,
    doubt_places,
    judge_copied,
    leave_sums_unknown,
    note_doubt,
    release,
    row_places,
    row_words,
    transact,
)
from sectorwise.machine.bulk_sums import can_reduce, find_kind, reduce_words
from sectorwise.machine.copy_counts import find_copy_counter, note_doubts, note_unknown, tell_sectors
from sectorwise.machine.copy_sums import Moved, add_moved, note_landings
from sectorwise.machine.lanes import unpack
from sectorwise.machine.mbarriers import change_words, find_words_at
from sectorwise.machine.memory import WINDOW_BYTES, Request, resolve
from sectorwise.machine.named_registers import following, name_places
from sectorwise.machine.program import register_slot
from sectorwise.machine.storage import read_words, stain_words, write_words
from sectorwise.machine.taint import UNKNOWN
from sectorwise.machine.tile_copies import copy_tile

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.memory import BatchMemory
    from sectorwise.machine.registers import Window

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Longs = npt.NDArray[np.int64]

SIZE_UNITS = 0xFFFF
"""Sizes are given in units of 16 bytes, the mask of blocks above them; so are copies aligned."""


class _Ranges(Struct, frozen=True):
    """Ranges of bytes, one for each row that issues: where to, where from, how many bytes, and what is told, [rows].

    `ways` are the letters of target and source: `S` shared memory, `G` global memory. `barrier` is None where nothing
    is told; `doubt` is what is uncertain of all these: flags of `taint`.
    """

    ways: tuple[str, ...]
    target: Longs
    source: Longs
    sizes: Longs
    barrier: Longs | None
    doubt: int


def run_bulk_copy(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """Runs a bulk copy of the warps that have `taken` lanes; all go on behind."""
    behind = instruction.index + 1
    if instruction.opcode == "UBLKPF":
        _prefetch(batch, frame, window, instruction, taken != 0)
        return behind
    if instruction.opcode.startswith("UTMA"):
        copy_tile(batch, frame, window, instruction, taken)
        return behind
    places = name_places(instruction)
    size = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if len(places) < 2 or size is None:
        because = f"{instruction.text}: this form is not known"
        batch.tally.limitations[instruction.index, because] = None
        note_unknown(batch, instruction, because)
        return behind
    ways = tuple(name for name in instruction.modifiers if name in ("S", "G"))
    doubt = doubt_places(window, ways, places, size)
    if ways not in (("S", "G"), ("G", "S"), ("S", "S")) or doubt & UNKNOWN:
        because = f"{instruction.text}: what is copied where is not known"
        batch.tally.limitations[instruction.index, because] = None
        note_unknown(batch, instruction, because)
        if ways[:1] == ("S",) and register_slot(following(places[0])) not in window.taints:
            waiting = row_words(frame, window, following(places[0]))
            release(batch, frame, instruction, taken != 0, waiting)
        return behind
    note_doubt(batch, instruction, doubt)
    packed = row_words(frame, window, size)
    sizes = (packed & SIZE_UNITS) * UNIT_BYTES
    target, source = (row_places(frame, window, way, place) for way, place in zip(ways, places, strict=True))
    barrier: Longs | None = row_words(frame, window, following(places[0])) if ways[0] == "S" else None
    note_doubts(batch, frame, instruction, doubt)
    ranges = _Ranges(ways, target, source, sizes, barrier, doubt)
    if not instruction.has("MULTICAST"):
        _count(batch, frame, instruction, ranges, taken != 0)
        _copy(batch, frame, instruction, ranges, taken != 0)
        complete(batch, frame, instruction, taken != 0, barrier, sizes)
        return behind
    targets = np.bitwise_count(packed >> 16 & 0xFFFF).astype(np.int64)
    _count(batch, frame, instruction, ranges, taken != 0, targets)
    for rank in range(RANKS):
        # The same place in the shared memory of each block that the mask names.
        issuing = (taken != 0) & (packed >> (16 + rank) & 1 != 0)
        if issuing.any() and barrier is not None:
            there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (target, barrier))
            _copy(batch, frame, instruction, replace(ranges, target=there), issuing)
            complete(batch, frame, instruction, issuing, told, sizes)
    return behind


def store_async(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """STAS [R.64], S: stores to shared memory, its own or a peer's, and tells the mbarrier in R's second word.

    Neither the profiler's source view nor its counters of the pipe know of it (tests/measured/tiles/sent.json).
    """
    place = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
    source = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if place is None or place.base is None or source is None:
        batch.tally.limitations[instruction.index, f"{instruction.text}: this form is not known"] = None
        return instruction.index + 1
    width = next((int(name) // 8 for name in instruction.modifiers if name in ("64", "128")), 4)
    target, lanes = place.base, unpack(taken)
    addresses, barrier = (window.read(register_slot(target) + k).astype(np.int64) for k in (0, 1))
    request = Request(instruction, Space.SHARED, frame.rows, frame.warps, lanes)
    pieces = resolve(batch.memory, np.broadcast_to(addresses + place.offset, lanes.shape), width, request)
    words = [np.broadcast_to(window.read(register_slot(source) + k), lanes.shape) for k in range(width // 4)]
    write_words(
        pieces, width, [word.astype(np.uint32) for word in words], lanes, frame.warps, judge_copied(batch, frame, None)
    )
    cells, valid = find_words_at(batch, frame, instruction, barrier, lanes)
    transact(batch, cells, valid, np.full(int(valid.sum()), -width, np.int64))
    return instruction.index + 1


def _count(
    batch: Batch,
    frame: Frame,
    instruction: Instruction,
    ranges: _Ranges,
    issuing: Lanes,
    targets: Longs | None = None,
) -> None:
    """Adds what ranges move, each to so many `targets` [rows] (None: one)."""
    counter = find_copy_counter(batch.tally, instruction)
    ways, sizes = ranges.ways, ranges.sizes
    loads, spread = ways[0] == "S", targets is not None
    there, here = (ranges.source, ranges.target) if loads else (ranges.target, ranges.source)
    rows = np.flatnonzero(issuing).tolist()
    for row in rows:
        reached = 1 if targets is None else int(targets[row])
        size, places = int(sizes[row]), (int(there[row]), int(here[row]))
        moved = measure_range(*places, size, reached, spread=spread) if "G" in ways else _within(size, reached)
        add_moved(counter, moved)
    if ranges.barrier is not None:
        for size in np.unique(sizes[rows]).tolist():
            those = sizes[rows] == size
            starts, told = (
                np.unique(each[rows][those] % WINDOW_BYTES).tolist() for each in (ranges.target, ranges.barrier)
            )
            note_landings(counter, starts, size, told)
    if batch.tally.options.observers and "G" in ways:
        units = [int(there[row]) + np.arange(0, int(sizes[row]), UNIT_BYTES) for row in rows]
        tell_sectors(batch, frame, instruction, rows, units)


def measure_range(there: int, here: int, size: int, targets: int, *, spread: bool = False) -> Moved:
    """What a range from `there` in global memory moves to or from `here` in the shared window of each target."""
    sectors, ideal = _count_range(there % LINE_BYTES, here % LINE_BYTES, size, spread), -(-size // SECTOR_BYTES)
    return Moved(1, targets, size, 0, targets * sectors, targets * ideal, sectors, targets * size, size)


def _within(size: int, targets: int) -> Moved:
    """What a range moves that goes from shared memory to shared memory."""
    return Moved(1, targets, size, 0, 0, 0, 0, targets * size, size)


@lru_cache(4096)
def _count_range(there: int, here: int, size: int, spread: bool) -> int:  # noqa: FBT001 - a key
    """The pieces of a range by its places in a line of global memory and in one of shared memory."""
    unit = np.arange(0, size, UNIT_BYTES)[None]
    inside = np.ones(unit.shape, np.bool_)
    if not size:
        return 0
    if spread:
        return int(count_spread_pieces(there + unit, here + unit, inside).moved.sum())
    return int(count_pieces(there + unit, here + unit, inside, loads=True).moved.sum())


def _prefetch(batch: Batch, frame: Frame, window: Window, instruction: Instruction, issuing: Lanes) -> None:
    """UBLKPF.L2 [place], size: into the L2, which no register or memory shows."""
    places = name_places(instruction)
    size = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    doubt = UNKNOWN if not places or size is None else doubt_places(window, ("G",), places[:1], size)
    if size is None or doubt & UNKNOWN:
        because = f"{instruction.text}: what is fetched is not known"
        batch.tally.limitations[instruction.index, because] = None
        note_unknown(batch, instruction, because)
        return
    note_doubts(batch, frame, instruction, doubt)
    sizes = (row_words(frame, window, size) & SIZE_UNITS) * UNIT_BYTES
    source = row_places(frame, window, "G", places[0])
    counter, rows = find_copy_counter(batch.tally, instruction), np.flatnonzero(issuing).tolist()
    for row in rows:
        first, behind = int(source[row]), int(source[row] + sizes[row])
        sectors = -(-behind // SECTOR_BYTES) - first // SECTOR_BYTES if behind > first else 0
        add_moved(counter, Moved(1, 0, behind - first, 0, 0, 0, sectors, 0, behind - first))
    if batch.tally.options.observers:
        units = [int(source[row]) + np.arange(0, int(sizes[row]), UNIT_BYTES) for row in rows]
        tell_sectors(batch, frame, instruction, rows, units)


def arrive_for_tensor_cores(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """UTCBAR: arrives once at an mbarrier for tensor cores, which are done at once."""
    for register in name_places(instruction)[:1]:
        cells, lanes = barrier_words(batch, frame, window, instruction, taken, register)
        if cells is not None:
            one = np.ones(int(lanes.sum()), np.int64)
            change_words(batch, cells[lanes], Arrivals(one, np.zeros_like(one), np.zeros_like(one)))
    return instruction.index + 1


def _copy(batch: Batch, frame: Frame, instruction: Instruction, ranges: _Ranges, issuing: Lanes) -> None:
    """From source to target, 16 bytes a lane at a time."""
    ways, target, source, sizes = ranges.ways, ranges.target, ranges.source, ranges.sizes
    spaces = tuple(Space.SHARED if way == "S" else Space.GLOBAL for way in ways)
    sums = instruction.opcode != "UBLKRED" or can_reduce(instruction, find_kind(instruction))
    if not batch.tally.brings and sums and _is_sound(batch, ranges, issuing):
        return
    lane = np.arange(32) * UNIT_BYTES
    for start in range(0, int(np.where(issuing, sizes, 0).max(initial=0)), 32 * UNIT_BYTES):
        active = issuing[:, None] & (start + lane < sizes[:, None])
        given = Request(instruction, spaces[1], frame.rows, frame.warps, active)
        read = resolve(batch.memory, source[:, None] + start + lane, UNIT_BYTES, given)
        words, taint = read_words(read, UNIT_BYTES, frame.warps)
        given = Request(instruction, spaces[0], frame.rows, frame.warps, active)
        written = resolve(batch.memory, target[:, None] + start + lane, UNIT_BYTES, given)
        judged = judge_copied(batch, frame, taint, ranges.doubt)
        if instruction.opcode == "UBLKRED" and can_reduce(instruction, find_kind(instruction)):
            reduce_words(written, instruction, find_kind(instruction), words, active, judged)
        elif instruction.opcode == "UBLKRED":
            leave_sums_unknown(batch, instruction)
            stain_words(written, UNIT_BYTES, active, frame.warps, UNKNOWN)
        else:
            write_words(written, UNIT_BYTES, words, active, frame.warps, judged)


def _is_sound(batch: Batch, ranges: _Ranges, issuing: Lanes) -> bool:
    """Whether copies of these ranges can do nothing wrong."""
    if "G" not in ranges.ways or batch.memory.peer_origins is not None:
        return False
    here, there = (ranges.target, ranges.source) if ranges.ways[0] == "S" else (ranges.source, ranges.target)
    copied = zip(there[issuing].tolist(), here[issuing].tolist(), ranges.sizes[issuing].tolist(), strict=True)
    return all(lies_well(batch.memory, *each) for each in copied)


def lies_well(memory: BatchMemory, there: int, here: int, size: int) -> bool:
    """Whether bytes from `there` on lie in one buffer, from `here` on in shared memory, and both begin with units."""
    buffers = memory.global_memory.allocations
    inside = any(each.base <= there and there + size <= each.base + each.size_bytes for each in buffers)
    whole = there % UNIT_BYTES == 0 and here % UNIT_BYTES == 0
    return inside and whole and 0 <= here <= memory.bound.shared_bytes - size
