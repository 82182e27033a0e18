"""Turns an instruction without a definition into results that are marked unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.effects import destinations, slot_number
from sectorwise.machine.products import PRODUCTS
from sectorwise.machine.sites import record_silent
from sectorwise.machine.taint import UNKNOWN_LEVEL

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.machine.batch import Tally
    from sectorwise.machine.numpy_port import NumpyPort
    from sectorwise.machine.program import Step
    from sectorwise.machine.registers import Window


def skip_unknown_step(tally: Tally, port: NumpyPort, step: Step) -> None:
    """Marks all that the instruction would have written as unknown; its memory access, if any, is not counted."""
    index = step.instruction.index
    mark_results_unknown(tally, port.window, step, port.mask, step.unknown_because)
    if step.instruction.opcode in PRODUCTS:
        tally.products[index] = tally.products.get(index, 0) | port.way
    if step.access is not None:
        counter = port.counters[index]
        counter.unknown = True
        record_silent(counter, port.issuing)


def mark_results_unknown(
    tally: Tally, window: Window, step: Step, mask: npt.NDArray[np.bool_] | None, because: str
) -> None:
    """Marks all that an instruction would have written in the lanes of `mask` as unknown, and says why."""
    say_unknown(tally, step, because)
    for slot in destinations(step.instruction):
        window.write_taint(slot_number(slot), UNKNOWN_LEVEL, mask)
        if window.rows is not None:
            window.written.add(slot_number(slot))


def say_unknown(tally: Tally, step: Step, because: str) -> None:
    """Says why what an instruction writes is not known."""
    index = step.instruction.index
    tally.origins.setdefault(index, because)
    if step.access is None:
        # Memory instructions become sites of unknown address, which say why by themselves.
        tally.limitations.setdefault((index, f"{because}: its results are taken as unknown"), None)
