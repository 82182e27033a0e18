"""Turns calls that machine code makes between basic blocks into what the reference engine's functions do there."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.ir import Address
from sectorwise.machine.asynchronous import run_asynchronous
from sectorwise.machine.convergence import State
from sectorwise.machine.lanes import unpack
from sectorwise.machine.mbarriers import find_words
from sectorwise.machine.native.aside_copies import copy_at_once
from sectorwise.machine.native.desk import (
    Outcome,
    close_window,
    make_frame,
    open_desk,
    open_window,
    place_of,
    show_rows,
)
from sectorwise.machine.native.layout import CONTEXT
from sectorwise.machine.native.session import guard_callback
from sectorwise.machine.native.unsupported import OccurredError, UnsupportedError

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.native.desk import Desk, Task
    from sectorwise.machine.native.session import Session
    from sectorwise.machine.native.translate import Translation
    from sectorwise.machine.program import Program
    from sectorwise.machine.registers import Window

_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32)
_MOST_KEPT = 1 << 14
"""So many outcomes are kept, then none: of a ring of barriers there are few."""


def attach_desk(session: Session, bound: BoundLaunch, program: Program, translation: Translation) -> None:
    """Lets machine code of a session call what its translation leaves to Python."""
    desk = open_desk(session, bound, program, translation)
    session.copies = desk.batch.tally.bulk
    session.sights = desk.sights

    def run(index: int, taken: int) -> int:
        waits: list[bool] = []
        guard_callback(session, lambda: waits.append(_run(desk, index, taken)))
        return int(waits[0]) if waits else 0

    callback = _CALLBACK(run)
    session.keep.append(callback)
    session.context.put(CONTEXT["aside"], "Q", ctypes.cast(callback, ctypes.c_void_p).value or 0)


def _run(desk: Desk, index: int, taken: int) -> bool:
    """Runs an instruction for some lanes of the group that runs; says whether they wait."""
    context, task = desk.session.context, desk.tasks[index]
    warp, mask = context.get(CONTEXT["warp_number"], "q"), context.get(CONTEXT["mask"], "I")
    if task.aside.is_copy:
        if not copy_at_once(desk, task, warp, (mask & -mask).bit_length() - 1):
            _run_apart(desk, task, warp, (mask, taken))
        return False
    return _run_remembered(desk, task, warp, (mask, taken))


def _run_remembered(desk: Desk, task: Task, warp: int, lanes: tuple[int, int]) -> bool:
    """Runs an instruction on barriers, or does again what it did to barriers that held the same."""
    aside = task.aside
    call = (task.step.instruction.index, lanes, *show_rows(desk, warp, (*aside.reads, *aside.writes)))
    named = desk.named.get(call)
    if named is not None:
        key = (call, tuple(desk.words[cell] for cell in named))
        outcome = desk.outcomes.get(key)
        if outcome is not None:
            for cell, word in zip(named, outcome.words, strict=True):
                desk.words[cell] = word
            for slot, row in zip(aside.writes, outcome.rows, strict=True):
                place = place_of(desk, warp, slot)
                desk.states[place : place + len(row)] = row
            return outcome.waits
    frame, window = make_frame(warp, lanes[0]), open_window(desk, warp, aside)
    named = _name_barriers(desk, task, (frame, window), lanes[1])
    before = tuple(desk.words[cell] for cell in named)
    waits = _run_apart(desk, task, warp, lanes)
    if len(desk.outcomes) >= _MOST_KEPT:
        desk.outcomes.clear()
        desk.named.clear()
    desk.named[call] = named
    words = tuple(desk.words[cell] for cell in named)
    desk.outcomes[call, before] = Outcome(words, show_rows(desk, warp, aside.writes), waits)
    return waits


def _name_barriers(desk: Desk, task: Task, where: tuple[Frame, Window], taken: int) -> tuple[int, ...]:
    """The words of shared memory that an instruction changes or looks at."""
    instruction, (frame, window) = task.step.instruction, where
    address = next((operand for operand in instruction.operands if isinstance(operand, Address)), None)
    if address is None:
        return ()
    lanes = unpack(np.array([taken], np.uint32))
    cells, valid = find_words(desk.batch, frame, window, instruction, address, lanes)
    return () if cells is None else tuple(sorted(set(cells[valid].tolist())))


def _run_apart(desk: Desk, task: Task, warp: int, lanes: tuple[int, int]) -> bool:
    """Has the reference engine's function run an instruction; says whether its lanes wait."""
    mask, taken = lanes
    batch, frame, window = desk.batch, make_frame(warp, mask), open_window(desk, warp, task.aside)
    batch.groups.mask[warp] = mask
    behind = run_asynchronous(batch, frame, window, task.step, np.array([taken], np.uint32))
    batch.groups.state[warp] = State.RUNS
    if batch.tally.faults.first or batch.tally.faults.remote:
        raise OccurredError("something happened that the reference engine describes")
    if batch.tally.limitations:
        raise UnsupportedError(f"{task.step.instruction.text} does what the reference engine describes")
    close_window(desk, warp, task.aside, window)
    return behind is None
