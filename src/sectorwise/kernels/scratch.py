"""Turns a stream, or the CUDA graph that is captured from it, into memory that its launches hand things on through."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Final

from sectorwise.verify.driver import allocate, call

if TYPE_CHECKING:
    from sectorwise.verify.driver import Driver

_CAPTURING: Final = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE of cuda.h
_RELAXED: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED
_NON_BLOCKING: Final = 1  # CU_STREAM_NON_BLOCKING
_NO_SYNC: Final = 1  # CU_USER_OBJECT_NO_DESTRUCTOR_SYNC
_MOVE: Final = 1  # CU_GRAPH_USER_OBJECT_MOVE
_EACH_THREADS_OWN: Final = 2  # CU_STREAM_PER_THREAD: the same handle is another stream in each thread
_SEMAPHORE_BYTES: Final = 64


@dataclass(frozen=True, slots=True)
class _Lent:
    """Memory of a captured graph, and the semaphore that is raised when the graph is no more."""

    address: int
    gone: ctypes.Array[ctypes.c_char]


_of_streams: dict[tuple[int, int, int], int] = {}
_of_graphs: dict[tuple[int, int, int], _Lent] = {}
_lock = Lock()


def find_scratch(driver: Driver, device: int, stream: int, size_bytes: int) -> int:
    """The address of so many bytes, zeros at first; the device's context is current.

    A stream keeps its memory; a graph that is being captured has some of its own for each stream, which others get when
    the graph and what was instantiated from it are no more. So no two launches that may run at a time have the same,
    unless one graph is instantiated twice.

    Raises:
        DeviceRunError: there is no memory.
    """
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    asked = (ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None)
    call(driver, "cuStreamGetCaptureInfo_v2", ctypes.c_void_p(stream), *asked)
    if status.value == _CAPTURING:
        with _lock:
            key = (device, number.value, stream)
            if key not in _of_graphs:
                _of_graphs[key] = _lend(driver, device, graph, size_bytes)
            return _of_graphs[key].address
    key = (device, stream, get_ident() if stream == _EACH_THREADS_OWN else 0)
    found = _of_streams.get(key)
    if found is None:
        with _lock:
            # Another thread may have made it meanwhile; what has no memory yet, or gets none, has no entry.
            found = _of_streams.get(key)
            if found is None:
                found = _of_streams[key] = _make(driver, size_bytes)
    return found


def _lend(driver: Driver, device: int, graph: ctypes.c_void_p, size_bytes: int) -> _Lent:
    library = _open_threads()
    ended = next(
        (key for key, lent in _of_graphs.items() if key[0] == device and not library.sem_trywait(lent.gone)), None
    )
    address = _of_graphs.pop(ended).address if ended is not None else _make(driver, size_bytes)
    gone = ctypes.create_string_buffer(_SEMAPHORE_BYTES)
    library.sem_init(gone, 0, 0)
    kept = ctypes.c_void_p()
    raise_it = ctypes.cast(library.sem_post, ctypes.c_void_p)
    call(driver, "cuUserObjectCreate", ctypes.byref(kept), gone, raise_it, 1, _NO_SYNC)
    call(driver, "cuGraphRetainUserObject", graph, kept, 1, _MOVE)
    return _Lent(address, gone)


def _make(driver: Driver, size_bytes: int) -> int:
    """New memory of zeros, also while streams are being captured."""
    mode, stream = ctypes.c_int(_RELAXED), ctypes.c_void_p()
    call(driver, "cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        address = allocate(driver, size_bytes)
        call(driver, "cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
        call(
            driver, "cuMemsetD8Async", ctypes.c_uint64(address), ctypes.c_ubyte(0), ctypes.c_size_t(size_bytes), stream
        )
        call(driver, "cuStreamSynchronize", stream)
        call(driver, "cuStreamDestroy_v2", stream)
    finally:
        call(driver, "cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    return address


@cache
def _open_threads() -> ctypes.CDLL:
    """The library of the process, which has semaphores: what raises one runs no Python, in a thread of the driver."""
    return ctypes.CDLL(None)
