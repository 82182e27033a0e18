"""Turns instructions on mbarriers (SYNCS, ARRIVES) into arrivals, transactions, and waits for the end of a phase."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import TRUE_PREDICATE, ZERO_REGISTER, Address, Predicate, Register
from sectorwise.counting.request import Space
from sectorwise.machine.arrivals import WITH_TRANSACTIONS, WITHOUT_TRANSACTIONS, Arrivals, arrive_in_turn
from sectorwise.machine.convergence import State
from sectorwise.machine.frame import of_group
from sectorwise.machine.lanes import pack, unpack
from sectorwise.machine.memory import Request, resolve
from sectorwise.machine.named_registers import last_register
from sectorwise.machine.program import predicate_slot, register_slot
from sectorwise.machine.taint import ORDERED, UNKNOWN, collect, join, level_of
from sectorwise.machine.unknown import mark_results_unknown

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.program import Step
    from sectorwise.machine.registers import Window

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Longs = npt.NDArray[np.int64]

BARRIER_BYTES = 8

# Arrivals and transactions of the forms of ARRIVE: a number, or how often the register counts.
_FORMS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "A1T0": ((1, 0), (0, 0)),
    "A0T1": ((0, 0), (1, 0)),
    "ART0": ((0, 1), (0, 0)),
    "A0TR": ((0, 0), (0, 1)),
    "A0TX": ((0, 0), (0, -1)),
}
_ARRIVE_AND_EXPECT = ((1, 0), (0, 1))


def run_mbarrier(batch: Batch, frame: Frame, window: Window, step: Step, taken: Masks) -> int | None:
    """Runs SYNCS or ARRIVES for the `taken` lanes; None where some of their groups wait for a phase to end."""
    instruction = step.instruction
    behind = instruction.index + 1
    if instruction.has("CCTL"):
        return behind
    lanes = unpack(taken)
    address = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
    if address is None:
        mark_results_unknown(batch.tally, window, step, lanes, f"{instruction.text}: this form is not known")
        return behind
    cells, valid = find_words(batch, frame, window, instruction, address, lanes)
    if cells is None:
        mark_results_unknown(batch.tally, window, step, lanes, "which mbarrier it means is not known")
        return behind
    if instruction.opcode == "ARRIVES":
        return _arrive_for_copies(batch, instruction, cells, valid)
    if instruction.has("EXCH"):
        _exchange(batch, frame, window, instruction, cells, valid)
        return behind
    if instruction.has("PHASECHK"):
        return _check_phase(batch, frame, window, instruction, cells, valid)
    if instruction.has("ARRIVE"):
        _arrive(batch, frame, window, instruction, cells, valid)
        return behind
    mark_results_unknown(batch.tally, window, step, lanes, f"{instruction.text}: this form is not known")
    return behind


def find_words(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, address: Address | Register, lanes: Lanes
) -> tuple[npt.NDArray[np.int64] | None, Lanes]:
    """Indices [rows, 32] of the 64-bit words that lanes name in shared memory, and the lanes whose word is there.

    None where an address is not known. A wrong address is logged as a fault.
    """
    registers = (address.base, address.uniform) if isinstance(address, Address) else (address,)
    place: npt.NDArray[np.int64] = np.full((1, 1), address.offset if isinstance(address, Address) else 0, np.int64)
    level = None
    for register in registers:
        if register is None or register.index == ZERO_REGISTER:
            continue
        slot = register_slot(register)
        level = join(level, window.taints.get(slot))
        value = window.read(slot)
        if register.uniform:
            value = of_group(frame, value)[:, None]
        scale = address.scale if isinstance(address, Address) and register is address.base else 1
        place = place + value.astype(np.int64) * scale
    if collect(level, lanes if level is not None and level.shape[1] != 1 else None) & UNKNOWN:
        return None, lanes
    return find_words_at(batch, frame, instruction, place & 0xFFFFFFFF, lanes)


def find_words_at(
    batch: Batch, frame: Frame, instruction: Instruction, places: Longs, lanes: Lanes
) -> tuple[npt.NDArray[np.int64], Lanes]:
    """Indices [rows, 32] of the words at addresses in shared memory, and the lanes whose word is there."""
    places = np.broadcast_to(places, (frame.warps, 32)).astype(np.int64)
    request = Request(instruction, Space.SHARED, frame.rows, frame.warps, lanes)
    (piece,) = resolve(batch.memory, places, BARRIER_BYTES, request)
    valid = lanes if piece.where is None else lanes & piece.where
    return np.broadcast_to(piece.index // BARRIER_BYTES, (frame.warps, 32)), valid


def change_words(batch: Batch, cells: Longs, given: Arrivals, *, transactions: bool = True) -> npt.NDArray[np.uint64]:
    """Applies arrivals to words of shared memory (`cells` and the fields of `given` are parallel); what each saw."""
    memory = batch.memory.shared.octets.view(np.uint64)
    layout = WITH_TRANSACTIONS if transactions else WITHOUT_TRANSACTIONS
    if cells.size == 0:
        return np.zeros(0, np.uint64)
    before = memory[cells]
    seen = arrive_in_turn(memory, cells, given, layout)
    note_words(batch, before, memory[cells])
    return seen


def note_words(batch: Batch, before: npt.NDArray[np.uint64], after: npt.NDArray[np.uint64]) -> None:
    """Lets waiting groups know that barriers have changed."""
    if batch.memory.watched and (before != after).any():
        batch.memory.changes += 1
        batch.memory.watched = False


def _read(frame: Frame, window: Window, register: Register, step: int = 0) -> npt.NDArray[np.int64]:
    """A register's word, `[rows, 32]`."""
    if register.index == ZERO_REGISTER:
        return np.zeros((frame.warps, 32), np.int64)
    value = window.read(register_slot(register) + step)
    if register.uniform:
        value = of_group(frame, value)[:, None]
    return np.broadcast_to(value, (frame.warps, 32)).astype(np.int64)


