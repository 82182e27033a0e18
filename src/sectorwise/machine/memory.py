"""Turns lane addresses of each space into places in storage, and wrong addresses into faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from sectorwise.counting.patterns import list_distinct
from sectorwise.counting.request import Space
from sectorwise.launch.contents import is_assumed
from sectorwise.machine.execution import Fault, FaultKind
from sectorwise.machine.storage import Piece, Storage, empty_storage, make_storage, read_words
from sectorwise.machine.taint import INEXACT

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from sectorwise.binary.ir import Instruction
    from sectorwise.binding import Allocation, BoundLaunch
    from sectorwise.machine.clusters import Clusters

    Lanes = npt.NDArray[np.bool_]
    Addresses = npt.NDArray[np.int64]

WINDOW_BYTES = 1 << 24
"""Size of the shared and the local window in the generic address space."""

_NULL_PAGE_BYTES = 1 << 16

DEFAULT_STACK_BYTES = 1024
"""Local memory that a thread has at least: recursive functions use it (CUDA runtime, default of cudaLimitStackSize)."""

MOST_LOCAL_BYTES = 512 << 10
"""Local memory that a thread can have (CUDA C++ Programming Guide, technical specifications)."""


class Request(Struct, frozen=True):
    """Who accesses what: instruction and space, the warps of the batch (`rows`, None for all `warps`), active lanes."""

    instruction: Instruction
    space: Space
    rows: npt.NDArray[np.intp] | None
    warps: int
    active: Lanes | None


class FaultLog(Struct):
    """First fault of each instruction and kind, with how many lanes did likewise.

    `remote` are instructions that reached into another block's shared memory: no fault, but to be told.
    """

    first: dict[tuple[int, FaultKind], Fault] = field(default_factory=dict)
    occurrences: dict[tuple[int, FaultKind], int] = field(default_factory=dict)
    remote: set[int] = field(default_factory=set)


class GlobalMemory(Struct):
    """The allocations of a launch, each made at its first touch."""

    allocations: tuple[Allocation, ...]
    materialise: Callable[[Allocation], npt.NDArray[np.uint8]]
    bases: npt.NDArray[np.int64]
    storages: list[Storage | None]


class BatchMemory(Struct):
    """All that the warps of a batch can reach.

    Shared memory of the batch's blocks lies in one storage; `shared_origins` [warps, 1] is where that of each warp's
    block begins, `peer_origins` [warps, size] where those of its cluster's blocks do, by rank. Local memory is
    interleaved by lane, so that one offset of all lanes is contiguous, as in hardware. While `watched`, the next store
    that changes a value counts as one of `changes`, and ends the watch.
    """

    bound: BoundLaunch
    global_memory: GlobalMemory
    faults: FaultLog
    warp_numbers: npt.NDArray[np.int64]
    warps: int
    warps_per_block: int
    shared: Storage
    shared_origins: Addresses
    peer_origins: Addresses | None = None
    local: Storage | None = None
    watched: bool = False
    changes: int = 0


def open_global_memory(bound: BoundLaunch, materialise: Callable[[Allocation], npt.NDArray[np.uint8]]) -> GlobalMemory:
    """Global memory in which nothing is made yet; allocations are kept in order of their addresses."""
    ordered = tuple(sorted(bound.allocations, key=lambda allocation: allocation.base))
    bases = np.array([allocation.base for allocation in ordered], np.int64)
    return GlobalMemory(ordered, materialise, bases, [None] * len(ordered))


def open_batch_memory(
    bound: BoundLaunch,
    global_memory: GlobalMemory,
    faults: FaultLog,
    numbers: npt.NDArray[np.int64],
    warps_per_block: int,
    clusters: Clusters | None = None,
) -> BatchMemory:
    """Fresh shared memory for blocks of these linear `numbers`; local memory is made at its first touch."""
    blocks = len(numbers)
    stride = -(-max(bound.shared_bytes, 16) // 16) * 16
    origins = np.arange(blocks, dtype=np.int64) * stride
    peers = None if clusters is None else origins[clusters.peers[clusters.of_block]]
    return BatchMemory(
        bound,
        global_memory,
        faults,
        (numbers[:, None] * warps_per_block + np.arange(warps_per_block)).reshape(-1),
        blocks * warps_per_block,
        warps_per_block,
        empty_storage(stride * blocks),
        np.repeat(origins, warps_per_block)[:, None],
        None if peers is None else np.repeat(peers, warps_per_block, axis=0),
    )


def stack_bytes(bound: BoundLaunch) -> int:
    """Local memory of a thread; it ends where the window does."""
    return max(bound.local_bytes_per_thread, DEFAULT_STACK_BYTES)


def global_storage(memory: GlobalMemory, number: int) -> Storage:
    """Storage of an allocation, made now if nothing has touched it before."""
    storage = memory.storages[number]
    if storage is None:
        allocation = memory.allocations[number]
        storage = make_storage(memory.materialise(allocation))
        if is_assumed(allocation.buffer):
            storage.shadow = np.full(storage.words.size, INEXACT, np.uint8)
        memory.storages[number] = storage
    return storage


def peek_words(
    memory: BatchMemory, pieces: tuple[Piece, ...], width_bytes: int, warps: int
) -> list[npt.NDArray[np.uint32]] | None:
    """What a store is about to overwrite, for `note_change`; None while nobody watches."""
    return read_words(pieces, width_bytes, warps)[0] if memory.watched else None


def note_change(
    memory: BatchMemory,
    before: list[npt.NDArray[np.uint32]] | None,
    pieces: tuple[Piece, ...],
    width_bytes: int,
    warps: int,
) -> None:
    """Counts a store that changed any value."""
    if before is None:
        return
    after = read_words(pieces, width_bytes, warps)[0]
    if any((old != new).any() for old, new in zip(before, after, strict=True)):
        memory.changes += 1
        memory.watched = False


def resolve(memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request) -> tuple[Piece, ...]:
    """Places of an access; lanes with a wrong address are in none, and are logged.

    `addresses` int64, of a shape that broadcasts to `[warps, 32]`: virtual addresses for global and generic, offsets
    in the windows for shared and local.
    """
    match request.space:
        case Space.SHARED:
            return _resolve_shared(memory, addresses, width_bytes, request)
        case Space.LOCAL:
            return _resolve_local(memory, addresses, width_bytes, request)
        case Space.GENERIC:
            return _resolve_generic(memory, addresses, width_bytes, request)
        case _:
            return _resolve_global(memory, addresses, width_bytes, request)


def generic_spaces(bound: BoundLaunch, addresses: Addresses) -> npt.NDArray[np.int8]:
    """0 for global, 1 for shared, 2 for local addresses, by the windows."""
    cluster = bound.kernel.resources.cluster or (1, 1, 1)
    shared_bytes = cluster[0] * cluster[1] * cluster[2] * WINDOW_BYTES
    shared = (addresses >= bound.shared_window) & (addresses < bound.shared_window + shared_bytes)
    local = (addresses >= bound.local_window) & (addresses < bound.local_window + WINDOW_BYTES)
    return np.where(shared, np.int8(1), np.where(local, np.int8(2), np.int8(0)))


def _resolve_generic(
    memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request
) -> tuple[Piece, ...]:
    spaces = generic_spaces(memory.bound, addresses)
    if not spaces.any():
        return _resolve_global(memory, addresses, width_bytes, replace(request, space=Space.GLOBAL))
    pieces: list[Piece] = []
    bound = memory.bound
    for code, space, origin in (
        (0, Space.GLOBAL, 0),
        (1, Space.SHARED, bound.shared_window),
        (2, Space.LOCAL, bound.local_window),
    ):
        here = np.broadcast_to(spaces == code, (request.warps, 32))
        if request.active is not None:
            here = here & request.active
        if here.any():
            part = replace(request, space=space, active=here)
            for piece in resolve(memory, addresses - origin, width_bytes, part):
                where = here if piece.where is None else here & piece.where
                pieces.append(Piece(piece.storage, piece.index, where, piece.stride_bytes))
    return tuple(pieces)


def _resolve_global(memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request) -> tuple[Piece, ...]:
    world = memory.global_memory
    aligned = _check_alignment(memory, addresses, width_bytes, request)
    if world.bases.size:
        number = _probable_allocation(world, addresses, request.active)
        allocation = world.allocations[number]
        index = addresses - allocation.base
        wrong = (index < 0) | (index > allocation.size_bytes - width_bytes)
        if aligned is None:
            if not wrong.any():
                return (Piece(global_storage(world, number), index, None),)
            if request.active is not None and not (wrong & request.active).any():
                return (Piece(global_storage(world, number), np.where(wrong, 0, index), None),)
    full = np.broadcast_to(addresses, (request.warps, 32))
    numbers = np.searchsorted(world.bases, full, side="right") - 1
    pieces: list[Piece] = []
    unplaced = np.ones(full.shape, np.bool_) if request.active is None else request.active.copy()
    if aligned is not None:
        unplaced &= aligned
    for number in list_distinct(numbers[unplaced]):
        if number < 0:
            continue
        allocation = world.allocations[number]
        index = full - allocation.base
        where = unplaced & (numbers == number) & (index <= allocation.size_bytes - width_bytes)
        if where.any():
            pieces.append(Piece(global_storage(world, int(number)), np.where(where, index, 0), where))
            unplaced &= ~where
    if unplaced.any():
        _log(memory, FaultKind.OUT_OF_BOUNDS, full, unplaced, width_bytes, request)
    return tuple(pieces)


def _probable_allocation(world: GlobalMemory, addresses: Addresses, active: Lanes | None) -> int:
    """The allocation of the first active lane: nearly always that of all."""
    if active is None:
        address = addresses.flat[0]
    else:
        address = np.broadcast_to(addresses, active.shape).flat[int(active.argmax())]
    return max(0, int(np.searchsorted(world.bases, address, side="right")) - 1)


def _resolve_shared(memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request) -> tuple[Piece, ...]:
    origin = memory.shared_origins if request.rows is None else memory.shared_origins[request.rows]
    if memory.peer_origins is not None:
        addresses, origin = _find_peers(memory, memory.peer_origins, addresses, origin, request)
    where = _check_window(memory, addresses, 0, memory.bound.shared_bytes, width_bytes, request)
    if where is None:
        return (Piece(memory.shared, addresses + origin, None),)
    return (Piece(memory.shared, np.where(where, addresses, 0) + origin, where),)


def _find_peers(
    memory: BatchMemory, peers: Addresses, addresses: Addresses, own: Addresses, request: Request
) -> tuple[Addresses, Addresses]:
    """Offsets in shared memory, and where that of the block begins whose rank stands above them; -1: there is none."""
    rank = addresses // WINDOW_BYTES
    ranks = peers.shape[1]
    offsets = np.where((rank >= 0) & (rank < ranks), addresses % WINDOW_BYTES, -1)
    full = np.broadcast_to(np.clip(rank, 0, ranks - 1), (request.warps, 32))
    origin = np.take_along_axis(peers if request.rows is None else peers[request.rows], full, axis=1)
    away = origin != own
    if bool((away if request.active is None else away & request.active).any()):
        memory.faults.remote.add(request.instruction.index)
    return offsets, origin


def _resolve_local(memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request) -> tuple[Piece, ...]:
    # The stack grows down from the top of the window.
    size = stack_bytes(memory.bound)
    where = _check_window(memory, addresses, WINDOW_BYTES - size, size, width_bytes, request)
    lanes = memory.warps * 32
    if memory.local is None:
        memory.local = empty_storage(-(-size // 16) * 16 * lanes)
    offset = addresses - (WINDOW_BYTES - size)
    if where is not None:
        offset = np.where(where, offset, 0)
    rows = np.arange(memory.warps) if request.rows is None else request.rows
    lane = rows[:, None] * 32 + np.arange(32)
    return (Piece(memory.local, ((offset >> 2) * lanes + lane) * 4 + (offset & 3), where, lanes * 4),)


def _check_window(
    memory: BatchMemory, addresses: Addresses, start: int, size: int, width_bytes: int, request: Request
) -> Lanes | None:
    """Lanes whose access lies within the window and is aligned; None where every lane's does."""
    aligned = _check_alignment(memory, addresses, width_bytes, request)
    wrong = (addresses < start) | (addresses > start + size - width_bytes)
    if not wrong.any():
        return aligned
    valid: Lanes = np.broadcast_to(~wrong, (request.warps, 32))
    reached = wrong if request.active is None else wrong & request.active
    if aligned is not None:
        reached = reached & aligned
        valid = valid & aligned
    if reached.any():
        full = np.broadcast_to(addresses, (request.warps, 32))
        _log(memory, FaultKind.OUT_OF_BOUNDS, full, np.broadcast_to(reached, full.shape), width_bytes, request)
    return valid


