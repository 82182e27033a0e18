"""Turns copies of whole ranges (UBLKCP, UBLKRED, UTMALDG and kin) into memory, and what they owe to mbarriers.

A copy is done at once: nobody may look before the barrier, or the group of copies, says so. No request of theirs is
counted, since no lane makes one; this is said once for each instruction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import Address, Register
from sectorwise.counting.request import Space
from sectorwise.machine.arrivals import Arrivals, bytes_under_way
from sectorwise.machine.frame import of_group
from sectorwise.machine.lanes import first_lane, unpack
from sectorwise.machine.mbarriers import change_words, find_words, find_words_at
from sectorwise.machine.memory import WINDOW_BYTES, Request, resolve
from sectorwise.machine.program import register_slot
from sectorwise.machine.storage import empty_shadow, read_words, stain_words, write_words
from sectorwise.machine.taint import UNKNOWN, collect, join

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
_CREDIT = 1
_RANKS = 16
"""Blocks that a cluster has at most."""


def run_bulk_copy(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """Runs a bulk copy of the warps that have `taken` lanes; all go on behind."""
    behind = instruction.index + 1
    if instruction.opcode == "UBLKPF":
        return behind
    if instruction.opcode.startswith("UTMA"):
        _copy_tile(batch, frame, window, instruction, taken)
        return behind
    places = _name_places(instruction)
    size = next((operand for operand in reversed(instruction.operands) if isinstance(operand, Register)), None)
    if len(places) < 2 or size is None:
        batch.tally.limitations[instruction.index, f"{instruction.text}: this form is not known"] = None
        return behind
    ways = tuple(name for name in instruction.modifiers if name in ("S", "G"))
    said = f"{instruction.opcode}: a copy of a whole range; its requests are not counted"
    batch.tally.limitations[instruction.index, said] = None
    if ways not in (("S", "G"), ("G", "S"), ("S", "S")) or _is_unknown(window, ways, places, size):
        because = f"{instruction.text}: what is copied where is not known"
        batch.tally.limitations[instruction.index, because] = None
        if ways[:1] == ("S",) and register_slot(_following(places[0])) not in window.taints:
            waiting = _row_words(frame, window, _following(places[0]))
            _release(batch, frame, instruction, taken != 0, waiting)
        return behind
    packed = _row_words(frame, window, size)
    sizes = (packed & _SIZE_UNITS) * _UNIT_BYTES
    target, source = (_row_places(frame, window, way, place) for way, place in zip(ways, places, strict=True))
    barrier: Longs | None = _row_words(frame, window, _following(places[0])) if ways[0] == "S" else None
    if not instruction.has("MULTICAST"):
        _copy(batch, frame, instruction, taken != 0, ways, target, source, sizes)
        _complete(batch, frame, instruction, taken != 0, barrier, sizes)
        return behind
    for rank in range(_RANKS):
        # The same place in the shared memory of each block that the mask names.
        issuing = (taken != 0) & (packed >> (16 + rank) & 1 != 0)
        if issuing.any() and barrier is not None:
            there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (target, barrier))
            _copy(batch, frame, instruction, issuing, ways, there, source, sizes)
            _complete(batch, frame, instruction, issuing, told, sizes)
    return behind


def _complete(
    batch: Batch, frame: Frame, instruction: Instruction, issuing: Lanes, barrier: Longs | None, sizes: Longs
) -> None:
    """Tells the barrier of each row that its bytes have come."""
    if barrier is None:
        return
    lanes = issuing[:, None] & (first_lane(frame.masks)[:, None] == np.arange(32))
    cells, valid = find_words_at(batch, frame, instruction, barrier[:, None], lanes)
    _transact(batch, cells, valid, -np.broadcast_to(sizes[:, None], valid.shape)[valid])


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
    write_words(pieces, width, [word.astype(np.uint32) for word in words], lanes, frame.warps, None)
    cells, valid = find_words_at(batch, frame, instruction, barrier, lanes)
    _transact(batch, cells, valid, np.full(int(valid.sum()), -width, np.int64))
    return instruction.index + 1


def arrive_for_tensor_cores(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """UTCBAR: arrives once at an mbarrier for tensor cores, which are done at once."""
    for register in _name_places(instruction)[:1]:
        cells, lanes = _barrier_words(batch, frame, window, instruction, taken, register)
        if cells is not None:
            one = np.ones(int(lanes.sum()), np.int64)
            change_words(batch, cells[lanes], Arrivals(one, np.zeros_like(one), np.zeros_like(one)))
    return instruction.index + 1


def _name_places(instruction: Instruction) -> tuple[Register, ...]:
    """The registers that name target and source."""
    named = [operand.base or operand.uniform for operand in instruction.operands if isinstance(operand, Address)]
    return tuple(register for register in named if register is not None)


def _following(register: Register) -> Register:
    """The register behind a target in shared memory: its mbarrier."""
    return Register(register.index + 1, register.uniform)


def _row_words(frame: Frame, window: Window, register: Register, step: int = 0) -> Longs:
    return of_group(frame, window.read(register_slot(register) + step)).astype(np.int64)


def _row_places(frame: Frame, window: Window, way: str, register: Register) -> Longs:
    """An address for each row: a word in shared memory, else a pair."""
    low = _row_words(frame, window, register)
    return low if way == "S" else low | _row_words(frame, window, register, 1) << 32


def _is_unknown(window: Window, ways: tuple[str, ...], places: tuple[Register, ...], size: Register) -> bool:
    level = window.taints.get(register_slot(size))
    for way, register in zip(ways, places, strict=False):
        level = join(level, window.taints.get(register_slot(register)))
        if way == "G":
            level = join(level, window.taints.get(register_slot(register) + 1))
    return bool(collect(level, None) & UNKNOWN)


def _copy(
    batch: Batch,
    frame: Frame,
    instruction: Instruction,
    issuing: Lanes,
    ways: tuple[str, ...],
    target: Longs,
    source: Longs,
    sizes: Longs,
) -> None:
    """16 bytes a lane at a time; sums into global memory are not made: what they leave there is not known."""
    spaces = tuple(Space.SHARED if way == "S" else Space.GLOBAL for way in ways)
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
            write_words(written, _UNIT_BYTES, words, active, frame.warps, taint)


def _barrier_words(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks, register: Register
) -> tuple[Longs | None, Lanes]:
    """The word of each row's mbarrier, in one lane of those that issue."""
    lanes = (taken[:, None] != 0) & (first_lane(frame.masks)[:, None] == np.arange(32))
    return find_words(batch, frame, window, instruction, register, lanes)


