"""Turns rows of 32 shared-memory atomics into the passes that they serialise into."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.banks import PASS_BYTES, count_store_wavefronts
from sectorwise.counting.patterns import LANES, count_equal, count_valid, divide_up, sum_rows

if TYPE_CHECKING:
    import numpy.typing as npt

_WHOLE = frozenset({"ADD", "EXCH", "CAS"})
_FLOATS = ("F16", "F32", "F64", "BF16")


def count_atomic_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int, modifiers: tuple[str, ...]
) -> npt.NDArray[np.int64]:
    """Count the passes of shared atomics, in the source view and in the pipe: `addresses` bytes [n, 32] to int64 [n].

    A count of lanes (ATOMS.POPC.INC) combines lanes of one word and costs as much as a store. Every other operation
    serialises the lanes of one bank, equal addresses included: 32 lanes at a time for 4 bytes, 16 for 8. A
    compare-and-swap takes each pass twice. The attempt of a loop (CAST.SPIN) takes two passes whatever the addresses,
    for one lane of each bank succeeds and the others come again.
    """
    if "POPC" in modifiers:
        return count_store_wavefronts(addresses, mask, width_bytes)
    lanes = min(LANES, PASS_BYTES // width_bytes)
    active = mask.reshape(-1, lanes)
    if "SPIN" in modifiers:
        return 2 * count_valid(active.any(axis=1).reshape(len(mask), -1))
    banks = (addresses // width_bytes % lanes).reshape(-1, lanes)
    serial = np.where(active, count_equal(banks, active), 0).max(axis=1)
    return count_rounds(modifiers) * sum_rows(serial.reshape(len(mask), -1))


def count_ideal_atomic_wavefronts(
    wavefronts: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int, modifiers: tuple[str, ...]
) -> npt.NDArray[np.int64]:
    """Return the passes that the active lanes would need without conflicts, never more than `wavefronts` [n]."""
    return np.minimum(wavefronts, count_rounds(modifiers) * divide_up(count_valid(mask) * width_bytes, PASS_BYTES))


def is_done_in_shared(width_bytes: int, modifiers: tuple[str, ...]) -> bool:
    """Whether a generic atomic updates shared memory itself; if not, a predicate sends the lanes there to code behind.

    Measured on an H200 (`generic_updates`, `generic_half_sums`): all operations on integers of 32 bits, and sums,
    exchanges and comparisons of 64. The least and the greatest of 64 bits are not, nor are sums of floats.
    """
    if adds_floats(modifiers):
        return False
    return width_bytes < 8 or not _WHOLE.isdisjoint(modifiers)


def adds_floats(modifiers: tuple[str, ...]) -> bool:
    """Whether the operation is a sum of floats: the source view counts none of a generic one in shared memory."""
    return any(name.startswith(_FLOATS) for name in modifiers)


def count_generic_passes(
    addresses: npt.NDArray[np.int64],
    inside: npt.NDArray[np.bool_],
    mask: npt.NDArray[np.bool_],
    width_bytes: int,
    modifiers: tuple[str, ...],
) -> npt.NDArray[np.int64]:
    """Count the passes of generic atomics in the pipe, of which the lanes `inside` are in shared memory, to int64 [n].

    Each group of lanes passes once at least, wherever its lanes point: also if all are in global memory, or if the
    update is not done in shared memory. Addresses are bytes [n, 32].
    """
    lanes = min(LANES, PASS_BYTES // width_bytes)
    groups = mask.reshape(-1, lanes)
    serial = np.zeros(len(groups), np.int64)
    if is_done_in_shared(width_bytes, modifiers):
        active = inside.reshape(-1, lanes)
        banks = (addresses // width_bytes % lanes).reshape(-1, lanes)
        serial = np.where(active, count_equal(banks, active), 0).max(axis=1)
    return count_rounds(modifiers) * sum_rows(np.maximum(serial, groups.any(axis=1)).reshape(len(mask), -1))


def count_rounds(modifiers: tuple[str, ...]) -> int:
    """How often an operation passes over the data: comparing and swapping are two."""
    return 2 if "CAS" in modifiers or "CAST" in modifiers else 1
