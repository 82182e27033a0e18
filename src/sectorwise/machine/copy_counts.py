"""Turns bulk copies as they are made into sums for each instruction, and those into what the execution reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.counting.pieces import SECTOR_BYTES
from sectorwise.machine.copy_forms import copy_form_of, global_access_of
from sectorwise.machine.copy_sums import CopyCounter
from sectorwise.machine.doubts import way_of
from sectorwise.machine.execution import BulkCopies, Certainty
from sectorwise.machine.observers import tell_request
from sectorwise.machine.sites import judge_doubts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction, Kernel
    from sectorwise.machine.batch import Batch, Tally
    from sectorwise.machine.frame import Frame

    Longs = npt.NDArray[np.int64]

_LANES: Final = 32


def find_copy_counter(tally: Tally, instruction: Instruction) -> CopyCounter:
    """The sums of an instruction, begun where there are none."""
    return tally.bulk.setdefault(instruction.index, CopyCounter())


def note_doubts(batch: Batch, frame: Frame, instruction: Instruction, doubt: int) -> None:
    """Adds what is uncertain of a copy's places and size, and of the way of its warps."""
    find_copy_counter(batch.tally, instruction).doubts |= doubt | way_of(batch, frame)


def note_unknown(batch: Batch, instruction: Instruction, because: str) -> None:
    """Says why copies of an instruction are not in its sums."""
    counter = find_copy_counter(batch.tally, instruction)
    counter.unknown = counter.unknown or because


def tell_sectors(
    batch: Batch, frame: Frame, instruction: Instruction, rows: Sequence[int], addresses: Sequence[Longs]
) -> None:
    """Shows observers the sectors of global memory of copies, 32 at a time: of each row of the frame the addresses."""
    access = global_access_of(instruction)
    observers = batch.tally.options.observers
    if not observers or access is None:
        return
    told: list[Longs] = []
    active: list[npt.NDArray[np.bool_]] = []
    warps: list[int] = []
    for row, places in zip(rows, addresses, strict=True):
        distinct = np.unique(places // SECTOR_BYTES) * SECTOR_BYTES
        count = -(-distinct.size // _LANES)
        padded = np.zeros(count * _LANES, np.int64)
        padded[: distinct.size] = distinct
        told.append(padded.reshape(count, _LANES))
        active.append((np.arange(count * _LANES) < distinct.size).reshape(count, _LANES))
        warps += [row] * count
    if not warps:
        return
    places_of = np.array(warps) if frame.rows is None else frame.rows[np.array(warps)]
    first = batch.first_block * batch.warps_per_block
    lanes = np.concatenate(active)
    tell_request(observers, instruction.index, access, first + places_of, np.concatenate(told), lanes)


def list_bulk_copies(tally: Tally, kernel: Kernel, *, is_sampled: bool) -> tuple[BulkCopies, ...]:
    """What the launch reports of each instruction that copied something, or might have."""
    found = []
    for index, counter in sorted(tally.bulk.items()):
        form = copy_form_of(kernel.instructions[index])
        if form is None:
            continue
        certainty = judge_doubts(counter.doubts)
        if certainty is Certainty.EXACT and counter.modelled:
            certainty = Certainty.MODELLED
        elif certainty is Certainty.EXACT and is_sampled:
            certainty = Certainty.SAMPLED
        found.append(
            BulkCopies(
                instruction=index,
                form=form,
                executed=int(tally.issued[index]),
                copies=counter.copies,
                targets=counter.targets,
                asked_bytes=counter.asked_bytes,
                outside_bytes=counter.outside_bytes,
                row_bytes=counter.shortest_row_bytes,
                sectors=counter.sectors,
                sectors_ideal=counter.sectors_ideal,
                sectors_l2=counter.sectors_l2,
                written_bytes=counter.written_bytes,
                certainty=certainty,
                unknown_because=counter.unknown,
                landings=tuple(sorted(counter.landings)),
                barriers=tuple(sorted(counter.barriers)),
            )
        )
    return tuple(found)
