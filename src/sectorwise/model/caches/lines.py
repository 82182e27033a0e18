"""Turns requests, as some blocks of a launch issue them, into the 128-byte lines that they touch, in order."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct, field

from sectorwise.counting.banks import count_store_wavefronts
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.copy_forms import global_access_of
from sectorwise.machine.forms import access_of
from sectorwise.machine.memory import generic_spaces
from sectorwise.model.caches.contention import ContentionRecorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt

    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Access
    from sectorwise.model.caches.contention import Contention

    Addresses = npt.NDArray[np.int64]
    Lanes = npt.NDArray[np.bool_]

_SECTOR_SHIFT: Final = 5
SECTORS_IN_LINE: Final = 4
_ROW_SHIFT: Final = 48
"""Above the bits of an address, so that a row number and a sector number fit one sortable integer."""

_LOCAL_BASE: Final = 1 << 46
"""Local memory lies above all buffers, a region a warp, its words interleaved by lane as on the hardware."""

REQUESTS_TIMED: Final = 64
"""Requests of an instruction whose passes are counted."""

MOST_LINES: Final = 3_000_000
"""Lines kept at most, 20 bytes each; later ones are dropped, and the stream says so."""


LINE_BYTES: Final = 128
SECTOR_BYTES: Final = 32

COUNT_OF_BITS: Final = tuple(bits.bit_count() for bits in range(16))
"""Sectors of a line by the bits that name them."""

_LINE_BITS: Final = 42
"""Bits of a line's number, local memory and all."""

_PRIMITIVE: Final = (1, 0b11, 0b111, 0b1011, 0b10011, 0x25, 0x43, 0x83, 0x11D, 0x211, 0x409, 0x805, 0x1053)
"""A primitive polynomial over two elements of each degree, a bit a power."""

_AROUND_L1: Final = frozenset({"BYPASS", "NA"})


class Role(Enum):
    """What the caches make of a memory instruction."""

    CACHED_LOAD = "cached load"
    BYPASSING_LOAD = "bypassing load"
    LAST_LOAD = "load that is the last use"
    STORE = "store"
    ATOMIC = "atomic"


LOADS: Final = frozenset({Role.CACHED_LOAD, Role.BYPASSING_LOAD, Role.LAST_LOAD})


class Lines(Struct, frozen=True):
    """The lines that requests of some blocks touched, one entry for each line of each request.

    `block` int32: linear index; `warp` int16: within its block; `position` int32: the how manieth memory request of
    its warp; `instruction` int32: index into the kernel's; `line` int64: address / 128; `sectors` uint8: a bit for
    each of its four sectors; `words` uint32: a bit for each word of four bytes that a store fills, at least in part,
    else 0. Entries of one warp are in the order of its requests. `positions` int32 [blocks]: how many requests the
    busiest warp of each block made, by linear block index less `first_block`. `passes` are the cycles that the L1 takes
    for a request of an instruction, in the mean. `contention` is that of atomics and reductions. `complete` is False
    where lines were dropped.
    """

    first_block: int
    block: npt.NDArray[np.int32]
    warp: npt.NDArray[np.int16]
    position: npt.NDArray[np.int32]
    instruction: npt.NDArray[np.int32]
    line: npt.NDArray[np.int64]
    sectors: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint32]
    positions: npt.NDArray[np.int32]
    passes: Mapping[int, float]
    contention: Contention
    complete: bool


