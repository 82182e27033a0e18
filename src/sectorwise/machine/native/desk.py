"""Turns the memory of a session of machine code into what the functions of the reference engine work on.

One block runs at a time, so that a batch of one block stands for all; its shared memory is the session's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from sectorwise.binding import CONSTANT_WINDOW, PARAMETER_WINDOW
from sectorwise.launch.contents import materialise
from sectorwise.launch.map_bytes import MAP_BYTES, decode_map
from sectorwise.machine.batch import Batch, Tally, open_batch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.frame import Frame
from sectorwise.machine.lanes import pack, unpack
from sectorwise.machine.memory import global_storage, open_global_memory
from sectorwise.machine.native.arena import make_sparse
from sectorwise.machine.native.aside_forms import read_aside
from sectorwise.machine.native.layout import WORD_ROW
from sectorwise.machine.registers import PREDICATE, SLOTS, Window
from sectorwise.machine.storage import make_storage

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.launch.map_bytes import TensorMap
    from sectorwise.machine.native.aside_extents import Sights
    from sectorwise.machine.native.aside_forms import Aside
    from sectorwise.machine.native.meetings import Motion
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program, Step


class Task(Struct, frozen=True):
    """An instruction that Python runs: what it reads and writes, how its places move between blocks, if they do."""

    step: Step
    aside: Aside
    motion: Motion
    moves: bool


class Outcome(Struct, frozen=True):
    """What an instruction on barriers does to their words, and to the registers it writes; whether its lanes wait."""

    words: tuple[int, ...]
    rows: tuple[bytes, ...]
    waits: bool


class Desk(Struct):
    """Where the asides of a session are run: `tasks` by instruction.

    `states` are the bytes of all registers, `words` those of shared memory, 64 bits each. `sights` is what has been
    seen of copies whose places move between blocks. What was found before is kept: tensor maps by address, the barriers
    that a call names, and its outcome by what these held.
    """

    session: Session
    batch: Batch
    tasks: dict[int, Task]
    translation: Translation
    states: memoryview
    words: memoryview
    sights: Sights = field(default_factory=dict)
    maps: dict[int, TensorMap | None] = field(default_factory=dict)
    named: dict[tuple[object, ...], tuple[int, ...]] = field(default_factory=dict)
    outcomes: dict[tuple[object, ...], Outcome] = field(default_factory=dict)


def open_desk(session: Session, bound: BoundLaunch, program: Program, translation: Translation) -> Desk:
    """A desk at which nothing has been done yet."""
    count = len(bound.kernel.instructions)
    memory, none = open_global_memory(bound, _contents_of), np.zeros(count, np.int64)
    # Copies are counted, and barriers told, but no bytes move: nothing that matters is made of them.
    tally = Tally(program, bound, ExecutionOptions(), memory, {}, {}, none, none.copy(), brings=False)
    batch = open_batch(tally, np.zeros(1, np.int64))
    shared = session.regions["shared"].octets[: -(-max(bound.shared_bytes, 16) // 16) * 16]
    batch.memory.shared = make_storage(shared)
    tasks = {}
    for index, (step, motion) in translation.asides.items():
        aside = read_aside(step.instruction)
        if aside is not None:
            tasks[index] = Task(step, aside, motion, any(motion.forms))
    states = session.regions["states"].octets.data
    return Desk(session, batch, tasks, translation, states, shared.data.cast("Q"))


def _contents_of(allocation: Allocation) -> npt.NDArray[np.uint8]:
    """Parameters and constants are what they are; what buffers hold is not looked at."""
    if allocation.base not in (CONSTANT_WINDOW, PARAMETER_WINDOW):
        return make_sparse(allocation.size_bytes)
    return np.array(materialise(allocation.buffer)).reshape(-1).view(np.uint8)


def place_of(desk: Desk, warp: int, slot: int) -> int:
    """The first byte of a warp's register among the states: 32 words; of a predicate the first has a bit a lane."""
    return warp * desk.translation.state_bytes + desk.translation.offsets[slot]


def read_word(desk: Desk, warp: int, lane: int, slot: int) -> int:
    """A register's word in a lane."""
    place = place_of(desk, warp, slot) + 4 * lane
    return int.from_bytes(desk.states[place : place + 4], "little")


def show_rows(desk: Desk, warp: int, slots: tuple[int, ...]) -> tuple[bytes, ...]:
    """The bytes of registers in all lanes."""
    places = [(place_of(desk, warp, slot), 4 if slot >= PREDICATE else WORD_ROW) for slot in slots]
    return tuple(bytes(desk.states[place : place + size]) for place, size in places)


def open_window(desk: Desk, warp: int, aside: Aside) -> Window:
    """The registers that an instruction reads and writes, as the reference engine's functions see them."""
    values: list[npt.NDArray[np.generic] | None] = [None] * SLOTS
    for slot in (*aside.reads, *aside.writes):
        (row,) = show_rows(desk, warp, (slot,))
        words = np.frombuffer(row, np.uint32)
        values[slot] = unpack(words) if slot >= PREDICATE else words[None]
    return Window(desk.batch.registers, np.array([warp]), values, {})


def close_window(desk: Desk, warp: int, aside: Aside, window: Window) -> None:
    """Writes what changed back."""
    for slot in aside.writes:
        if slot in window.written:
            value = window.read(slot)
            words = pack(window.read_predicate(slot), 1) if slot >= PREDICATE else np.broadcast_to(value, (1, 32))
            row = np.ascontiguousarray(words, np.uint32).tobytes()
            place = place_of(desk, warp, slot)
            desk.states[place : place + len(row)] = row


def make_frame(warp: int, mask: int) -> Frame:
    """A group of one warp."""
    masks, rows = np.array([mask], np.uint32), np.array([warp])
    group = None if mask == 0xFFFFFFFF else unpack(masks)
    return Frame(rows, np.zeros(1, np.intp), rows, masks, group, group, 0, 0, 1, mask.bit_count())


def find_map(desk: Desk, address: int) -> TensorMap | None:
    """The tensor map at an address; None where that is no map that is followed."""
    if address not in desk.maps:
        memory = desk.batch.memory.global_memory
        number = int(np.searchsorted(memory.bases, address, side="right")) - 1
        known = number >= 0 and memory.allocations[number].base in (CONSTANT_WINDOW, PARAMETER_WINDOW)
        start = address - int(memory.bases[number])
        data = global_storage(memory, number).octets[start : start + MAP_BYTES].tobytes() if known else b""
        tensor = decode_map(data)
        desk.maps[address] = tensor if tensor is not None and tensor.is_plain else None
    return desk.maps[address]
