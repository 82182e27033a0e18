"""Turns rows of 32 shared-memory atomics into the passes that they serialise into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.counting.banks import count_lanes_in_bank, count_store_wavefronts

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


def count_atomic_wavefronts(
    addresses: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_], width_bytes: int, modifiers: tuple[str, ...]
) -> npt.NDArray[np.int64]:
    """Count the passes of shared atomics: `addresses` bytes [n, 32] to int64 [n].

    A count of lanes (ATOMS.POPC.INC) combines lanes of one word and costs as much as a store. Every other operation
    serialises the lanes of one bank, equal addresses included.
    """
    if "POPC" in modifiers:
        return count_store_wavefronts(addresses, mask, width_bytes)
    return count_lanes_in_bank(addresses, mask)
