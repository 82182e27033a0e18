"""Turns atomic updates by many lanes into the values that each lane sees, as if they came one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.counting.request import Space
from sectorwise.machine.arrivals import WITHOUT_TRANSACTIONS, Arrivals, arrive_in_turn
from sectorwise.machine.taint import ORDERED_LEVEL

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.counting.request import Access
    from sectorwise.machine.storage import Piece, Storage
    from sectorwise.machine.taint import Levels

    Lanes = npt.NDArray[np.bool_]
    Values = npt.NDArray[Any]
    Update = Callable[[Values], Values]

# Integer updates that are associative: what a lane sees is a running fold over the lanes before it. The number is the
# old value that makes an update give its operand.
_FOLDS: dict[str, tuple[Callable[[Values, Values], Values], int]] = {
    "ADD": (np.add, 0),
    "POPC": (np.add, 0),
    "AND": (np.bitwise_and, -1),
    "OR": (np.bitwise_or, 0),
    "XOR": (np.bitwise_xor, 0),
    "EXCH": (lambda _before, after: after, 0),
    "MIN": (np.minimum, -1),
    "MAX": (np.maximum, 0),
}
_STRONG = frozenset({"STRONG", "VOLATILE"})
_FLOATS = ("F16", "F32", "F64", "BF16")


def _choose_fold(modifiers: tuple[str, ...], size_bytes: int) -> tuple[Callable[[Values, Values], Values], int] | None:
    name = next((modifier for modifier in modifiers if modifier in _FOLDS), None)
    if name is None or "CAS" in modifiers or (name != "EXCH" and any(m.startswith(_FLOATS) for m in modifiers)):
        return None
    fold, identity = _FOLDS[name]
    if name in ("MIN", "MAX") and any(modifier in ("S32", "S64") for modifier in modifiers):
        signed = np.int64 if size_bytes == 8 else np.int32
        lowest, highest = int(np.iinfo(signed).min), int(np.iinfo(signed).max)
        plain = fold
        return (
            lambda a, b: plain(a.view(signed), b.view(signed)).view(a.dtype),
            highest if name == "MIN" else lowest,
        )
    return fold, identity


def is_order_visible(modifiers: tuple[str, ...]) -> bool:
    """Whether the order of lanes is seen in what memory holds: exchanges, rounded sums, arrivals that others await."""
    return any(name in ("EXCH", "CAS", "CAST", "ARRIVE") or name.startswith(_FLOATS) for name in modifiers)


def may_see_order(access: Access) -> bool:
    """Whether a load shows how far other warps are, where these make atomic updates: volatile and atomic loads."""
    return access.space is not Space.SHARED and not _STRONG.isdisjoint(access.modifiers)


def find_order(access: Access, pieces: tuple[Piece, ...]) -> Levels | None:
    """How sure what a load finds is: no surer than the order of atomic updates that it may see; None where it is."""
    return ORDERED_LEVEL if may_see_order(access) and any(piece.storage.updated for piece in pieces) else None


def apply_atomic(
    pieces: tuple[Piece, ...],
    active: Lanes | None,
    update: Update,
    size_bytes: int,
    modifiers: tuple[str, ...],
    warps: int,
) -> Values:
    """Updates memory in lane order, warps ascending; returns what each lane saw, `[warps, 32]` uint32 or uint64.

    `update` maps old to new values of a whole `[warps, 32]` array. Of the attempts of a loop (CAST.SPIN) one lane in
    each bank succeeds, the lowest; the others see another value than they expect.
    """
    for piece in pieces:
        piece.storage.updated = True
    if "SPIN" not in modifiers:
        return _apply(pieces, active, update, size_bytes, modifiers, warps)
    winners = _find_spin_winners(pieces, active, size_bytes, warps)
    seen = _apply(pieces, winners, update, size_bytes, modifiers, warps)
    return np.where(winners, seen, _make_unexpected(update, seen))


def _find_spin_winners(pieces: tuple[Piece, ...], active: Lanes | None, size_bytes: int, warps: int) -> Lanes:
    """The lowest lane of each bank: of 32 of 4 bytes for a warp, of 16 of 8 for each half warp, as an H200 does."""
    wants = np.ones((warps, 32), np.bool_) if active is None else np.broadcast_to(active, (warps, 32))
    group = 128 // size_bytes
    winners = np.zeros((warps, 32), np.bool_)
    for piece in pieces:
        here = (wants if piece.where is None else wants & piece.where).reshape(-1, group)
        bank = (np.broadcast_to(piece.index, (warps, 32)) // size_bytes % group).reshape(-1, group)
        rivals = (bank[:, :, None] == bank[:, None, :]) & here[:, None, :] & np.tri(group, k=-1, dtype=np.bool_)
        winners |= (here & ~rivals.any(axis=2)).reshape(warps, 32)
    return winners


def _make_unexpected(update: Update, like: Values) -> Values:
    """A value for each lane that its compare-and-swap does not expect: one that the update leaves as it is."""
    first, second = np.full_like(like, 0x9E3779B9), np.full_like(like, 0x7F4A7C15)
    return np.where(np.broadcast_to(update(first), like.shape) == first, first, second)


def _apply(
    pieces: tuple[Piece, ...],
    active: Lanes | None,
    update: Update,
    size_bytes: int,
    modifiers: tuple[str, ...],
    warps: int,
) -> Values:
    dtype = np.uint64 if size_bytes == 8 else np.uint32
    seen = np.zeros((warps, 32), dtype)
    for piece in pieces:
        where = np.ones((warps, 32), np.bool_) if active is None else active
        if piece.where is not None:
            where = where & piece.where
        memory = _cells(piece.storage, size_bytes)
        cells = np.broadcast_to(piece.index, (warps, 32))[where] // size_bytes
        if cells.size:
            seen[where] = _fold_or_loop(memory, cells, where, update, modifiers, dtype)
    return seen


def _cells(storage: Storage, size_bytes: int) -> Values:
    match size_bytes:
        case 8:
            return storage.octets.view(np.uint64)
        case 2:
            return storage.halves
        case _:
            return storage.words


def _fold_or_loop(
    memory: Values, cells: npt.NDArray[np.int64], where: Lanes, update: Update, modifiers: tuple[str, ...], dtype: type
) -> Values:
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, ordered.size))
    if lengths.max() == 1:
        return _loop(memory, cells, where, update, dtype, np.zeros(cells.size, np.int64))
    if "ARRIVE" in modifiers:
        ones, none = np.ones(cells.size, np.int64), np.zeros(cells.size, np.int64)
        return arrive_in_turn(memory, cells, Arrivals(ones, none, none), WITHOUT_TRANSACTIONS)
    chosen = _choose_fold(modifiers, memory.dtype.itemsize)
    if chosen is not None:
        fold, identity = chosen
        operand = update(np.full(where.shape, identity, np.int64).astype(dtype))
        amounts = np.broadcast_to(operand, where.shape)[where][order]
        return _fold(memory, ordered, starts, lengths, amounts, order, fold)
    rank = np.empty(cells.size, np.int64)
    rank[order] = np.arange(cells.size) - np.repeat(starts, lengths)
    return _loop(memory, cells, where, update, dtype, rank)


def _fold(
    memory: Values,
    ordered: npt.NDArray[np.int64],
    starts: npt.NDArray[np.intp],
    lengths: npt.NDArray[np.intp],
    amounts: Values,
    order: npt.NDArray[np.intp],
    fold: Callable[[Values, Values], Values],
) -> Values:
    """Inclusive running fold within each run of equal cells, in log2 steps (Hillis and Steele)."""
    rank = np.arange(ordered.size) - np.repeat(starts, lengths)
    running = amounts.copy()
    running[starts] = fold(memory[ordered[starts]], amounts[starts])
    reach = 1
    longest = int(lengths.max())
    while reach < longest:
        joined = running.copy()
        far = np.flatnonzero(rank >= reach)
        joined[far] = fold(running[far - reach], running[far])
        running = joined
        reach *= 2
    before = np.empty_like(amounts)
    before[starts] = memory[ordered[starts]]
    later = np.flatnonzero(rank > 0)
    before[later] = running[later - 1]
    memory[ordered[starts]] = running[starts + lengths - 1]
    seen = np.empty_like(amounts)
    seen[order] = before
    return seen


def _loop(
    memory: Values, cells: npt.NDArray[np.int64], where: Lanes, update: Update, dtype: type, rank: npt.NDArray[np.int64]
) -> Values:
    """One round for the first lane of each cell, one for the second, and so on."""
    seen: Values = np.zeros(cells.size, dtype)
    for turn in range(int(rank.max()) + 1):
        chosen = rank == turn
        old: Values = memory[cells].astype(dtype)
        seen[chosen] = old[chosen]
        spread: Values = np.zeros(where.shape, dtype)
        spread[where] = old
        new = np.broadcast_to(update(spread), where.shape)[where]
        memory[cells[chosen]] = new[chosen]
    return seen
