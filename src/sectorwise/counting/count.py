"""Turns the requests of one instruction form into counts, by the rule of its space and operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.async_copy import (
    count_bypass_sectors,
    count_bypass_sectors_hardware,
    count_bypass_wavefronts,
    count_copy_wavefronts,
    count_copy_wavefronts_hardware,
    select_bypass_lanes,
)
from sectorwise.counting.atomics import (
    adds_floats,
    count_atomic_wavefronts,
    count_generic_passes,
    count_ideal_atomic_wavefronts,
)
from sectorwise.counting.banks import (
    MATRIX_ROW_BYTES,
    MATRIX_ROWS,
    count_ideal_wavefronts,
    count_load_wavefronts,
    count_load_wavefronts_hardware,
    count_matrix_wavefronts,
    count_store_wavefronts,
)
from sectorwise.counting.coalescing import (
    count_ideal_sectors,
    count_local_sectors,
    count_sectors,
    count_tag_requests,
)
from sectorwise.counting.request import Counts, Operation, Requests, Space
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

GENERIC_GLOBAL = 0
GENERIC_SHARED = 1
GENERIC_LOCAL = 2
GENERIC_ELSEWHERE = 3
"""Shared memory of another block of the cluster: the source view counts nothing of it."""


def count_requests(requests: Requests) -> Counts:
    """Count every request of one instruction form, in the profiler's words.

    Raises ArgumentError where the arrays that the form needs are missing or of another shape than [n, 32].
    """
    _check_shapes(requests)
    match requests.access.operation:
        case Operation.ASYNC_COPY:
            return _count_copies(requests)
        case Operation.MATRIX_LOAD | Operation.MATRIX_STORE:
            return _count_matrices(requests)
    match requests.access.space:
        case Space.GLOBAL:
            return _count_global(requests, requests.mask)
        case Space.SHARED:
            return _count_shared(requests, requests.mask)
        case Space.LOCAL:
            return _count_local(requests, requests.mask)
        case Space.GENERIC:
            return _count_generic(requests)
        case Space.TEXTURE | Space.SURFACE:
            message = f"{requests.access.opcode}: texture and surface accesses have no counting rule"
            raise ArgumentError(message)


def _count_global(requests: Requests, mask: npt.NDArray[np.bool_]) -> Counts:
    sectors = count_sectors(requests.addresses, mask)
    return _counts(
        len(mask),
        sectors=sectors,
        sectors_ideal=count_ideal_sectors(sectors, mask, requests.access.width_bytes),
        tag_requests=count_tag_requests(requests.addresses, mask),
    )


def _count_shared(requests: Requests, mask: npt.NDArray[np.bool_]) -> Counts:
    access, addresses, width = requests.access, requests.addresses, requests.access.width_bytes
    match access.operation:
        case Operation.LOAD:
            wavefronts = count_load_wavefronts(addresses, mask, width)
            hardware = count_load_wavefronts_hardware(addresses, mask, width, requests.mask)
            ideal = count_ideal_wavefronts(wavefronts, mask, width)
        case Operation.STORE:
            wavefronts = hardware = count_store_wavefronts(addresses, mask, width)
            ideal = count_ideal_wavefronts(wavefronts, mask, width)
        case _:
            generic = access.space is Space.GENERIC
            shown = np.zeros_like(mask) if generic and adds_floats(access.modifiers) else mask
            wavefronts = hardware = count_atomic_wavefronts(addresses, shown, width, access.modifiers)
            ideal = count_ideal_atomic_wavefronts(wavefronts, shown, width, access.modifiers)
            if generic:
                hardware = count_generic_passes(addresses, mask, requests.mask, width, access.modifiers)
    return _counts(len(mask), wavefronts=wavefronts, wavefronts_ideal=ideal, wavefronts_hardware=hardware)


def _count_local(requests: Requests, mask: npt.NDArray[np.bool_]) -> Counts:
    sectors = count_local_sectors(requests.addresses, mask, requests.access.width_bytes)
    return _counts(len(mask), sectors_local=sectors)


def _count_generic(requests: Requests) -> Counts:
    """Count each space's lanes by that space's own rule: a generic request is split by where its lanes point."""
    spaces = requests.generic_spaces
    if spaces is None:
        message = f"{requests.access.opcode}: generic requests need the space of each lane"
        raise ArgumentError(message)
    in_global = _count_global(requests, requests.mask & (spaces == GENERIC_GLOBAL))
    in_shared = _count_shared(requests, requests.mask & (spaces == GENERIC_SHARED))
    in_local = _count_local(requests, requests.mask & (spaces == GENERIC_LOCAL))
    return Counts(
        sectors=in_global.sectors,
        sectors_ideal=in_global.sectors_ideal,
        tag_requests=in_global.tag_requests,
        wavefronts=in_shared.wavefronts,
        wavefronts_ideal=in_shared.wavefronts_ideal,
        wavefronts_hardware=in_shared.wavefronts_hardware,
        sectors_local=in_local.sectors_local,
        sectors_hardware=in_global.sectors_hardware,
        exact=in_shared.exact,
    )


def _count_copies(requests: Requests) -> Counts:
    access, mask = requests.access, requests.mask
    destinations = requests.shared_addresses
    if destinations is None:
        message = f"{access.opcode}: asynchronous copies need their shared destinations"
        raise ArgumentError(message)
    copied = mask if requests.source_bytes is None else mask & (requests.source_bytes > 0)
    tags = count_tag_requests(requests.addresses, copied)
    filling = count_store_wavefronts(destinations, mask & ~copied, access.width_bytes)
    if "BYPASS" not in access.modifiers:
        sectors = count_sectors(requests.addresses, copied)
        through = count_copy_wavefronts(requests.addresses, destinations, mask, copied, access.width_bytes)
        return _counts(
            len(mask),
            sectors=sectors,
            sectors_ideal=count_ideal_sectors(sectors, copied, access.width_bytes),
            tag_requests=tags,
            wavefronts=through,
            wavefronts_ideal=count_ideal_wavefronts(through, mask, access.width_bytes),
            wavefronts_hardware=filling
            + count_copy_wavefronts_hardware(requests.addresses, destinations, copied, access.width_bytes),
        )
    is_sized = "ZFILL" in access.modifiers
    seen = select_bypass_lanes(destinations, _see_past_guard(requests, copied if is_sized else mask))
    moving = seen if requests.source_bytes is None else seen & (requests.source_bytes > 0)
    sectors = count_bypass_sectors(requests.addresses, destinations, moving)
    around, around_ideal, certain = _count_passes_around(requests, destinations, copied)
    return _counts(
        len(mask),
        sectors=sectors,
        sectors_ideal=count_ideal_sectors(sectors, moving, access.width_bytes),
        tag_requests=tags,
        wavefronts=around,
        wavefronts_ideal=around_ideal,
        wavefronts_hardware=filling,  # the data arrive from L2 by the fill path, only zeros by the data pipe
        sectors_hardware=count_bypass_sectors_hardware(requests.addresses, destinations, copied),
        exact=not is_sized and certain,
    )


def _count_passes_around(
    requests: Requests, destinations: npt.NDArray[np.int64], copied: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """The passes of copies around L1, the ideal, and whether they are certain.

    A request that fills zeros counts twice: the lanes that read as a copy around L1, and all as one through it.
    """
    access, mask = requests.access, requests.mask
    taken = copied if access.taken_to_read is None else mask & access.taken_to_read
    lanes = select_bypass_lanes(destinations, _see_past_guard(requests, taken))
    around, certain = count_bypass_wavefronts(requests.addresses, destinations, lanes)
    ideal = count_ideal_wavefronts(around, lanes, access.width_bytes)
    through = count_copy_wavefronts(requests.addresses, destinations, mask, taken, access.width_bytes)
    fills = (mask & ~taken).any(axis=1)
    return (
        around + np.where(fills, through, 0),
        ideal + np.where(fills, count_ideal_wavefronts(through, mask, access.width_bytes), 0),
        bool(certain.all()),
    )


def _see_past_guard(requests: Requests, lanes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the lanes that the source view counts of a copy around L1.

    It misreads the guard: under `@P0` it counts no lane at all, under `@!P0` every lane that issues the instruction.
    """
    match requests.access.guard_negated:
        case None:
            return lanes
        case True:
            return lanes if requests.issued is None else requests.issued
        case False:
            return np.zeros_like(lanes)


