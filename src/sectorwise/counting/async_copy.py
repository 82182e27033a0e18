"""Turns rows of 32 asynchronous copies (global source, shared destination) into sectors and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.patterns import LANES, count_distinct, count_equal, mark_first, sum_rows
from sectorwise.counting.stages import number_tag_wavefronts

if TYPE_CHECKING:
    import numpy.typing as npt

_LINE_BYTES = 128
_BOTH_CHUNKS = 3


def count_copy_wavefronts(
    sources: npt.NDArray[np.int64],
    destinations: npt.NDArray[np.int64],
    mask: npt.NDArray[np.bool_],
    copied: npt.NDArray[np.bool_],
    width_bytes: int,
) -> npt.NDArray[np.int64]:
    """Count the passes of copies through L1 (`.ca`) as the source view does: bytes [n, 32] to int64 [n].

    `mask` are the lanes that write, `copied` those of them that read; the rest fill zeros. The lanes go 32, 16 or 8 at
    a time for 4, 8 or 16 bytes. Two lanes of such a group disturb each other where they read from one bank of the L1
    data array or write to one bank of shared memory, equal addresses included; the group costs as many passes as its
    most disturbed lane has such neighbours, itself counted.
    """
    group = _LINE_BYTES // width_bytes
    shape = (len(sources) * (LANES // group), group)
    source = ((sources // width_bytes) % group).reshape(shape)
    destination = ((destinations // width_bytes) % group).reshape(shape)
    writes, reads = mask.reshape(shape), copied.reshape(shape)
    most = np.zeros(len(source), dtype=np.int64)
    for lane in range(group):
        same_source = (source == source[:, lane : lane + 1]) & reads & reads[:, lane : lane + 1]
        meets = (same_source | (destination == destination[:, lane : lane + 1])) & writes
        most = np.maximum(most, np.where(writes[:, lane], meets.sum(axis=1, dtype=np.int64), 0))
    return sum_rows(most.reshape(len(sources), -1))


def count_copy_wavefronts_hardware(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], copied: npt.NDArray[np.bool_], width_bytes: int
) -> npt.NDArray[np.int64]:
    """Count the passes of copies through L1 as the pipe does, nearly: bytes [n, 32] to int64 [n].

    The lanes of each tag wavefront go 32, 16 or 8 at a time, as often as one bank is read or written. Right for 47 of
    54 recorded patterns, low by one to three for irregular ones.
    """
    group = _LINE_BYTES // width_bytes
    shape = (len(sources) * (LANES // group), group)
    source = ((sources // width_bytes) % group).reshape(shape)
    destination = ((destinations // width_bytes) % group).reshape(shape)
    wave = number_tag_wavefronts(sources, copied)
    total = np.zeros(len(sources), dtype=np.int64)
    for number in range(int(wave.max(initial=0)) + 1):
        lanes = (copied & (wave == number)).reshape(shape)
        uses = np.maximum(count_equal(source, lanes), count_equal(destination, lanes))
        total += sum_rows(np.where(lanes, uses, 0).max(axis=1).reshape(len(sources), -1))
    return total


def select_bypass_lanes(destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Select the lanes that copies around L1 (`.cg`) count: of lanes with one destination chunk the lowest, [n, 32]."""
    return mark_first(destinations >> 4, mask)


def count_bypass_sectors(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], lanes: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count the sectors of copies around L1: bytes [n, 32] and the selected lanes [n, 32] to int64 [n].

    A sector moves from one 32-byte source block to one 32-byte destination block, its two 16-byte chunks straight or
    swapped: where one is straight and the other swapped, it moves twice.
    """
    return count_distinct(_sector_moves(sources, destinations), lanes)


def count_bypass_sectors_hardware(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Count the sectors of copies around L1 as the pipe does: bytes [n, 32] and the lanes that copy to int64 [n].

    One for each pair of a 32-byte destination block and a 128-byte source line; of lanes with one destination chunk
    the highest counts. One scattered request in 26 had fewer.
    """
    lanes = mark_first(destinations[:, ::-1] >> 4, mask[:, ::-1])[:, ::-1]
    return count_distinct(_pair_up(destinations >> 5, sources >> 7), lanes)


def count_bypass_wavefronts(
    sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64], lanes: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Count the passes of copies around L1 as the source view does: bytes [n, 32], selected lanes [n, 32].

    Sectors pass together where they come from one source line, go to one destination line, fill the same chunks of
    their sector and are displaced by one exclusive or of the chunk's place within 64 bytes; two that share a source or
    a destination sector pass one after the other.

    Returns the passes, int64 [n], and whether they are certain, bool [n]: the rule is known to miss by a few where
    several sectors that could pass together are filled by half.
    """
    moves = _sector_moves(sources, destinations)
    same = (moves[:, :, None] == moves[:, None, :]) & lanes[:, None, :]
    upper = ((destinations >> 4) & 1)[:, None, :] == 1
    fills = (same & ~upper).any(axis=2) | ((same & upper).any(axis=2) << 1)
    twist = ((sources ^ destinations) >> 4) & 3
    lines = _pair_up(destinations >> 7, sources >> 7) << 2 | twist
    classes = lines << 2 | fills
    first = mark_first(moves, lanes)
    by_source = _pair_up(classes, (sources >> 5) & 3)
    by_destination = _pair_up(classes, (destinations >> 5) & 3)
    half_filled = first & (fills != _BOTH_CHUNKS)
    certain = np.asarray((count_equal(lines, half_filled) <= 1).all(axis=1))
    return _sum_class_maxima(classes, first, by_source, by_destination), certain


def _sum_class_maxima(
    classes: npt.NDArray[np.int64],
    lanes: npt.NDArray[np.bool_],
    by_source: npt.NDArray[np.int64],
    by_destination: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Add up over the classes of a row how often its most used source or destination sector occurs: int64 [n]."""
    uses = np.maximum(count_equal(by_source, lanes), count_equal(by_destination, lanes))
    together = (classes[:, :, None] == classes[:, None, :]) & lanes[:, None, :]
    most: npt.NDArray[np.int64] = np.where(together, uses[:, None, :], 0).max(axis=2)
    return sum_rows(np.where(mark_first(classes, lanes), most, 0))


def _sector_moves(sources: npt.NDArray[np.int64], destinations: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    swapped = ((sources ^ destinations) >> 4) & 1
    return _pair_up(sources >> 5, destinations >> 5) << 1 | swapped


def _pair_up(left: npt.NDArray[np.int64], right: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Number the pairs of two arrays [n, 32] within each row: equal pairs get the same number, that of a lane."""
    both = np.stack([left, right], axis=2)
    equal = (both[:, :, None, :] == both[:, None, :, :]).all(axis=3)
    number: npt.NDArray[np.int64] = np.argmax(equal, axis=2).astype(np.int64)
    return number