def _transact(batch: Batch, cells: Longs, lanes: Lanes, amounts: Longs) -> None:
    none = np.zeros_like(amounts)
    change_words(batch, cells[lanes], Arrivals(none, amounts, none))


def _release(batch: Batch, frame: Frame, instruction: Instruction, issuing: Lanes, barrier: Longs) -> Longs:
    """Lets a barrier go of all bytes that it waits for, or will next wait for; what it waited for, `[rows]`."""
    lanes = issuing[:, None] & (first_lane(frame.masks)[:, None] == np.arange(32))
    cells, valid = find_words_at(batch, frame, instruction, barrier[:, None], lanes)
    words = batch.memory.shared.octets.view(np.uint64)
    waited = bytes_under_way(words[cells[valid]])
    words[cells[valid][waited == 0]] |= np.uint64(_CREDIT)
    _transact(batch, cells, valid, -waited)
    rows = np.zeros(frame.warps, np.int64)
    rows[valid.any(axis=1)] = waited
    return rows


def _copy_tile(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> None:
    """A tile that a tensor map names: how large it is, and where, is not known here."""
    because = f"{instruction.opcode}: what a tensor map names is not known; its requests are not counted"
    batch.tally.limitations[instruction.index, because] = None
    if instruction.opcode != "UTMALDG":
        return
    batch.tally.origins.setdefault(instruction.index, "what a tensor map names is not known")
    targets = _name_places(instruction)[:1]
    if not targets or _is_unknown(window, ("S",), targets, _following(targets[0])):
        return
    target = targets[0]
    starts, barrier = _row_words(frame, window, target), _row_words(frame, window, _following(target))
    if not instruction.has("MULTICAST") or batch.clusters is None:
        _stain_tile(batch, frame, taken != 0, starts, _release(batch, frame, instruction, taken != 0, barrier))
        return
    for rank in range(batch.clusters.peers.shape[1]):
        there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (starts, barrier))
        _stain_tile(batch, frame, taken != 0, there, _release(batch, frame, instruction, taken != 0, told))


def _stain_tile(batch: Batch, frame: Frame, issuing: Lanes, starts: Longs, waited: Longs) -> None:
    """What a tile holds is not known: as many bytes as were waited for; where nobody waits yet, all that follows."""
    memory = batch.memory
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    shadow = empty_shadow(memory.shared)
    size = memory.bound.shared_bytes
    for row in np.flatnonzero(issuing):
        rank, start = divmod(int(starts[row]), WINDOW_BYTES)
        origins = memory.shared_origins if memory.peer_origins is None else memory.peer_origins
        if rank < origins.shape[1] and start < size:
            origin = int(origins[warps[row], rank])
            until = min(start + (int(waited[row]) or size), size)
            shadow[(origin + start) >> 2 : (origin + until) >> 2] |= np.uint8(UNKNOWN)
            if memory.shared.written is not None:
                memory.shared.written[origin + start : origin + until] = 1