def _count_matrices(requests: Requests) -> Counts:
    matrices = requests.access.matrices
    if matrices not in {1, 2, 4}:
        message = f"{requests.access.opcode}: expected 1, 2 or 4 matrices, got {matrices}"
        raise ArgumentError(message)
    addressed = requests.mask & (np.arange(requests.mask.shape[1]) < matrices * MATRIX_ROWS)
    wavefronts = count_matrix_wavefronts(requests.addresses, addressed, matrices)
    ideal = count_ideal_wavefronts(wavefronts, addressed, MATRIX_ROW_BYTES)
    return _counts(len(addressed), wavefronts=wavefronts, wavefronts_ideal=ideal, wavefronts_hardware=wavefronts)


def _counts(rows: int, *, exact: bool = True, **arrays: npt.NDArray[np.int64]) -> Counts:
    """Fill the quantities that do not apply with zeros; the pipe counts the sectors unless told otherwise."""
    zeros = np.zeros(rows, dtype=np.int64)
    return Counts(
        sectors=arrays.get("sectors", zeros),
        sectors_ideal=arrays.get("sectors_ideal", zeros),
        tag_requests=arrays.get("tag_requests", zeros),
        wavefronts=arrays.get("wavefronts", zeros),
        wavefronts_ideal=arrays.get("wavefronts_ideal", zeros),
        wavefronts_hardware=arrays.get("wavefronts_hardware", zeros),
        sectors_local=arrays.get("sectors_local", zeros),
        sectors_hardware=arrays.get("sectors_hardware", arrays.get("sectors", zeros)),
        exact=exact,
    )


def _check_shapes(requests: Requests) -> None:
    expected = (len(requests.mask), 32)
    for name in ("addresses", "mask", "shared_addresses", "source_bytes", "generic_spaces", "issued"):
        array = getattr(requests, name)
        if array is not None and array.shape != expected:
            message = f"{requests.access.opcode}: {name} must have shape {expected}, got {array.shape}"
            raise ArgumentError(message)
