"""Turns copies of tiles that tensor maps name (UTMALDG, UTMASTG, UTMAREDG, UTMAPF) into memory.

The map is read where the instruction finds it, as the hardware reads it: bytes that the driver made, or the launch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from sectorwise.binary.ir import Register
from sectorwise.counting.pieces import LINE_BYTES, UNIT_BYTES
from sectorwise.counting.request import Space
from sectorwise.launch.map_bytes import MAP_BYTES, decode_map
from sectorwise.machine.bulk_rows import (
    RANKS,
    complete,
    doubt_places,
    doubt_registers,
    judge_copied,
    leave_sums_unknown,
    note_doubt,
    release,
    row_places,
    row_words,
)
from sectorwise.machine.bulk_sums import can_reduce, reduce_words
from sectorwise.machine.copy_counts import find_copy_counter, note_doubts, note_unknown, tell_sectors
from sectorwise.machine.copy_sums import add_moved, note_landings
from sectorwise.machine.memory import WINDOW_BYTES, Request, resolve
from sectorwise.machine.named_registers import FIRST_CORNER, count_axes, following, name_places
from sectorwise.machine.storage import empty_shadow, read_words, stain_words, write_words
from sectorwise.machine.taint import UNKNOWN
from sectorwise.machine.tile_pieces import list_units, measure_tile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.launch.map_bytes import TensorMap
    from sectorwise.machine.batch import Batch
    from sectorwise.machine.frame import Frame
    from sectorwise.machine.memory import BatchMemory
    from sectorwise.machine.registers import Window

    Masks = npt.NDArray[np.uint32]
    Lanes = npt.NDArray[np.bool_]
    Longs = npt.NDArray[np.int64]

_MODIFIERS = frozenset(
    {"1D", "2D", "3D", "4D", "5D", "MULTICAST", "ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "L2"}
)


class _Tiles(Struct, frozen=True):
    """Tiles of one map, one for each row of `issuing`.

    `corners` [rows, axes] are in elements, `places` [rows] first bytes in the shared window, `doubt` what is uncertain
    of them: flags of `taint`.
    """

    tensor: TensorMap
    issuing: Lanes
    corners: Longs
    places: Longs
    doubt: int


def copy_tile(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> None:
    """Copies the tile of each row that issues, or stains what it would have written where that is not known."""
    found = _find_tiles(batch, frame, window, instruction, taken)
    if found is None:
        _stain_unknown(batch, frame, window, instruction, taken)
        return
    for tiles in found:
        match instruction.opcode:
            case "UTMALDG":
                _load_all(batch, frame, window, instruction, tiles)
            case "UTMAPF":
                _count(batch, frame, instruction, tiles, np.zeros(frame.warps, np.int64))
            case _:
                _store(batch, frame, instruction, tiles)


def _load_all(batch: Batch, frame: Frame, window: Window, instruction: Instruction, tiles: _Tiles) -> None:
    """Loads the tiles to their own block, or to each block that a mask names, and tells the barriers there."""
    barrier = row_words(frame, window, following(name_places(instruction)[0]))
    sizes = np.full(frame.warps, tiles.tensor.tile_bytes, np.int64)
    if not instruction.has("MULTICAST"):
        _count(batch, frame, instruction, tiles, np.ones(frame.warps, np.int64), barrier)
        _load(batch, frame, instruction, tiles, tiles.places, tiles.issuing)
        complete(batch, frame, instruction, tiles.issuing, barrier, sizes)
        return
    mask = next(operand for operand in reversed(instruction.operands) if isinstance(operand, Register))
    ranks = row_words(frame, window, mask) >> 16 & 0xFFFF
    _count(batch, frame, instruction, tiles, np.bitwise_count(ranks).astype(np.int64), barrier)
    for rank in range(RANKS):
        # The same place in the shared memory of each block that the mask names.
        issuing = tiles.issuing & (ranks >> rank & 1 != 0)
        if issuing.any():
            there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (tiles.places, barrier))
            _load(batch, frame, instruction, tiles, there, issuing)
            complete(batch, frame, instruction, issuing, told, sizes)


def is_followed(instruction: Instruction) -> bool:
    """Whether the form of a copy is one that is known."""
    return _MODIFIERS.issuperset(instruction.modifiers)


def _find_tiles(
    batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks
) -> list[_Tiles] | None:
    """The tiles by map; None where a register, the map or its layout is not known."""
    places = name_places(instruction)
    axes = count_axes(instruction)
    if len(places) < 2 or not axes or not is_followed(instruction):
        return None
    first = FIRST_CORNER.get(instruction.opcode, 1)
    named = [Register(places[0].index + step, places[0].uniform) for step in range(first + axes)]
    named += [places[1], following(places[1])]
    doubt = doubt_registers(window, named)
    if doubt & UNKNOWN:
        return None
    note_doubt(batch, instruction, doubt)
    corners = np.stack([row_words(frame, window, each) for each in named[first : first + axes]], axis=1)
    corners = corners.astype(np.uint32).view(np.int32).astype(np.int64)
    starts = row_words(frame, window, places[0]) if first else np.zeros(frame.warps, np.int64)
    found = []
    issuing = taken != 0
    for data, rows in _read_maps(batch, frame, instruction, row_places(frame, window, "G", places[1]), issuing):
        tensor = decode_map(data)
        if tensor is None or len(tensor.shape) != axes or not tensor.is_plain:
            return None
        found.append(_Tiles(tensor, rows, corners, starts, doubt))
    return found or None


def _read_maps(
    batch: Batch, frame: Frame, instruction: Instruction, addresses: Longs, issuing: Lanes
) -> Iterator[tuple[bytes, Lanes]]:
    """The bytes of each distinct map with the rows that use it; of a map that is not known no bytes."""
    lane = np.arange(32)
    active = issuing[:, None] & (lane < MAP_BYTES // UNIT_BYTES)
    request = Request(instruction, Space.GENERIC, frame.rows, frame.warps, active)
    pieces = resolve(batch.memory, addresses[:, None] + lane % (MAP_BYTES // UNIT_BYTES) * UNIT_BYTES, 16, request)
    words, taint = read_words(pieces, UNIT_BYTES, frame.warps)
    unknown = np.zeros(frame.warps, np.bool_)
    if taint is not None:
        unknown = ((np.broadcast_to(taint, active.shape) & UNKNOWN != 0) & active).any(axis=1)
    # Of each row 8 pieces of four words, in order.
    rows = np.stack([np.broadcast_to(word, active.shape)[:, : MAP_BYTES // UNIT_BYTES] for word in words], axis=2)
    rows = np.ascontiguousarray(rows).reshape(frame.warps, MAP_BYTES // 4)
    used = np.flatnonzero(issuing)
    distinct, numbers = np.unique(rows[used], axis=0, return_inverse=True)
    for number, data in enumerate(distinct):
        mine = np.zeros(frame.warps, np.bool_)
        mine[used[numbers.reshape(-1) == number]] = True
        yield (b"" if (unknown & mine).any() else data.tobytes()), mine


def _load(batch: Batch, frame: Frame, instruction: Instruction, tiles: _Tiles, places: Longs, issuing: Lanes) -> None:
    """Global memory into shared: zeros, or NaN, for what lies outside of the tensor."""
    tensor = tiles.tensor
    if not batch.tally.brings and _is_sound(batch, tiles, places, issuing):
        return
    for unit, offsets, addresses, inside, within in _walk(tiles):
        active = issuing[:, None] & inside
        given = Request(instruction, Space.SHARED, frame.rows, frame.warps, active)
        written = resolve(batch.memory, tensor.swizzle(places[:, None] + offsets), unit, given)
        given = Request(instruction, Space.GLOBAL, frame.rows, frame.warps, active & within)
        read = resolve(batch.memory, addresses, unit, given)
        if not batch.tally.brings:
            continue
        words, taint = read_words(read, unit, frame.warps)
        outside = np.uint32(tensor.fill_word)
        words = [
            np.where(within, word, outside if unit >= 4 else outside & np.uint32((1 << 8 * unit) - 1)) for word in words
        ]
        write_words(written, unit, words, active, frame.warps, judge_copied(batch, frame, taint, tiles.doubt))


def _is_sound(batch: Batch, tiles: _Tiles, places: Longs, issuing: Lanes) -> bool:
    """Whether copies of these tiles can do nothing wrong."""
    if batch.memory.peer_origins is not None:
        return False
    tiles_at = zip(places[issuing].tolist(), tiles.corners[issuing, 0].tolist(), strict=True)
    return all(lies_well(batch.memory, tiles.tensor, place, column) for place, column in tiles_at)


def lies_well(memory: BatchMemory, tensor: TensorMap, place: int, column: int) -> bool:
    """Whether a tile at a column lies in the block's own shared memory from `place` on, and begins with units."""
    size = -(-tensor.landing_bytes // LINE_BYTES) * LINE_BYTES
    whole = all(each % UNIT_BYTES == 0 for each in (place, column * tensor.width_bytes, tensor.address))
    whole = whole and all(each % UNIT_BYTES == 0 for each in tensor.strides_bytes)
    return whole and 0 <= place <= memory.bound.shared_bytes - size


def _store(batch: Batch, frame: Frame, instruction: Instruction, tiles: _Tiles) -> None:
    """Shared memory into global, but for what lies outside of the tensor; what sums leave there is unknown."""
    # A store may not begin before the tensor: an H200 stops with an illegal instruction. It goes to no address here.
    _count(batch, frame, instruction, tiles, np.ones(frame.warps, np.int64))
    sums = instruction.opcode != "UTMAREDG" or can_reduce(instruction, tiles.tensor.kind)
    below = np.array((tiles.corners < 0).any(axis=1))[:, None]
    sound = sums and not (below[:, 0] & tiles.issuing).any() and _is_sound(batch, tiles, tiles.places, tiles.issuing)
    if sound and not batch.tally.brings:
        return
    for unit, offsets, addresses, inside, within in _walk(tiles, whole_units=True):
        active = tiles.issuing[:, None] & inside & (within | below)
        given = Request(instruction, Space.SHARED, frame.rows, frame.warps, active)
        read = resolve(batch.memory, tiles.tensor.swizzle(tiles.places[:, None] + offsets), unit, given)
        words, taint = read_words(read, unit, frame.warps)
        given = Request(instruction, Space.GLOBAL, frame.rows, frame.warps, active)
        written = resolve(batch.memory, np.where(below, 0, addresses), unit, given)
        if instruction.opcode == "UTMAREDG" and can_reduce(instruction, tiles.tensor.kind):
            judged = judge_copied(batch, frame, taint, tiles.doubt)
            reduce_words(written, instruction, tiles.tensor.kind, words, active, judged)
        elif instruction.opcode == "UTMAREDG":
            leave_sums_unknown(batch, instruction)
            stain_words(written, unit, active, frame.warps, UNKNOWN)
        else:
            write_words(written, unit, words, active, frame.warps, judge_copied(batch, frame, taint, tiles.doubt))


def _count(
    batch: Batch,
    frame: Frame,
    instruction: Instruction,
    tiles: _Tiles,
    targets: Longs,
    barrier: Longs | None = None,
) -> None:
    """Adds what the tiles move, each to so many `targets` [rows], and loads tell `barrier` [rows] of."""
    loads, spread = instruction.opcode == "UTMALDG", instruction.has("MULTICAST")
    counter = find_copy_counter(batch.tally, instruction)
    issuing = np.flatnonzero(tiles.issuing).tolist()
    corners = {row: tuple(tiles.corners[row].tolist()) for row in issuing}
    for row, corner in corners.items():
        place = int(tiles.places[row])
        add_moved(counter, measure_tile(tiles.tensor, corner, place, int(targets[row]), loads=loads, spread=spread))
    note_doubts(batch, frame, instruction, tiles.doubt)
    if barrier is not None:
        size_bytes = tiles.tensor.landing_bytes
        starts, told = (np.unique(each[issuing] % WINDOW_BYTES).tolist() for each in (tiles.places, barrier))
        note_landings(counter, starts, size_bytes, told)
    if batch.tally.options.observers:
        units = (list_units(tiles.tensor, corner) for corner in corners.values())
        tell_sectors(batch, frame, instruction, issuing, [places[inside] for places, inside in units])


def _walk(tiles: _Tiles, *, whole_units: bool = False) -> Iterator[tuple[int, Longs, Longs, Lanes, Lanes]]:
    """32 pieces of every tile at a time.

    Of each the bytes, the place in the tile [32], the address [rows, 32], whether there is one [32], and whether it
    lies in the tensor [rows, 32]. Stores go by `whole_units` of 16 bytes of which one byte lies in it.
    """
    tensor = tiles.tensor
    unit = UNIT_BYTES if whole_units else _choose_unit(tensor, tiles.corners[tiles.issuing, 0])
    elements = unit // tensor.width_bytes
    sizes = [tensor.extents[0] // elements, *tensor.extents[1:]]
    steps = [elements * tensor.steps[0], *tensor.steps[1:]]
    strides = [tensor.width_bytes, *tensor.strides_bytes]
    count = math.prod(sizes)
    per_row = tensor.row_bytes // unit
    for start in range(0, count, 32):
        piece = np.arange(start, start + 32)
        offsets = piece // per_row * tensor.pitch_bytes + piece % per_row * unit
        left, inside = piece, piece < count
        addresses = np.full((len(tiles.corners), 32), tensor.address, np.int64)
        within = np.ones(addresses.shape, np.bool_)
        for axis, (size, step, stride) in enumerate(zip(sizes, steps, strides, strict=True)):
            at = tiles.corners[:, axis, None] + left % size * step
            within &= (at >= 0) & (at < tensor.shape[axis])
            addresses += at * stride
            left = left // size
        yield unit, offsets, np.where(within, addresses, tensor.address), inside, within


def _choose_unit(tensor: TensorMap, columns: Longs) -> int:
    """Bytes that are copied at a time: 16 where these lie wholly in the tensor or outside of it, else an element.

    A tile that begins between two units is no legal instruction (measured on an H200): it is misaligned.
    """
    whole = tensor.shape[0] * tensor.width_bytes % UNIT_BYTES == 0
    return UNIT_BYTES if whole or (columns * tensor.width_bytes % UNIT_BYTES).any() else tensor.width_bytes


def _stain_unknown(batch: Batch, frame: Frame, window: Window, instruction: Instruction, taken: Masks) -> None:
    """Stains what a tile that is not known would fill: as many bytes as its barrier waits for, and lets that go."""
    because = f"{instruction.opcode}: what a tensor map names is not known"
    batch.tally.limitations[instruction.index, because] = None
    note_unknown(batch, instruction, because)
    if instruction.opcode != "UTMALDG":
        return
    batch.tally.origins.setdefault(instruction.index, "what a tensor map names is not known")
    targets = name_places(instruction)[:1]
    if not targets or doubt_places(window, ("S",), targets, following(targets[0])) & UNKNOWN:
        return
    target = targets[0]
    starts, barrier = row_words(frame, window, target), row_words(frame, window, following(target))
    if not instruction.has("MULTICAST") or batch.clusters is None:
        _stain(batch, frame, taken != 0, starts, release(batch, frame, instruction, taken != 0, barrier))
        return
    for rank in range(batch.clusters.peers.shape[1]):
        there, told = (rank * WINDOW_BYTES + each % WINDOW_BYTES for each in (starts, barrier))
        _stain(batch, frame, taken != 0, there, release(batch, frame, instruction, taken != 0, told))


def _stain(batch: Batch, frame: Frame, issuing: Lanes, starts: Longs, waited: Longs) -> None:
    """What a tile holds is not known: as many bytes as were waited for; where nobody waits yet, all that follows."""
    memory = batch.memory
    warps = np.arange(frame.warps) if frame.rows is None else frame.rows
    shadow = empty_shadow(memory.shared)
    size = memory.bound.shared_bytes
    for row in np.flatnonzero(issuing):
        rank, start = divmod(int(starts[row]), WINDOW_BYTES)
        origins = memory.shared_origins if memory.peer_origins is None else memory.peer_origins
        if rank < origins.shape[1] and start < size:
            origin = int(origins[warps[row], rank])
            until = min(start + (int(waited[row]) or size), size)
            shadow[(origin + start) >> 2 : (origin + until) >> 2] |= np.uint8(UNKNOWN)
            if memory.shared.written is not None:
                memory.shared.written[origin + start : origin + until] = 1
