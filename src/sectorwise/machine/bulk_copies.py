"""Turns copies of whole ranges (UBLKCP, UBLKRED, UTMALDG and kin) into memory, and what they owe to mbarriers.

A copy is done at once: nobody may look before the barrier, or the group of copies, says so. No lane makes a request;
the sectors that they move are counted apart, and said once for each instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import Address, Register
from sectorwise.counting.pieces import count_pieces
from sectorwise.counting.request import Space
from sectorwise.machine.arrivals import Arrivals
from sectorwise.machine.bulk_rows import (
    barrier_words,
    complete,
    doubt_places,
    following,
    judge_copied,
    name_places,
    note_doubt,
    note_pieces,
    release,
    row_places,
    row_words,
    transact,
)
from sectorwise.machine.lanes import unpack
from sectorwise.machine.mbarriers import change_words, find_words_at
from sectorwise.machine.memory import WINDOW_BYTES, Request, resolve
from sectorwise.machine.program import register_slot
from sectorwise.machine.storage import read_words, stain_words, write_words
from sectorwise.machine.taint import UNKNOWN
from sectorwise.machine.tile_copies import copy_tile

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.registers import Window

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Longs = npt.NDArray[np.int64]

_UNIT_BYTES = 16
"""Sizes are given in units of so much; so are copies aligned."""

_SIZE_UNITS = 0xFFFF
_RANKS = 16
"""Blocks that a cluster has at most."""


def run_bulk_copy(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """Runs a bulk copy of the warps that have `taken` lanes; all go on behind."""
    behind = instruction.index + 1
    if instruction.opcode == "UBLKPF":
        return behind
    if instruction.opcode.startswith("UTMA"):
        copy_tile(batch, frame, window, instruction, taken)
        return behind
    places = name_places(instruction)
    size = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if len(places) < 2 or size is None:
        batch.tally.limitations[instruction.index, f"{instruction.text}: this form is not known"] = None
        return behind
    ways = tuple(name for name in instruction.modifiers if name in ("S", "G"))
    doubt = doubt_places(window, ways, places, size)
    if ways not in (("S", "G"), ("G", "S"), ("S", "S")) or doubt & UNKNOWN:
        because = f"{instruction.text}: what is copied where is not known"
        batch.tally.limitations[instruction.index, because] = None
        if ways[:1] == ("S",) and register_slot(following(places[0])) not in window.taints:
            waiting = row_words(frame, window, following(places[0]))
            release(batch, frame, instruction, taken != 0, waiting)
        return behind
    note_doubt(batch, instruction, doubt)
    packed = row_words(frame, window, size)
    sizes = (packed & _SIZE_UNITS) * _UNIT_BYTES
    target, source = (row_places(frame, window, way, place) for way, place in zip(ways, places, strict=True))
    barrier: Longs | None = row_words(frame, window, following(places[0])) if ways[0] == "S" else None
    if not instruction.has("MULTICAST"):
        _copy(batch, frame, instruction, taken != 0, ways, (target, source), sizes, doubt)
        complete(batch, frame, instruction, taken != 0, barrier, sizes)
        return behind
    for rank in range(_RANKS):
        # The same place in the shared memory of each block that the mask names.
        issuing = (taken != 0) & (packed >> (16 + rank) & 1 != 0)
        if issuing.any() and barrier is not None:
            there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (target, barrier))
            _copy(batch, frame, instruction, issuing, ways, (there, source), sizes, doubt)
            complete(batch, frame, instruction, issuing, told, sizes)
    return behind


def store_async(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """STAS [R.64], S: stores to shared memory, its own or a peer's, and tells the mbarrier in R's second word."""
    place = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
    source = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if place is None or place.base is None or source is None:
        batch.tally.limitations[instruction.index, f"{instruction.text}: this form is not known"] = None
        return instruction.index + 1
    width = next((int(name) // 8 for name in instruction.modifiers if name in ("64", "128")), 4)
    target, lanes = place.base, unpack(taken)
    said = f"{instruction.opcode}: a store that a barrier waits for; its requests are not counted"
    batch.tally.limitations[instruction.index, said] = None
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
    instruction: Instruction,
    issuing: Lanes,
    ways: tuple[str, ...],
    target: Longs,
    source: Longs,
    sizes: Longs,
) -> None:
    """Adds the pieces of ranges that go from or to global memory."""
    if instruction.has("MULTICAST"):
        said = f"{instruction.opcode}: to several blocks at once: it is not counted"
        batch.tally.limitations[instruction.index, said] = None
        return
    loads = ways == ("S", "G")
    sectors = 0
    for row in np.flatnonzero(issuing & (sizes > 0)) if "G" in ways else ():
        unit = np.arange(0, int(sizes[row]), _UNIT_BYTES)[None]
        there, here = (int(each[row]) + unit for each in ((source, target) if loads else (target, source)))
        sectors += int(count_pieces(there, here, np.ones(unit.shape, np.bool_), loads=loads).sum())
    note_pieces(batch, instruction, int(np.count_nonzero(issuing)), sectors)


def arrive_for_tensor_cores(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """UTCBAR: arrives once at an mbarrier for tensor cores, which are done at once."""
    for register in name_places(instruction)[:1]:
        cells, lanes = barrier_words(batch, frame, window, instruction, taken, register)
        if cells is not None:
            one = np.ones(int(lanes.sum()), np.int64)
            change_words(batch, cells[lanes], Arrivals(one, np.zeros_like(one), np.zeros_like(one)))
    return instruction.index + 1


def _copy(
    batch: Batch,
    frame: Frame,
    instruction: Instruction,
    issuing: Lanes,
    ways: tuple[str, ...],
    places: tuple[Longs, Longs],
    sizes: Longs,
    doubt: int,
) -> None:
    """From the second of `places` to the first, 16 bytes a lane at a time.

    Sums into global memory are not made: what they leave there is not known.
    """
    target, source = places
    spaces = tuple(Space.SHARED if way == "S" else Space.GLOBAL for way in ways)
    _count(batch, instruction, issuing, ways, target, source, sizes)
    lane = np.arange(32) * _UNIT_BYTES
    for start in range(0, int(np.where(issuing, sizes, 0).max(initial=0)), 32 * _UNIT_BYTES):
        active = issuing[:, None] & (start + lane < sizes[:, None])
        given = Request(instruction, spaces[1], frame.rows, frame.warps, active)
        read = resolve(batch.memory, source[:, None] + start + lane, _UNIT_BYTES, given)
        words, taint = read_words(read, _UNIT_BYTES, frame.warps)
        given = Request(instruction, spaces[0], frame.rows, frame.warps, active)
        written = resolve(batch.memory, target[:, None] + start + lane, _UNIT_BYTES, given)
        if instruction.opcode == "UBLKRED":
            batch.tally.origins.setdefault(instruction.index, "sums of whole ranges are not computed")
            stain_words(written, _UNIT_BYTES, active, frame.warps, UNKNOWN)
        else:
            write_words(written, _UNIT_BYTES, words, active, frame.warps, judge_copied(batch, frame, taint, doubt))
