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
from sectorwise.machine.lanes import first_lane
from sectorwise.machine.mbarriers import change_words, find_words
from sectorwise.machine.memory import Request, resolve
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


def run_bulk_copy(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """Runs a bulk copy of the warps that have `taken` lanes; all go on behind."""
    behind = instruction.index + 1
    if instruction.opcode == "UBLKPF":
        return behind
    if instruction.opcode.startswith("UTMA"):
        _copy_tile(batch, frame, window, instruction, taken)
        return behind
    places, size = _registers(instruction)
    ways = tuple(name for name in instruction.modifiers if name in ("S", "G"))
    said = "its requests are not counted"
    if instruction.has("MULTICAST"):
        said += ", and only the issuing block's shared memory is written"
    batch.tally.limitations[instruction.index, f"{instruction.opcode}: a copy of a whole range; {said}"] = None
    if ways not in (("S", "G"), ("G", "S"), ("S", "S")) or _is_unknown(window, ways, places, size):
        because = f"{instruction.text}: what is copied where is not known"
        batch.tally.limitations[instruction.index, because] = None
        if ways[:1] == ("S",):
            _release(batch, frame, window, instruction, taken, _following(places[0]))
        return behind
    sizes = (_row_words(frame, window, size) & _SIZE_UNITS) * _UNIT_BYTES
    target, source = (_row_places(frame, window, way, place) for way, place in zip(ways, places, strict=True))
    _copy(batch, frame, instruction, taken != 0, ways, target, source, sizes)
    if ways[0] == "S":
        cells, lanes = _barrier_words(batch, frame, window, instruction, taken, _following(places[0]))
        if cells is not None:
            _transact(batch, cells, lanes, -np.broadcast_to(sizes[:, None], lanes.shape)[lanes])
    return behind


def arrive_for_tensor_cores(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> int:
    """UTCBAR: arrives once at an mbarrier for tensor cores, which are done at once."""
    place = next(operand for operand in instruction.operands if isinstance(operand, Address))
    register = place.base or place.uniform
    if register is not None:
        cells, lanes = _barrier_words(batch, frame, window, instruction, taken, register)
        if cells is not None:
            one = np.ones(int(lanes.sum()), np.int64)
            change_words(batch, cells[lanes], Arrivals(one, np.zeros_like(one), np.zeros_like(one)))
    return instruction.index + 1


def _registers(instruction: Instruction) -> tuple[tuple[Register, Register], Register]:
    """What names target and source, and the size."""
    named = [operand.base or operand.uniform for operand in instruction.operands if isinstance(operand, Address)]
    found = [register for register in named if register is not None]
    size = next(operand for operand in reversed(instruction.operands) if isinstance(operand, Register))
    return (found[0], found[1]), size


def _following(register: Register) -> Register:
    """The register behind a target in shared memory: its mbarrier."""
    return Register(register.index + 1, register.uniform)


def _row_words(frame: Frame, window: Window, register: Register, step: int = 0) -> Longs:
    return of_group(frame, window.read(register_slot(register) + step)).astype(np.int64)


def _row_places(frame: Frame, window: Window, way: str, register: Register) -> Longs:
    """An address for each row: a word in shared memory, else a pair."""
    low = _row_words(frame, window, register)
    return low if way == "S" else low | _row_words(frame, window, register, 1) << 32


def _is_unknown(window: Window, ways: tuple[str, ...], places: tuple[Register, Register], size: Register) -> bool:
    level = window.taints.get(register_slot(size))
    for way, register in zip(ways, places, strict=True):
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


def _release(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks, register: Register
) -> Longs | None:
    """Lets a barrier go of all bytes that it waits for, or will next wait for; what it waited for, `[rows]`."""
    cells, lanes = _barrier_words(batch, frame, window, instruction, taken, register)
    if cells is None:
        return None
    words = batch.memory.shared.octets.view(np.uint64)
    waited = bytes_under_way(words[cells[lanes]])
    words[cells[lanes][waited == 0]] |= np.uint64(_CREDIT)
    _transact(batch, cells, lanes, -waited)
    rows = np.zeros(frame.warps, np.int64)
    rows[lanes.any(axis=1)] = waited
    return rows


def _copy_tile(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> None:
    """A tile that a tensor map names: how large it is, and where, is not known here."""
    because = f"{instruction.opcode}: what a tensor map names is not known; its requests are not counted"
    batch.tally.limitations[instruction.index, because] = None
    if instruction.opcode != "UTMALDG":
        return
    batch.tally.origins.setdefault(instruction.index, "what a tensor map names is not known")
    place = next(operand for operand in instruction.operands if isinstance(operand, Address))
    target = place.base or place.uniform
    if target is None:
        return
    waited = _release(batch, frame, window, instruction, taken, _following(target))
    memory = batch.memory
    rows = np.arange(frame.warps) if frame.rows is None else frame.rows
    starts = _row_words(frame, window, target)
    shadow = empty_shadow(memory.shared)
    for row in np.flatnonzero(taken):
        start, size = int(starts[row]), memory.bound.shared_bytes
        # As much as was waited for; where nobody waits yet, all that follows.
        count = int(waited[row]) if waited is not None and waited[row] > 0 else size
        origin = int(memory.shared_origins[rows[row], 0])
        if 0 <= start < size:
            shadow[(origin + start) >> 2 : (origin + min(start + count, size)) >> 2] |= np.uint8(UNKNOWN)
