"""Turns calls that machine code makes between basic blocks into what the reference engine's functions do there.

One block runs at a time, so that a batch of one block stands for all; its shared memory is the session's own. Copies
are counted, and barriers told, but no bytes move: nothing that matters is made of them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binding import CONSTANT_WINDOW, PARAMETER_WINDOW
from sectorwise.counting.pieces import UNIT_BYTES
from sectorwise.launch.contents import materialise
from sectorwise.launch.map_bytes import MAP_BYTES, decode_map
from sectorwise.machine.asynchronous import run_asynchronous
from sectorwise.machine.batch import Batch, Tally, open_batch
from sectorwise.machine.bulk_copies import SIZE_UNITS
from sectorwise.machine.convergence import State
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.frame import Frame, of_group
from sectorwise.machine.lanes import pack, unpack
from sectorwise.machine.memory import global_storage, open_global_memory
from sectorwise.machine.native.arena import make_sparse
from sectorwise.machine.native.aside_extents import Sights, look
from sectorwise.machine.native.aside_forms import read_aside
from sectorwise.machine.native.layout import CONTEXT, LANES, WORD_ROW
from sectorwise.machine.native.session import guard_callback
from sectorwise.machine.native.unsupported import OccurredError, UnsupportedError
from sectorwise.machine.registers import PREDICATE, SLOTS, Window
from sectorwise.machine.storage import make_storage

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.launch.map_bytes import TensorMap
    from sectorwise.machine.native.aside_forms import Aside
    from sectorwise.machine.native.aside_motion import Motion
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program, Step

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32)
_GOES_ON, _WAITS = 0, 1
_SIGN = 1 << 31


@dataclass(slots=True)
class Desk:
    """Where the asides of a session are run.

    `sights` is what has been seen of copies whose places move between blocks; `rows` and `frames` are views that were
    made before.
    """

    session: Session
    batch: Batch
    steps: dict[int, tuple[Step, Aside]]
    translation: Translation
    motions: dict[int, Motion]
    sights: Sights
    rows: dict[tuple[int, int], npt.NDArray[np.uint32]] = field(default_factory=dict)
    frames: dict[tuple[int, int], Frame] = field(default_factory=dict)
    maps: dict[int, TensorMap] = field(default_factory=dict)


def attach_desk(session: Session, bound: BoundLaunch, program: Program, translation: Translation) -> None:
    """Lets machine code of a session call what its translation leaves to Python; nothing where that is nothing."""
    if not translation.asides:
        return
    desk = _open_desk(session, bound, program, translation)
    session.copies = desk.batch.tally.bulk
    session.sights = desk.sights

    def run(index: int, taken: int) -> int:
        result: list[int] = []
        guard_callback(session, lambda: result.append(_run(desk, index, taken)))
        return result[0] if result else _GOES_ON

    callback = _CALLBACK(run)
    session.keep.append(callback)
    session.context.put(CONTEXT["aside"], "Q", ctypes.cast(callback, ctypes.c_void_p).value or 0)


def _open_desk(session: Session, bound: BoundLaunch, program: Program, translation: Translation) -> Desk:
    count = len(bound.kernel.instructions)
    none = np.zeros(count, np.int64)
    memory = open_global_memory(bound, _contents_of)
    tally = Tally(program, bound, ExecutionOptions(), memory, {}, {}, none, none.copy(), brings=False)
    batch = open_batch(tally, np.zeros(1, np.int64))
    size = -(-max(bound.shared_bytes, 16) // 16) * 16
    batch.memory.shared = make_storage(session.regions["shared"].octets[:size])
    steps = {index: (step, read_aside(step.instruction)) for index, (step, _) in translation.asides.items()}
    known = {index: (step, aside) for index, (step, aside) in steps.items() if aside is not None}
    motions = {index: motion for index, (_, motion) in translation.asides.items()}
    return Desk(session, batch, known, translation, motions, Sights())


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    """Parameters and constants are what they are; what buffers hold is not looked at."""
    if allocation.base not in (CONSTANT_WINDOW, PARAMETER_WINDOW):
        return make_sparse(allocation.size_bytes)
    return np.array(materialise(allocation.buffer)).reshape(-1).view(np.uint8)


def _run(desk: Desk, index: int, taken: int) -> int:
    """Runs an instruction for some lanes of the group that runs; says whether they wait."""
    context, batch = desk.session.context, desk.batch
    warp, mask = context.get(CONTEXT["warp_number"], "q"), context.get(CONTEXT["mask"], "I")
    step, aside = desk.steps[index]
    frame, window = _frame_of(desk, warp, mask), _open_window(desk, warp, aside)
    masks = np.array([taken], np.uint32)
    batch.groups.mask[warp] = mask
    goes_on = run_asynchronous(batch, frame, window, step, masks) is not None
    batch.groups.state[warp] = State.RUNS
    _refuse_strange(batch.tally, step)
    for slot in aside.writes:
        if slot in window.written:
            _write_back(desk, warp, slot, window)
    if taken and any(desk.motions[index].forms):
        _look(desk, index, frame, window)
    return _GOES_ON if goes_on else _WAITS


def _look(desk: Desk, index: int, frame: Frame, window: Window) -> None:
    """Notes where a copy that moves between blocks goes in this one."""
    _, aside = desk.steps[index]

    def word(slot: int) -> int:
        return int(of_group(frame, window.read(slot))[0])

    if aside.address is None:
        where = word(aside.tensor_map) | word(aside.tensor_map + 1) << 32
        corner = tuple((word(slot) ^ _SIGN) - _SIGN for slot in aside.corner)
        look(desk.sights, index, where, _map_at(desk, where), corner)
        return
    low = word(aside.address)
    address = low | word(aside.address + 1) << 32
    look(desk.sights, index, 0, None, (address, address + (word(aside.size) & SIZE_UNITS) * UNIT_BYTES, low))


def _map_at(desk: Desk, address: int) -> TensorMap:
    """The tensor map at an address that copies were made by."""
    if address not in desk.maps:
        memory = desk.batch.memory.global_memory
        number = int(np.searchsorted(memory.bases, address, side="right")) - 1
        start = address - int(memory.bases[number])
        found = decode_map(global_storage(memory, number).octets[start : start + MAP_BYTES].tobytes())
        if found is None:
            raise UnsupportedError("what a tensor map names is not known")
        desk.maps[address] = found
    return desk.maps[address]


def _refuse_strange(tally: Tally, step: Step) -> None:
    """Ends the run where the reference engine would have something to say."""
    if tally.faults.first or tally.faults.remote:
        raise OccurredError("something happened that the reference engine describes")
    if tally.limitations:
        raise UnsupportedError(f"{step.instruction.text} does what the reference engine describes")


def _frame_of(desk: Desk, warp: int, mask: int) -> Frame:
    frame = desk.frames.get((warp, mask))
    if frame is None:
        masks, rows = np.array([mask], np.uint32), np.array([warp])
        group = unpack(masks)
        whole = bool(group.all())
        inside = None if whole else group
        frame = Frame(rows, np.zeros(1, np.intp), rows, masks, inside, inside, 0, 0, 1, mask.bit_count())
        desk.frames[warp, mask] = frame
    return frame


def _open_window(desk: Desk, warp: int, aside: Aside) -> Window:
    values: list[npt.NDArray[np.generic] | None] = [None] * SLOTS
    window = Window(desk.batch.registers, np.array([warp]), values, {})
    for slot in (*aside.reads, *aside.writes):
        row = _row_of(desk, warp, slot)
        values[slot] = unpack(row[0, :1]) if slot >= PREDICATE else row
    return window


def _row_of(desk: Desk, warp: int, slot: int) -> npt.NDArray[np.uint32]:
    """Where a register of a warp lies: [1, 32] words; of a predicate the first holds a bit for each lane."""
    row = desk.rows.get((warp, slot))
    if row is None:
        place = warp * desk.translation.state_bytes + desk.translation.offsets[slot]
        octets = desk.session.regions["states"].octets[place : place + WORD_ROW]
        row = desk.rows[warp, slot] = octets.view(np.uint32).reshape(1, LANES)
    return row


def _write_back(desk: Desk, warp: int, slot: int, window: Window) -> None:
    row = _row_of(desk, warp, slot)
    if slot >= PREDICATE:
        row[0, 0] = pack(window.read_predicate(slot), 1)[0]
    else:
        row[:] = window.read(slot)
