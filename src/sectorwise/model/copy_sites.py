"""Turns bulk copies into sites, as if warps had asked for their sectors of global memory, past L1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.machine.copy_forms import Place, global_access_of
from sectorwise.machine.execution import Site

if TYPE_CHECKING:
    from sectorwise.binary.ir import Kernel
    from sectorwise.machine.execution import BulkCopies, Execution

_LINE_BYTES: Final = 128
_SECTORS_IN_LINE: Final = 4


def add_copy_sites(kernel: Kernel, execution: Execution) -> Execution:
    """The execution with a site for each instruction that copies from or to global memory, and no `bulk` any more.

    What caches, the L2 and DRAM do is the same for a sector whoever asks for it. A copy is one request.
    """
    if not execution.bulk:
        return execution
    made = tuple(_make_site(kernel, each) for each in execution.bulk)
    sites = (*execution.sites, *(site for site in made if site is not None))
    return replace(execution, sites=tuple(sorted(sites, key=lambda site: site.instruction)), bulk=())


def count_lines(copies: BulkCopies) -> int:
    """Lines of 128 bytes that the rows of all copies touch, where these are aligned: the fewest."""
    moved = copies.asked_bytes - copies.outside_bytes
    if not copies.row_bytes:
        return 0
    rows = -(-moved // copies.row_bytes)
    return max(-(-copies.sectors_l2 // _SECTORS_IN_LINE), rows * -(-copies.row_bytes // _LINE_BYTES))


def _make_site(kernel: Kernel, copies: BulkCopies) -> Site | None:
    access = global_access_of(kernel.instructions[copies.instruction])
    if access is None or Place.GLOBAL not in (copies.form.source, copies.form.target):
        return None
    return Site(
        instruction=copies.instruction,
        access=access,
        executed=copies.copies,
        lanes=copies.sectors_l2,
        sectors=copies.sectors_l2,
        sectors_ideal=min(copies.sectors_l2, copies.sectors_ideal or copies.sectors_l2),
        tag_requests=count_lines(copies),
        wavefronts=0,
        wavefronts_ideal=0,
        wavefronts_hardware=0,
        sectors_local=0,
        certainty=copies.certainty,
        unknown_because=copies.unknown_because,
        sectors_hardware=copies.sectors_l2,
    )
