"""Turns the byte addresses of one warp, or of rows of warps, into sectors and wavefronts: the pocket calculator."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.counting.count import count_requests
from sectorwise.counting.request import Access, Operation, Requests, Space
from sectorwise.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.counting.request import Counts

LANES = 32
_OPERATIONS = {
    "load": Operation.LOAD,
    "store": Operation.STORE,
    "atomic": Operation.ATOMIC,
    "matrix_load": Operation.MATRIX_LOAD,
    "matrix_store": Operation.MATRIX_STORE,
}
_GLOBAL_WIDTHS = (1, 2, 4, 8, 16, 32)
_SHARED_WIDTHS = (1, 2, 4, 8, 16)
_MATRIX_WIDTH = 16


def sectors(
    byte_addresses: npt.ArrayLike, width: int = 4, mask: npt.ArrayLike | None = None
) -> int | npt.NDArray[np.int64]:
    """Count the 32-byte sectors that a global access of one warp touches.

    `byte_addresses` [32] or [..., 32] integers, `width` bytes a lane (1, 2, 4, 8, 16 or 32), `mask` of the same shape:
    the lanes that access (all, where it is not given). Returns an int for one warp, else int64 [...].
    Raises ArgumentError for another shape, width or a misaligned address.

    >>> import numpy as np
    >>> sectors(np.arange(32) * 4)
    4
    >>> sectors(np.arange(32) * 128)
    32
    """
    return _shaped(count_global(byte_addresses, width, mask).sectors, np.asarray(byte_addresses))


def wavefronts(
    byte_addresses: npt.ArrayLike, width: int = 4, operation: str = "load", mask: npt.ArrayLike | None = None
) -> int | npt.NDArray[np.int64]:
    """Count the passes over the shared-memory banks that one access of one warp takes.

    `byte_addresses` [32] or [..., 32] integers, `width` bytes a lane (1, 2, 4, 8 or 16), `operation` one of load,
    store, atomic, matrix_load and matrix_store (16 bytes; each lane gives the address of one row, eight lanes a matrix,
    masked lanes past the last matrix), `mask` of the same shape: the lanes that access (all, where it is not given).
    Returns an int for one warp, else int64 [...], as the profiler's source view counts.
    Raises ArgumentError for another shape, width or operation, or a misaligned address.

    >>> import numpy as np
    >>> wavefronts(np.arange(32) * 4)
    1
    >>> wavefronts(np.arange(32) * 8)
    2
    """
    counts = count_shared(byte_addresses, width, operation, mask)
    return _shaped(counts.wavefronts, np.asarray(byte_addresses))


def count_global(byte_addresses: npt.ArrayLike, width: int = 4, mask: npt.ArrayLike | None = None) -> Counts:
    """All counts of what `sectors` is given: arrays int64 [n], rows in order."""
    addresses, active = _check(byte_addresses, width, mask, _GLOBAL_WIDTHS)
    access = Access(Space.GLOBAL, Operation.LOAD, width, "LDG")
    return count_requests(Requests(access, addresses.reshape(-1, LANES), active.reshape(-1, LANES)))


def count_shared(
    byte_addresses: npt.ArrayLike, width: int = 4, operation: str = "load", mask: npt.ArrayLike | None = None
) -> Counts:
    """All counts of what `wavefronts` is given: arrays int64 [n], rows in order."""
    if operation not in _OPERATIONS:
        near = difflib.get_close_matches(str(operation), _OPERATIONS, n=2, cutoff=0.4) or list(_OPERATIONS)
        message = f"unknown operation {operation!r}; did you mean {' or '.join(near)}?"
        raise ArgumentError(message)
    kind = _OPERATIONS[operation]
    is_matrix = kind in {Operation.MATRIX_LOAD, Operation.MATRIX_STORE}
    addresses, active = _check(byte_addresses, width, mask, (_MATRIX_WIDTH,) if is_matrix else _SHARED_WIDTHS)
    access = Access(Space.SHARED, kind, width, operation, matrices=4 if is_matrix else 0)
    return count_requests(Requests(access, addresses.reshape(-1, LANES), active.reshape(-1, LANES)))


def _check(
    byte_addresses: npt.ArrayLike, width: int, mask: npt.ArrayLike | None, widths: tuple[int, ...]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return addresses and mask as arrays of one shape [..., 32], or say what is wrong with them."""
    addresses = np.asarray(byte_addresses)
    if addresses.dtype.kind not in "iu":
        message = f"byte addresses must be integers, got {addresses.dtype}"
        raise ArgumentError(message)
    if addresses.ndim == 0 or addresses.shape[-1] != LANES:
        message = f"byte addresses must be one warp of 32 or rows of 32, got shape {addresses.shape}"
        raise ArgumentError(message)
    if width not in widths:
        message = f"width must be one of {', '.join(map(str, widths))} bytes, got {width!r}"
        raise ArgumentError(message)
    given = np.ones(addresses.shape, np.bool_) if mask is None else np.asarray(mask)
    if given.ndim == 0 or not np.isin(given, (0, 1)).all():
        message = f"mask has a bool for each address, not a number whose bits are lanes; got {str(mask)[:40]}"
        raise ArgumentError(message)
    active = given.astype(np.bool_)
    if active.shape != addresses.shape:
        message = f"mask must have the addresses' shape {addresses.shape}, got {active.shape}"
        raise ArgumentError(message)
    addresses = addresses.astype(np.int64)
    faults = np.argwhere(active & (addresses % width != 0))
    if len(faults):
        place = tuple(int(index) for index in faults[0])
        row = f" of row {place[0] if len(place) == 2 else place[:-1]}" if len(place) > 1 else ""
        message = (
            f"lane {place[-1]}{row} accesses {width} bytes at byte {int(addresses[place])}, which is no multiple of "
            f"{width}: the GPU faults here"
        )
        raise ArgumentError(message)
    return addresses, active


def _shaped(counts: npt.NDArray[np.int64], addresses: npt.NDArray[np.generic]) -> int | npt.NDArray[np.int64]:
    return int(counts[0]) if addresses.ndim == 1 else counts.reshape(addresses.shape[:-1])
