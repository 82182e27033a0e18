"""Turns the counts of memory instructions into the totals of a launch, under the names of the profiler's counters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.counting.request import Operation, Space
from sectorwise.machine.copy_forms import CopyOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from sectorwise.counting.request import Access
    from sectorwise.machine.execution import BulkCopies, Site

_DEVICE_SPACES: Final = frozenset({Space.GLOBAL, Space.GENERIC})
"""Spaces whose accesses pass the L1 tags as global ones (measured: family generic)."""

_BYTES_PER_LOCAL_REQUEST: Final = 4
"""The pipe counts a local access once for each 4 bytes of its width (measured: family local_memory)."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over a launch; None where a memory instruction that belongs to it has an unknown address.

    `*_requests`, `*_load_*`, `*_store_*`, `*_atom_*` and `*_red_*` are what the hardware's L1 pipe counts (a red is an
    atomic without a result); loads include cp.async and generic loads. `l1_tag_requests`, `l2_theoretical_*`,
    `shared_wavefronts` and `shared_wavefronts_ideal` are what the profiler's source view sums, and count every memory
    instruction. `instructions` are warp instructions, memory or not. `bulk_*_sectors` are what the profiler's counters
    of copies of whole tiles and ranges (TMA) count; None also in documents from before there were such numbers.
    """

    instructions: int
    global_load_requests: int
    global_load_sectors: int | None
    global_store_requests: int
    global_store_sectors: int | None
    global_atom_requests: int
    global_red_requests: int
    local_load_requests: int
    local_load_sectors: int | None
    local_store_requests: int
    local_store_sectors: int | None
    l1_tag_requests: int | None
    l2_theoretical_sectors: int | None
    l2_theoretical_sectors_ideal: int | None
    l2_theoretical_sectors_local: int | None
    shared_wavefronts: int | None
    shared_wavefronts_ideal: int | None
    shared_load_wavefronts: int | None
    shared_store_wavefronts: int | None
    shared_atom_wavefronts: int | None
    bulk_load_sectors: int | None = None
    bulk_store_sectors: int | None = None
    bulk_reduction_sectors: int | None = None


def sum_totals(sites: Sequence[Site], instructions: int, bulk: Sequence[BulkCopies] = ()) -> Totals:
    """Totals of the memory instructions `sites` of a launch that issued `instructions` warp instructions.

    `bulk` are its copies of whole tiles and ranges.
    """
    loads = [site for site in sites if _is_pipe_load(site.access)]
    stores = [site for site in sites if _matches(site.access, _DEVICE_SPACES, {Operation.STORE})]
    local_loads = [site for site in sites if _reaches_local(site) and site.access.operation is Operation.LOAD]
    local_stores = [site for site in sites if _reaches_local(site) and site.access.operation is Operation.STORE]
    device = [site for site in sites if site.access.space in _DEVICE_SPACES]
    shared = [site for site in sites if reaches_shared(site.access)]
    local = [site for site in sites if site.access.space in {Space.LOCAL, Space.GENERIC}]
    return Totals(
        instructions=instructions,
        global_load_requests=_count_requests(loads),
        global_load_sectors=_add(loads, lambda site: site.sectors_hardware),
        global_store_requests=_count_requests(stores),
        global_store_sectors=_add(stores, lambda site: site.sectors),
        global_atom_requests=_count_requests(site for site in device if site.access.operation is Operation.ATOMIC),
        global_red_requests=_count_requests(site for site in device if site.access.operation is Operation.REDUCTION),
        local_load_requests=_count_local_requests(local_loads),
        local_load_sectors=_add(local_loads, lambda site: site.sectors_local),
        local_store_requests=_count_local_requests(local_stores),
        local_store_sectors=_add(local_stores, lambda site: site.sectors_local),
        l1_tag_requests=_add(device, lambda site: site.tag_requests),
        l2_theoretical_sectors=_add(device, lambda site: site.sectors),
        l2_theoretical_sectors_ideal=_add(device, lambda site: site.sectors_ideal),
        l2_theoretical_sectors_local=_add(local, lambda site: site.sectors_local),
        shared_wavefronts=_add(shared, lambda site: site.wavefronts),
        shared_wavefronts_ideal=_add(shared, lambda site: site.wavefronts_ideal),
        shared_load_wavefronts=_add_pipe(shared, {Operation.LOAD, Operation.MATRIX_LOAD}),
        shared_store_wavefronts=_add_pipe(shared, {Operation.STORE, Operation.MATRIX_STORE}),
        shared_atom_wavefronts=_add_pipe(shared, {Operation.ATOMIC, Operation.REDUCTION}),
        bulk_load_sectors=_add_bulk(bulk, CopyOperation.LOAD),
        bulk_store_sectors=_add_bulk(bulk, CopyOperation.STORE),
        bulk_reduction_sectors=_add_bulk(bulk, CopyOperation.REDUCTION),
    )


def reaches_shared(access: Access) -> bool:
    """Whether an instruction of this form can touch shared memory."""
    return access.space in {Space.SHARED, Space.GENERIC} or access.operation is Operation.ASYNC_COPY


def _reaches_local(site: Site) -> bool:
    """Whether the pipe counts the instruction among those of local memory."""
    return site.access.space is Space.LOCAL or (site.access.space is Space.GENERIC and site.sectors_local > 0)


def _count_requests(sites: Iterable[Site]) -> int:
    """Requests to global memory.

    An issue without an active lane makes none (measured: tests/verify/reduction.ncu-rep), nor does a copy whose lanes
    all fill zeros (tile_bypass_filled_*, tile_through_filled_*), or a generic instruction whose lanes all go elsewhere
    (family spaces), to shared memory of other blocks too (`cluster_sum`).
    """
    return sum(
        site.executed - site.silent
        for site in sites
        if site.access.space is not Space.GENERIC or site.tag_requests or site.unknown_because is not None
    )


def _is_pipe_load(access: Access) -> bool:
    return _matches(access, _DEVICE_SPACES, {Operation.LOAD}) or access.operation is Operation.ASYNC_COPY


def _matches(access: Access, spaces: AbstractSet[Space], operations: AbstractSet[Operation]) -> bool:
    return access.space in spaces and access.operation in operations


def _add(sites: Iterable[Site], count: Callable[[Site], int]) -> int | None:
    """Sum over the sites; None where one of them is unknown, since a partial sum would pass for the whole."""
    known = list(sites)
    if any(site.unknown_because is not None for site in known):
        return None
    return sum(count(site) for site in known)


def _add_bulk(bulk: Sequence[BulkCopies], operation: CopyOperation) -> int | None:
    """Sectors of bulk copies that do this; None where one of them is unknown."""
    those = [each for each in bulk if each.form.operation is operation]
    return None if any(each.unknown_because is not None for each in those) else sum(each.sectors for each in those)


def _add_pipe(sites: Iterable[Site], operations: AbstractSet[Operation]) -> int | None:
    return _add([site for site in sites if site.access.operation in operations], lambda site: site.wavefronts_hardware)


def _count_local_requests(sites: Iterable[Site]) -> int:
    return sum(
        (site.executed - site.silent) * max(1, site.access.width_bytes // _BYTES_PER_LOCAL_REQUEST) for site in sites
    )
