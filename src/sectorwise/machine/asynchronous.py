"""Turns instructions on mbarriers, clusters and whole ranges of memory over to the module that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.bulk_copies import arrive_for_tensor_cores, run_bulk_copy, store_async
from sectorwise.machine.cluster_barriers import arrive_in_cluster, wait_for_cluster
from sectorwise.machine.mbarriers import run_mbarrier

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.program import Step
    from sectorwise.machine.registers import Window


def run_asynchronous(
    batch: Batch, frame: Frame, window: Window, step: Step, taken: npt.NDArray[np.uint32]
) -> int | None:
    """Runs one of `program.ASYNCHRONOUS` for the `taken` lanes; the next place, None where groups have changed."""
    instruction = step.instruction
    match instruction.opcode:
        case "SYNCS" | "ARRIVES":
            return run_mbarrier(batch, frame, window, step, taken)
        case "UCGABAR_ARV":
            arrive_in_cluster(batch, frame, taken)
            return instruction.index + 1
        case "UCGABAR_WAIT":
            return wait_for_cluster(batch, frame, instruction.index, taken)
        case "STAS":
            return store_async(batch, frame, window, instruction, taken)
        case "UTCBAR":
            return arrive_for_tensor_cores(batch, frame, window, instruction, taken)
        case _:
            return run_bulk_copy(batch, frame, window, instruction, taken)
