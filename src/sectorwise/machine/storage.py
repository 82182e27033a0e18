"""Turns lane addresses that were resolved to byte indices into words read from, and written to, flat memories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.machine.taint import join

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.machine.taint import Levels

    Words = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Indices = npt.NDArray[np.int64]


_WRITTEN_WORD = np.uint32(0x01010101)


class Storage(Struct):
    """Bytes that lanes can reach, with views by width, and a taint for each word once one is not known.

    `written` has a one for each byte that was stored to; None where all of it holds something from the start.
    `updated` says that atomics have changed some of it.
    """

    octets: npt.NDArray[np.uint8]
    halves: npt.NDArray[np.uint16]
    words: npt.NDArray[np.uint32]
    shadow: Levels | None = None
    written: npt.NDArray[np.uint8] | None = None
    updated: bool = False


class Piece(Struct, frozen=True):
    """The part of an access that falls into one storage.

    `index` is the byte index of each lane's first byte, of a shape that broadcasts to `[n, 32]`; every entry is
    valid, also for lanes that do not access. `where` bool [n, 32] names the lanes that access here; None means all.
    `stride_bytes` lies between the words of one lane.
    """

    storage: Storage
    index: Indices
    where: Lanes | None
    stride_bytes: int = 4


def make_storage(content: npt.NDArray[np.uint8]) -> Storage:
    """Storage that starts as `content`; it grows to whole words of 16 bytes, and never moves."""
    padded_bytes = -(-max(content.size, 1) // 16) * 16
    octets = content
    if content.size != padded_bytes or not content.flags.writeable or not content.flags.c_contiguous:
        octets = np.zeros(padded_bytes, np.uint8)
        octets[: content.size] = content
    return Storage(octets, octets.view(np.uint16), octets.view(np.uint32))


def empty_storage(size_bytes: int) -> Storage:
    """Storage of zeros, to which nothing has been written."""
    octets = np.zeros(-(-max(size_bytes, 1) // 16) * 16, np.uint8)
    return Storage(octets, octets.view(np.uint16), octets.view(np.uint32), None, np.zeros_like(octets))


def empty_shadow(storage: Storage) -> Levels:
    """The taint of each word of a storage, made now if all was known before."""
    if storage.shadow is None:
        storage.shadow = np.zeros(storage.words.size, np.uint8)
    return storage.shadow


def _read_one(piece: Piece, index: Indices, width_bytes: int) -> list[Words]:
    storage = piece.storage
    if width_bytes == 1:
        return [storage.octets.take(index).astype(np.uint32)]
    if width_bytes == 2:
        return [storage.halves.take(index >> 1).astype(np.uint32)]
    first = index >> 2
    step = piece.stride_bytes >> 2
    return [storage.words.take(first + k * step if k else first) for k in range(width_bytes >> 2)]


def _read_shadow(piece: Piece, index: Indices, width_bytes: int) -> Levels | None:
    shadow = piece.storage.shadow
    if shadow is None:
        return None
    first = index >> 2
    level = shadow.take(first)
    for k in range(1, width_bytes >> 2):
        level = level | shadow.take(first + k * (piece.stride_bytes >> 2))
    return level if level.any() else None


def read_words(pieces: tuple[Piece, ...], width_bytes: int, warps: int) -> tuple[list[Words], Levels | None]:
    """Words of each lane (narrow ones zero-extended), and their taint; lanes in no piece get zeros."""
    if len(pieces) == 1 and pieces[0].where is None:
        piece = pieces[0]
        return _read_one(piece, piece.index, width_bytes), _read_shadow(piece, piece.index, width_bytes)
    words = [np.zeros((warps, 32), np.uint32) for _ in range(max(1, width_bytes >> 2))]
    taint: Levels | None = None
    for piece in pieces:
        if piece.where is None:
            return _read_one(piece, piece.index, width_bytes), _read_shadow(piece, piece.index, width_bytes)
        index = np.broadcast_to(piece.index, (warps, 32))[piece.where]
        for word, value in zip(words, _read_one(piece, index, width_bytes), strict=True):
            word[piece.where] = value
        level = _read_shadow(piece, index, width_bytes)
        if level is not None:
            full = np.zeros((warps, 32), np.uint8)
            full[piece.where] = level
            taint = join(taint, full)
    return words, taint


def write_words(
    pieces: tuple[Piece, ...],
    width_bytes: int,
    words: list[Words],
    active: Lanes | None,
    warps: int,
    level: Levels | None,
) -> None:
    """Stores each active lane's words.

    Where lanes store to one address the highest lane of the highest warp wins; CUDA leaves it undefined.
    """
    for piece in pieces:
        where = piece.where
        if active is not None:
            where = active if where is None else where & active
        index = np.broadcast_to(piece.index, (warps, 32))
        if where is not None:
            index = index[where]
        _write_shadow(piece, index, width_bytes, _pick(level, where, warps))
        _mark_written(piece, index, width_bytes)
        for k, word in enumerate(words):
            value = _pick(word, where, warps)
            if width_bytes == 1:
                piece.storage.octets[index] = value.astype(np.uint8)
            elif width_bytes == 2:
                piece.storage.halves[index >> 1] = value.astype(np.uint16)
            else:
                piece.storage.words[(index >> 2) + k * (piece.stride_bytes >> 2)] = value


def _pick(value: npt.NDArray[np.generic] | None, where: Lanes | None, warps: int) -> npt.NDArray[np.generic]:
    if value is None:
        return np.zeros((), np.uint8)
    full = np.broadcast_to(value, (warps, 32))
    return full if where is None else full[where]


def _write_shadow(piece: Piece, index: Indices, width_bytes: int, level: npt.NDArray[np.generic]) -> None:
    storage = piece.storage
    if storage.shadow is None:
        if not level.any():
            return
        storage.shadow = np.zeros(storage.words.size, np.uint8)
    first = index >> 2
    for k in range(max(1, width_bytes >> 2)):
        at = first + k * (piece.stride_bytes >> 2)
        # A narrow store leaves the rest of its word as it was.
        storage.shadow[at] = level if width_bytes >= 4 else storage.shadow[at] | level


def _mark_written(piece: Piece, index: Indices, width_bytes: int) -> None:
    written = piece.storage.written
    if written is None:
        return
    if width_bytes < 4:
        for k in range(width_bytes):
            written[index + k] = 1
        return
    words = written.view(np.uint32)
    for k in range(width_bytes >> 2):
        words[(index >> 2) + k * (piece.stride_bytes >> 2)] = _WRITTEN_WORD


def mark_written(pieces: tuple[Piece, ...], width_bytes: int, active: Lanes | None, warps: int) -> None:
    """Notes that active lanes leave something of their own there."""
    for piece in pieces:
        where = everywhere(active, piece.where, warps)
        _mark_written(piece, np.broadcast_to(piece.index, (warps, 32))[where], width_bytes)


def everywhere(active: Lanes | None, where: Lanes | None, warps: int) -> Lanes:
    """The lanes that are in both, bool [warps, 32]; None means all."""
    lanes = np.ones((warps, 32), np.bool_) if active is None else np.broadcast_to(active, (warps, 32))
    return lanes if where is None else lanes & where


def stain_words(pieces: tuple[Piece, ...], width_bytes: int, active: Lanes | None, warps: int, flags: int) -> None:
    """Adds flags to the taint of what the active lanes reach: their updates were not wholly known."""
    for piece in pieces:
        where = everywhere(active, piece.where, warps)
        shadow = empty_shadow(piece.storage)
        first = np.broadcast_to(piece.index, (warps, 32))[where] >> 2
        for k in range(max(1, width_bytes >> 2)):
            shadow[first + k * (piece.stride_bytes >> 2)] |= np.uint8(flags)


def keep_bytes(word: Words, count: Indices) -> Words:
    """The low `count` bytes of a word, zeros above."""
    bits = (np.clip(count, 0, 4) * 8).astype(np.uint64)
    mask = ((np.uint64(1) << bits) - np.uint64(1)).astype(np.uint32)
    return word & mask
