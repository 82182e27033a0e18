"""Turns an instruction without a definition into results that are marked unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.effects import destinations, slot_number
from sectorwise.machine.sites import record_silent
from sectorwise.machine.taint import UNKNOWN_LEVEL

if TYPE_CHECKING:
    from sectorwise.machine.batch import Tally
    from sectorwise.machine.numpy_port import NumpyPort
    from sectorwise.machine.program import Step


def skip_unknown_step(tally: Tally, port: NumpyPort, step: Step) -> None:
    """Marks all that the instruction would have written as unknown; its memory access, if any, is not counted."""
    index = step.instruction.index
    tally.origins.setdefault(index, step.unknown_because)
    if step.access is None:
        # Memory instructions become sites of unknown address, which say why by themselves.
        tally.limitations.setdefault((index, f"{step.unknown_because}: its results are taken as unknown"), None)
    for slot in destinations(step.instruction):
        port.window.write_taint(slot_number(slot), UNKNOWN_LEVEL, port.mask)
        if port.window.rows is not None:
            port.window.written.add(slot_number(slot))
    if step.access is not None:
        counter = port.counters[index]
        counter.unknown = True
        record_silent(counter, port.issuing)