def _exchange(batch: Batch, frame: Frame, window: Window, instruction: Instruction, cells: Longs, valid: Lanes) -> None:
    """SYNCS.EXCH.64 D, [A], S: how a barrier begins."""
    source = last_register(instruction)
    value = _read(frame, window, source).astype(np.uint64) | _read(frame, window, source, 1).astype(
        np.uint64
    ) << np.uint64(32)
    memory = batch.memory.shared.octets.view(np.uint64)
    before = memory[cells[valid]]
    memory[cells[valid]] = value[valid]
    note_words(batch, before, memory[cells[valid]])
    seen = np.zeros((frame.warps, 32), np.uint64)
    seen[valid] = before
    _write_long(window, instruction, seen, valid)


def _arrive(batch: Batch, frame: Frame, window: Window, instruction: Instruction, cells: Longs, valid: Lanes) -> None:
    form = next((_FORMS[name] for name in instruction.modifiers if name in _FORMS), _ARRIVE_AND_EXPECT)
    number = _read(frame, window, last_register(instruction))
    number = np.where(number >= 1 << 31, number - (1 << 32), number)[valid]
    arrivals, transactions = (fixed + times * number for fixed, times in form)
    leaving = arrivals if instruction.has("OPTOUT") else np.zeros_like(number)
    seen = np.zeros((frame.warps, 32), np.uint64)
    seen[valid] = change_words(batch, cells[valid], Arrivals(arrivals, transactions, leaving))
    if instruction.has("TMASK"):
        seen = _see_together(cells, valid, seen)
    _write_long(window, instruction, seen, valid)


def _see_together(cells: Longs, valid: Lanes, seen: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """What lanes see that arrive without ending a phase (mbarrier.arrive.noComplete), as compiled code reads it.

    The upper word is what the barrier held before any lane of the warp arrived; the lower one tells which lanes arrive
    at the same barrier, so that each can add those before it.
    """
    alike = (cells[:, :, None] == cells[:, None, :]) & valid[:, None, :]
    masks = pack(alike.reshape(-1, 32), alike.size // 32).reshape(cells.shape).astype(np.uint64)
    first = np.take_along_axis(seen, alike.argmax(axis=2), axis=1)
    return (first & np.uint64(0xFFFFFFFF00000000)) | masks


def _write_long(window: Window, instruction: Instruction, value: npt.NDArray[np.uint64], lanes: Lanes) -> None:
    """The word seen, to the instruction's first operand if that is a register."""
    target = instruction.operands[0]
    if not isinstance(target, Register) or target.index == ZERO_REGISTER:
        return
    slot = register_slot(target)
    for k, word in enumerate((value & np.uint64(0xFFFFFFFF), value >> np.uint64(32))):
        window.write(slot + k, word.astype(np.uint32), lanes)
        window.write_taint(slot + k, None, lanes)


def _arrive_for_copies(batch: Batch, instruction: Instruction, cells: Longs, valid: Lanes) -> int:
    """ARRIVES.LDGSTSBAR: copies are done as soon as they are issued, so each lane arrives, or ends its transaction."""
    ones, none = np.ones(int(valid.sum()), np.int64), np.zeros(int(valid.sum()), np.int64)
    ends = instruction.has("TRANSCNT")
    given = Arrivals(none if ends else ones, -ones if ends else none, none)
    change_words(batch, cells[valid], given, transactions=ends or instruction.has("ARVCNT"))
    return instruction.index + 1


def _check_phase(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, cells: Longs, valid: Lanes
) -> int | None:
    """SYNCS.PHASECHK P, [A], R: whether the phase whose parity is in R's sign has ended.

    The form TRYWAIT suspends a warp until then, for a time that it bounds; here it waits until one of its lanes can
    go on. The other form answers at once: what it says depends on the order in which warps run.
    """
    behind = instruction.index + 1
    words = batch.memory.shared.octets.view(np.uint64)[np.where(valid, cells, 0)]
    parity = _read(frame, window, last_register(instruction)) >> 31
    ended = ((words >> np.uint64(63)).astype(np.int64) != parity) & valid
    waits = np.zeros(frame.warps, np.bool_)
    if instruction.has("TRYWAIT"):
        waits = valid.any(axis=1) & ~ended.any(axis=1)
    answered = valid & ~waits[:, None]
    target = instruction.operands[0]
    if isinstance(target, Predicate) and target.index != TRUE_PREDICATE:
        slot = predicate_slot(target)
        window.write(slot, ended, answered)
        window.write_taint(slot, None if instruction.has("TRYWAIT") else level_of(ORDERED), answered)
    if not waits.any():
        return behind
    groups, parked = batch.groups, waits[frame.at]
    groups.pc[frame.chosen] = np.where(parked, instruction.index, behind)
    groups.state[frame.chosen[parked]] = State.SPINS
    # They issue again when they are woken: that is counted then.
    batch.tally.issued[instruction.index] -= int(parked.sum())
    batch.tally.lanes[instruction.index] -= int(np.bitwise_count(groups.mask[frame.chosen[parked]]).sum())
    batch.steps[groups.warp[frame.chosen[parked]]] -= 1
    if not batch.some_spin:
        batch.some_spin, batch.spun_at = True, batch.memory.changes
    batch.memory.watched = True
    return None