class LineRecorder(Struct):
    """An observer that keeps the lines of global and local requests of `blocks` blocks from `first_block` on."""

    bound: BoundLaunch
    first_block: int
    blocks: int
    _positions: npt.NDArray[np.int32]
    _atomics: ContentionRecorder
    _parts: list[tuple[npt.NDArray[np.int64], ...]] = field(default_factory=list)
    _kept: int = 0
    _passes: dict[int, tuple[int, float]] = field(default_factory=dict)

    @property
    def warps_per_block(self) -> int:
        """Warps of a block, the last perhaps not full."""
        return count_warps(self.bound)

    def on_request(
        self,
        instruction: int,
        access: Access,
        warps: npt.NDArray[np.int64],
        addresses: Addresses,
        active: Lanes,
    ) -> None:
        """Keeps the lines of one issue; shared memory only moves the warps' positions on."""
        places = warps - self.first_block * self.warps_per_block
        positions = self._positions[places]
        self._positions[places] += 1
        match access.space:
            case Space.GLOBAL:
                pass
            case Space.GENERIC:
                active = active & (generic_spaces(self.bound, addresses) == 0)
            case Space.LOCAL:
                addresses = self._place_local(warps, addresses)
            case _:
                return
        if self._kept >= MOST_LINES or not active.any():
            return
        self._count_passes(instruction, access, addresses, active)
        if access.operation in {Operation.ATOMIC, Operation.REDUCTION}:
            self._atomics.add(access, addresses, active)
        words = max(1, access.width_bytes // 4) if access.space is Space.LOCAL else 1
        for word in range(words):
            row, line, sectors = fold_requests(addresses + 128 * word, active)
            self._kept += row.size
            filled = np.zeros(row.size, np.int64)
            if access.operation is Operation.STORE:
                filled = fold_words(
                    addresses + 128 * word, active, min(4, access.width_bytes) if words > 1 else access.width_bytes
                )
            self._parts.append(
                (warps[row], positions[row].astype(np.int64), np.full(row.size, instruction), line, sectors, filled)
            )

    def _count_passes(self, instruction: int, access: Access, addresses: Addresses, active: Lanes) -> None:
        """Adds the passes of a few requests to those of the instruction."""
        count, total = self._passes.get(instruction, (0, 0.0))
        if count < REQUESTS_TIMED:
            chosen = np.flatnonzero(active.any(axis=1))[: REQUESTS_TIMED - count]
            found = count_passes(addresses[chosen], active[chosen], access.width_bytes)
            self._passes[instruction] = (count + chosen.size, total + float(found.sum()))

    def _place_local(self, warps: npt.NDArray[np.int64], addresses: Addresses) -> Addresses:
        """Addresses in memory of a thread's own bytes: words of the 32 lanes lie side by side."""
        region_bytes = -(-self.bound.local_bytes_per_thread // 4) * 128
        lanes = 4 * np.arange(32)
        placed: Addresses = _LOCAL_BASE + warps[:, None] * region_bytes + (addresses >> 2) * 128 + lanes
        return placed

    def close(self) -> Lines:
        """What was kept."""
        columns = [np.concatenate(column) for column in zip(*self._parts, strict=True)] or [np.zeros(0, np.int64)] * 6
        warps, positions, instruction, line, sectors, words = columns
        busiest = self._positions.reshape(self.blocks, self.warps_per_block).max(axis=1)
        return Lines(
            first_block=self.first_block,
            block=(warps // self.warps_per_block).astype(np.int32),
            warp=(warps % self.warps_per_block).astype(np.int16),
            position=positions.astype(np.int32),
            instruction=instruction.astype(np.int32),
            line=line,
            sectors=sectors.astype(np.uint8),
            words=words.astype(np.uint32),
            positions=busiest,
            passes={instruction: total / count for instruction, (count, total) in self._passes.items() if count},
            contention=self._atomics.close(),
            complete=self._kept < MOST_LINES,
        )


def count_warps(bound: BoundLaunch) -> int:
    """Warps of a block, the last perhaps not full."""
    return -(-bound.launch.threads_per_block // 32)


def record_lines(bound: BoundLaunch, first_block: int, blocks: int) -> LineRecorder:
    """A recorder that has seen nothing."""
    positions = np.zeros(blocks * count_warps(bound), np.int32)
    return LineRecorder(bound, first_block, blocks, positions, ContentionRecorder(bound.device))


def count_passes(addresses: Addresses, active: Lanes, width_bytes: int) -> npt.NDArray[np.float64]:
    """Cycles that the L1 takes for each request: its data stage, or its tag stage where that takes longer.

    The data stage works as for shared memory, by 32, 16 or 8 lanes for 4, 8 or 16 bytes, on the banks of a line. The
    tag stage takes 0.31 + 0.274 cycles a line (fitted by RRZE's gpu-benches on an A100, strides of 2 to 32 floats).
    """
    data = count_store_wavefronts(addresses, active, max(4, width_bytes))
    lines = np.sort(np.where(active, addresses // LINE_BYTES, -1), axis=1)
    distinct = (np.diff(lines, axis=1, prepend=-1) != 0).sum(axis=1)
    passes: npt.NDArray[np.float64] = np.maximum(data, 0.31 + 0.274 * distinct)
    return passes


def fold_requests(
    addresses: Addresses, active: Lanes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct lines of each request and the sectors touched in them: rows, lines, sector bits, row after row.

    `addresses` int64 [n, 32] of accesses that do not straddle sectors, `active` bool [n, 32].
    """
    sectors = addresses >> _SECTOR_SHIFT
    first = sectors[:, :1]
    alike = active.all() and bool((first % SECTORS_IN_LINE == first[0] % SECTORS_IN_LINE).all())
    if alike and bool((sectors - first == sectors[:1] - first[0]).all()):
        _, lines, bits = _fold(sectors[:1], active[:1])
        shifts = (first - first[0]) // SECTORS_IN_LINE
        rows = np.repeat(np.arange(len(sectors)), lines.size)
        return rows, (lines + shifts).ravel(), np.tile(bits, len(sectors))
    return _fold(sectors, active)


def fold_words(addresses: Addresses, active: Lanes, width_bytes: int) -> npt.NDArray[np.int64]:
    """The words of four bytes touched in each line of each request, a bit for each, in the order of `fold_requests`."""
    row, lane = np.nonzero(active)
    places = addresses[row, lane]
    keys = (row << _ROW_SHIFT) | places // LINE_BYTES
    order = np.argsort(keys, kind="stable")
    begins = np.flatnonzero(np.diff(keys[order], prepend=-1))
    bits = ((1 << max(1, width_bytes // 4)) - 1) << (places // 4 % 32)
    filled: npt.NDArray[np.int64] = np.bitwise_or.reduceat(bits[order], begins)
    return filled


def _fold(
    sectors: Addresses, active: Lanes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    row, lane = np.nonzero(active)
    keys = np.unique((row << _ROW_SHIFT) | sectors[row, lane])
    lines = keys // SECTORS_IN_LINE
    begins = np.flatnonzero(np.concatenate([[True], lines[1:] != lines[:-1]]))
    bits = np.add.reduceat(1 << keys % SECTORS_IN_LINE, begins)
    lines = lines[begins]
    return lines >> (_ROW_SHIFT - 2), lines & ((1 << (_ROW_SHIFT - 2)) - 1), bits


def hash_lines(line: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """A number from 0 to 2**31 - 1 that looks random for each line: the hashes of the hardware are not published."""
    mixed = line.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)).astype(np.int64)


def hash_sets(line: npt.NDArray[np.int64], sets: int) -> npt.NDArray[np.int64]:
    """The set of an L1 that each line belongs to, of so many: a power of two.

    The remainder of the line's number, as a polynomial of bits, by a primitive one: lines at any power of two from each
    other fill all sets alike, as they were measured to do, and lines at other strides as unevenly as if thrown in
    (tests/measured/device/writes.json). Which polynomial is not published.
    """
    degree = sets.bit_length() - 1
    place = np.zeros(line.shape, np.int64)
    power = 1 if degree else 0
    for bit in range(_LINE_BITS):
        place ^= np.where(line >> bit & 1, power, 0)
        power <<= 1
        if power >> degree:
            power ^= _PRIMITIVE[degree]
    return place


def name_role(access: Access) -> Role:
    """What the caches make of an instruction: loads that ask for what other SMs may have written go around L1.

    Loads that are `STRONG.SM` ask for what their own SM wrote, and find it in L1; a last use never counts as a hit
    (`neighbours_cg`: of 131,072 sectors of the one 130,154 hit, of 163,839 of the other none).
    """
    match access.operation:
        case Operation.STORE:
            return Role.STORE
        case Operation.LOAD | Operation.ASYNC_COPY:
            names = set(access.modifiers)
            if access.space is not Space.LOCAL and "LU" in names:
                return Role.LAST_LOAD
            shared = "STRONG" in names and "SM" not in names
            around = access.space is not Space.LOCAL and (shared or _AROUND_L1 & names)
            return Role.BYPASSING_LOAD if around else Role.CACHED_LOAD
        case _:
            return Role.ATOMIC


def list_roles(kernel: Kernel) -> dict[int, Role]:
    """The roles of a kernel's memory instructions and bulk copies, by index; a copy is a load or store around L1."""
    accesses = {each.index: access_of(each) or global_access_of(each) for each in kernel.instructions}
    return {index: name_role(access) for index, access in accesses.items() if access is not None}


class Hint(Struct, frozen=True):
    """What an instruction asks of the caches: to fetch so many bytes of DRAM (None: as usual), to let its lines go."""

    fetch_bytes: int | None
    leaves_first: bool


def read_hint(modifiers: Sequence[str]) -> Hint | None:
    """The hint in an instruction's modifiers: `LTC128B`, `EF` (evict first, as of `__ldcs`); None without one."""
    fetch = next((int(name[3:-1]) for name in modifiers if re.fullmatch(r"LTC\d+B", name)), None)
    leaves_first = "EF" in modifiers
    return Hint(fetch, leaves_first) if fetch is not None or leaves_first else None


def unite_sectors(lines: Lines, instructions: Iterable[int]) -> npt.NDArray[np.uint8]:
    """The sectors, a bit for each, of every line that these instructions touch, all their requests together."""
    rows = np.isin(lines.instruction, list(instructions))
    keys = np.unique(lines.line[rows] << SECTORS_IN_LINE | lines.sectors[rows])
    line, bits = keys >> SECTORS_IN_LINE, (keys & 15).astype(np.uint8)
    begins = np.flatnonzero(np.diff(line, prepend=-1))
    return np.bitwise_or.reduceat(bits, begins) if line.size else bits