def _check_alignment(memory: BatchMemory, addresses: Addresses, width_bytes: int, request: Request) -> Lanes | None:
    """Lanes whose address is a multiple of the width; None where every lane's is."""
    if width_bytes == 1:
        return None
    odd = (addresses & (width_bytes - 1)) != 0
    if not odd.any():
        return None
    odd = np.broadcast_to(odd, (request.warps, 32))
    reached = odd if request.active is None else odd & request.active
    if reached.any():
        full = np.broadcast_to(addresses, (request.warps, 32))
        _log(memory, FaultKind.MISALIGNED, full, reached, width_bytes, request)
    return ~odd


def check_matrix_rows(memory: BatchMemory, addresses: Addresses, matrices: int, request: Request) -> Addresses:
    """Addresses of matrix rows, int64 [warps, 32], those that are no multiple of a row's 16 bytes logged and cut."""
    given = np.broadcast_to(np.arange(32) < 8 * matrices, (request.warps, 32))
    active = given if request.active is None else given & request.active
    _check_alignment(memory, addresses, 16, replace(request, active=active))
    return addresses & ~15


def _log(
    memory: BatchMemory, kind: FaultKind, addresses: Addresses, lanes: Lanes, width_bytes: int, request: Request
) -> None:
    log = memory.faults
    key = (request.instruction.index, kind)
    log.occurrences[key] = log.occurrences.get(key, 0) + int(np.count_nonzero(lanes))
    if key in log.first:
        return
    row, lane = divmod(int(lanes.argmax()), 32)
    warp = row if request.rows is None else int(request.rows[row])
    linear, warp_in_block = divmod(int(memory.warp_numbers[warp]), memory.warps_per_block)
    grid = memory.bound.launch.grid
    place = (linear % grid[0], linear // grid[0] % grid[1], linear // (grid[0] * grid[1]))
    address = int(addresses[row, lane])
    log.first[key] = Fault(
        kind,
        request.instruction.index,
        place,
        warp_in_block,
        lane,
        address,
        width_bytes,
        0,
        _describe(memory, kind, address, width_bytes, request.space),
    )


def _describe(memory: BatchMemory, kind: FaultKind, address: int, width_bytes: int, space: Space) -> str:
    if kind is FaultKind.MISALIGNED:
        return f"address 0x{address:x} is not a multiple of the access width, {width_bytes} bytes"
    if space is Space.SHARED:
        # The kernel counts from behind what the driver reserves.
        bound = memory.bound
        own_bytes = bound.kernel.resources.static_shared_bytes + bound.launch.dynamic_shared_bytes
        offset = address - (bound.shared_bytes - own_bytes)
        return f"byte {offset} is outside of the {own_bytes} bytes of the block's shared memory"
    if space is Space.LOCAL:
        size = stack_bytes(memory.bound)
        return f"offset 0x{address:x} is outside of the {size} bytes of the thread's stack"
    if address < _NULL_PAGE_BYTES:
        return f"address 0x{address:x} is a null pointer, or near it"
    world = memory.global_memory
    if not world.allocations:
        return f"address 0x{address:x} is in no buffer; the launch has none"
    number = max(0, int(np.searchsorted(world.bases, address, side="right")) - 1)
    nearest = world.allocations[number]
    if address < nearest.base:
        return f"{nearest.base - address} bytes before {nearest.argument}"
    past = address - (nearest.base + nearest.size_bytes)
    following = world.allocations[number + 1] if number + 1 < len(world.allocations) else None
    if following is not None and following.base - address < past:
        return f"{following.base - address} bytes before {following.argument}"
    if past < 0:
        return f"it straddles the end of {nearest.argument} ({nearest.size_bytes} bytes)"
    return f"{past} bytes past the end of {nearest.argument} ({nearest.size_bytes} bytes)"
