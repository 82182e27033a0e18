"""Turns what a launch has counted into the frozen execution that the rest of the package reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine.copy_counts import list_bulk_copies
from sectorwise.machine.encounters import explain_encounters
from sectorwise.machine.execution import Certainty, Execution, Fault, Limitation
from sectorwise.machine.hangs import list_hangs
from sectorwise.machine.products import PRODUCTS, list_product_sites
from sectorwise.machine.reasons import explain_unknown
from sectorwise.machine.recursion import doubt_recursion
from sectorwise.machine.sites import close_site, judge_doubts

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.binary.ir import Kernel
    from sectorwise.machine.batch import Tally
    from sectorwise.machine.execution import Sampling
    from sectorwise.machine.memory import GlobalMemory


def make_execution(tally: Tally, blocks: int, sampling: Sampling | None = None) -> Execution:
    """The execution of a launch all of whose `blocks` have run, or stand for others by `sampling`."""
    kernel = tally.bound.kernel
    doubt_recursion(tally)
    sites = tuple(
        replace(
            close_site(counter, explain_unknown(kernel, index, tally.origins) if counter.unknown else None),
            elsewhere=index in tally.faults.remote,
        )
        for index, counter in sorted(tally.counters.items())
        # As the profiler, which lists no instruction whose lanes were predicated off in every warp that issued it.
        if counter.lanes or counter.unknown or counter.sums.any()
    )
    products = list_product_sites(kernel, tally.issued, tally.products, is_sampled=sampling is not None)
    sites = tuple(sorted((*sites, *products), key=lambda site: site.instruction))
    said = dict(tally.limitations)
    for index in sorted(tally.unknown_conditions):
        because = explain_unknown(kernel, index, tally.origins)
        said[index, f"whether lanes go this way is not known: {because}; they are taken not to"] = None
    for index in sorted(tally.faults.remote & tally.counters.keys()):
        said[index, "it reaches into another block's shared memory, of which the profiler counts nothing"] = None
    said.update(dict.fromkeys(explain_encounters(tally.counters)))
    limitations = [
        Limitation(index, because, of_values=(index, because) in tally.uncomputed or _is_product(kernel, index))
        for index, because in sorted(said)
    ]
    limitations += [Limitation(site.instruction, site.unknown_because) for site in sites if site.unknown_because]
    return Execution(
        sites,
        tally.issued,
        tally.lanes,
        _faults_of(tally),
        tuple(limitations),
        _make_reader(tally.global_memory, tally),
        blocks if sampling is None else blocks - sampling.of + len(sampling.blocks),
        sampling,
        tally.lengths,
        list_bulk_copies(tally, kernel, is_sampled=sampling is not None),
        list_hangs(tally),
    )


def _is_product(kernel: Kernel, index: int) -> bool:
    """Whether an instruction multiplies matrices: how much it reads is known, whatever comes out of it."""
    return kernel.instructions[index].opcode in PRODUCTS


def _faults_of(tally: Tally) -> tuple[Fault, ...]:
    log = tally.faults
    ordered = sorted(log.first.items(), key=lambda item: (item[0][0], item[0][1].value))
    return tuple(_finish_fault(tally, fault, log.occurrences[key]) for key, fault in ordered)


_UNSURE = {
    Certainty.ASSUMED: "whether lanes access this hangs on values that are assumed",
    Certainty.SCHEDULE_DEPENDENT: "whether lanes access this depends on the order of warps",
}


def _finish_fault(tally: Tally, fault: Fault, occurrences: int) -> Fault:
    counter = tally.counters.get(fault.instruction)
    certainty = Certainty.EXACT if counter is None else judge_doubts(counter.doubts)
    said = "" if certainty is Certainty.EXACT else f"; {_UNSURE[certainty]}"
    return replace(fault, occurrences=occurrences, message=fault.message + said, certainty=certainty)


def _make_reader(memory: GlobalMemory, tally: Tally) -> Callable[[int], npt.NDArray[np.uint8]]:
    """A function that gives the final bytes of allocation i of the bound launch, made now if nothing touched it."""

    def read_buffer(number: int) -> npt.NDArray[np.uint8]:
        allocation = tally.bound.allocations[number]
        storage = memory.storages[memory.allocations.index(allocation)]
        content = memory.materialise(allocation) if storage is None else storage.octets
        return np.array(content[: allocation.size_bytes])

    return read_buffer
