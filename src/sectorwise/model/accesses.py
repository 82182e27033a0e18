"""Turns the counts of memory instructions into what one warp moves on average each time that it issues them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.forms import access_of
from sectorwise.model.schedule import Access, Shares

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sectorwise.binary.ir import Kernel
    from sectorwise.machine.execution import Execution, Site
    from sectorwise.model.traffic import Traffic

_SECTOR_BYTES: Final = 32
_SECTORS_IN_LINE: Final = 4
_DENSE_SECTORS: Final = 3
"""Sectors of each line from which on the lines of a request are taken to be neighbours."""

_ALL_FROM_DRAM: Final = Shares(1.0, 0.0, 0.0, 1.0, 1.0)

_DEVICE_SPACES: Final = frozenset({Space.GLOBAL, Space.GENERIC})


def average_accesses(
    sites: Sequence[Site], shares: Mapping[int, Shares] | None = None, idle: Iterable[int] = ()
) -> dict[int, Access]:
    """What a warp moves with each instruction that accesses global memory, by index of the instruction.

    Without `shares` all comes from DRAM. Instructions whose addresses are not known are left out; those that are
    `idle` (`find_idle`) move nothing.
    """
    nothing = dict.fromkeys(idle, Access(request_bytes=0.0, dram_share=0.0))
    return nothing | {
        site.instruction: _average(site, (shares or {}).get(site.instruction, _ALL_FROM_DRAM))
        for site in sites
        if site.access.space in _DEVICE_SPACES and site.executed and site.unknown_because is None
    }


def find_idle(kernel: Kernel, execution: Execution) -> list[int]:
    """Memory instructions that were issued, and each time with every lane switched off: nobody waits for them."""
    known = {site.instruction for site in execution.sites}
    return [
        each.index
        for each in kernel.instructions
        if execution.issued[each.index] and each.index not in known and access_of(each) is not None
    ]


def find_shares(execution: Execution, traffic: Traffic) -> dict[int, Shares]:
    """The parts of each instruction's sectors that come from, or go to, DRAM and the L2."""
    shares = traffic.shares()
    written = _SECTOR_BYTES * count_written(execution.sites)
    to_dram = min(1.0, traffic.dram_bytes_write / written) if written else 0.0
    stored = Shares(to_dram, 1 - to_dram, 0.0, 1.0, 1.0)
    return {site.instruction: shares.get(site.instruction, stored) for site in execution.sites}


def count_unknown(sites: Sequence[Site]) -> int:
    """Instructions that access global memory at addresses that are not known."""
    return sum(site.access.space in _DEVICE_SPACES and site.unknown_because is not None for site in sites)


def count_data_passes(sites: Sequence[Site]) -> int | None:
    """Passes of the L1 data stage over a launch; None where an address is not known.

    Shared memory's are those that the hardware counts. Of global memory each 128-byte line that a request touches
    takes one, which is an upper bound: words of several lines that lie in different banks share a pass. A local
    access takes one for each four sectors.
    """
    passes = 0
    for site in sites:
        if site.unknown_because is not None:
            return None
        passes += site.wavefronts_hardware + -(-site.sectors_local // _SECTORS_IN_LINE)
        if site.access.operation in {Operation.LOAD, Operation.STORE, Operation.ASYNC_COPY}:
            passes += site.tag_requests
    return passes


def count_written(sites: Sequence[Site]) -> int:
    """Sectors that stores, reductions and atomics send to the L2; instructions with unknown addresses are left out."""
    writes = {Operation.STORE, Operation.REDUCTION, Operation.ATOMIC}
    known = [site for site in sites if site.access.operation in writes and site.unknown_because is None]
    return sum(
        site.sectors_local if site.access.space is Space.LOCAL else site.sectors
        for site in known
        if site.access.space in _DEVICE_SPACES | {Space.LOCAL}
    )


def _average(site: Site, shares: Shares) -> Access:
    """What a request moves and waits for: the slowest of its lines that are late."""
    sectors, lines = site.sectors / site.executed, site.tag_requests / site.executed
    places = 1 if sectors >= _DENSE_SECTORS * lines else max(1, round(lines))
    beyond = shares.dram + shares.l2
    reach = min(1.0, max(shares.late, beyond))
    late_places = max(1.0, places * shares.late_lines / reach) if reach else 1.0
    from_dram = (shares.dram + shares.waiting) / beyond if beyond else 0.0
    reach_dram = reach * (1 - (1 - min(1.0, from_dram)) ** late_places)
    return Access(
        request_bytes=sectors * _SECTOR_BYTES,
        places=max(1, round(late_places * from_dram)),
        dram_share=shares.dram,
        l2_share=max(shares.l2, reach - shares.dram),
        waiting_share=max(shares.waiting, reach_dram - shares.dram),
    )
