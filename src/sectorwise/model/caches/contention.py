"""Turns the addresses of atomics into how long the L2 is busy with those that meet: at one sector, and in one slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct, field

from sectorwise.model.bounds import find_pace

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.counting.request import Access
    from sectorwise.device import DeviceSpec

MOST_ADDRESSES: Final = 100_000
"""Addresses, and sectors, of atomics that are told apart."""

SECTOR_BYTES: Final = 32
_PIECE_SHIFT: Final = 10
"""Bytes of a piece that lies in two slices, 256 by 256 bytes: so fast are lines of atomics in these distances."""
_PART_SHIFT: Final = 8
_ROW_SHIFT: Final = 48
_FLOATS: Final = ("F16", "F32", "F64", "BF16")


class Contention(Struct, frozen=True):
    """What meets at the L2: `hottest_lanes` on one address; `hottest_ns` one sector is busy, `busiest_ns` one slice."""

    hottest_lanes: float
    hottest_ns: float
    busiest_ns: float


NO_CONTENTION: Final = Contention(0, 0.0, 0.0)


class ContentionRecorder(Struct):
    """Adds up the work of the atomics of some requests, on one device.

    A slice works on one sector of a request after the other, as often as lanes ask for one address in it: a pass takes
    `atomic_sector_ns` if it takes all bytes of the sector, twice that of doubles and for two operands (CAS), and
    `same_address_ns` else. Sums of floats in one sector wait for each other, `same_address_float_ns` a pass, while the
    slice works on others. All of a line's sectors are in one slice (tests/measured/device/contention.json). There are
    as many slices as work at once on sectors of one word each; an odd number of pairs, so that strides of powers of two
    reach all of them.
    """

    device: DeviceSpec
    _slices: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    _lanes: dict[int, int] = field(default_factory=dict)
    _sectors: dict[int, float] = field(default_factory=dict)

    def add(self, access: Access, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]) -> None:
        """Adds requests, a row of 32 lanes each."""
        pace = find_pace(self.device)[0]
        if not self._slices.size:
            pairs = int(pace.atomic_sectors_per_ns * pace.same_address_ns / 2) | 1
            self._slices = np.zeros(2 * pairs)
        floats = any(name.startswith(_FLOATS) for name in access.modifiers)
        places, lanes = np.unique(addresses[active], return_counts=True)
        _add_up(self._lanes, places, lanes)
        sector, passes, words_asked = count_sector_passes(addresses, active)
        whole = words_asked * access.width_bytes >= SECTOR_BYTES
        swaps = "CAS" in access.modifiers
        whole_ns = pace.atomic_sector_ns * (2 if swaps or "F64" in access.modifiers else 1)
        part_ns = np.where(swaps & (words_asked > 1), whole_ns, pace.same_address_ns)
        slices = choose_slices(sector, self._slices.size)
        np.add.at(self._slices, slices, passes * np.where(whole, whole_ns, part_ns))
        _add_up(self._sectors, sector, passes * (pace.same_address_float_ns if floats else 0.0))

    def close(self) -> Contention:
        """What was added."""
        return Contention(
            max(self._lanes.values(), default=0),
            max(self._sectors.values(), default=0.0),
            float(self._slices.max(initial=0.0)),
        )


def grow_contention(met: Contention, times: float) -> Contention:
    """What so many times the work meets, at the same places."""
    return Contention(met.hottest_lanes * times, met.hottest_ns * times, met.busiest_ns * times)


def choose_slices(sector: npt.NDArray[np.int64], slices: int) -> npt.NDArray[np.int64]:
    """The slice of the L2 that works on each sector: the two of a piece are neighbours, and so are pieces.

    Of 8, 16, 64 neighbouring pieces atomics keep 12, 24, 43 slices busy: nearly as many as there can be.
    """
    address = sector * SECTOR_BYTES
    return 2 * ((address >> _PIECE_SHIFT) % max(1, slices // 2)) + (address >> _PART_SHIFT & 1)


def count_sector_passes(
    addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Sectors of each request (numbers), how often its lanes ask for one address there at most, and for how many."""
    row, lane = np.nonzero(active)
    keys, lanes = np.unique((row << _ROW_SHIFT) | addresses[row, lane], return_counts=True)
    if not keys.size:
        return keys, lanes, lanes
    sectors = keys // SECTOR_BYTES
    begins = np.flatnonzero(np.concatenate([[True], sectors[1:] != sectors[:-1]]))
    passes = np.maximum.reduceat(lanes, begins)
    words = np.diff(begins, append=keys.size)
    return sectors[begins] & ((1 << _ROW_SHIFT - 5) - 1), passes, words


def _add_up(sums: dict[int, int] | dict[int, float], keys: npt.NDArray[np.int64], values: npt.NDArray[Any]) -> None:
    """Add values to those of their keys, as long as these are few enough to remember."""
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if key in sums or len(sums) < MOST_ADDRESSES:
            sums[key] = sums.get(key, 0) + value
