"""Turns a crew of sessions of machine code into who runs samples of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.counted import Counted
from sectorwise.machine.native.plan import count_blocks, open_counters
from sectorwise.machine.program import ASYNCHRONOUS
from sectorwise.machine.sampling import Runner

if TYPE_CHECKING:
    from sectorwise.machine.native.plan import Crew
    from sectorwise.machine.program import Step

_FIRST_SAMPLE = 64
_ACCESS_WORK = 100
"""A memory access takes as long as so many instructions that compute."""

_CALL_WORK = 7000
"""And so does a call of Python."""


def make_runner(crew: Crew) -> Runner:
    """Who runs blocks as machine code; places are basic blocks, and work is as `ExecutionOptions` says."""
    relevant = crew.plan.relevant

    def weigh(step: Step) -> int:
        if step.instruction.opcode in ASYNCHRONOUS:
            return _CALL_WORK
        if step.access is not None:
            return _ACCESS_WORK
        return int(relevant is None or step.instruction.index in relevant)

    blocks = crew.built.translation.blocks.values()
    return Runner(
        lambda numbers: count_blocks(crew, numbers),
        lambda: Counted(open_counters(crew.plan, crew.built.translation), np.zeros((len(blocks), 2), np.int64)),
        np.asarray([block.stop - block.start for block in blocks], np.int64),
        np.asarray([sum(map(weigh, block.all_steps)) for block in blocks], np.int64),
        _FIRST_SAMPLE,
    )
