"""Turns the cases of the table into times on this machine's GPU, each beside its peer in PyTorch where that is there.

A case is a CUDA graph of launches that go through several copies of its operands, together larger than L2. Graphs of
ours and of the peer are replayed in turns, and the median of the replays counts.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import platform
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sectorwise.errors import SectorwiseError
from sectorwise.frontends.nvrtc import load_nvrtc
from sectorwise.kernels.bench_cases import list_cases
from sectorwise.kernels.launching import count_multiprocessors, launch, make_current, open_library, read_capability
from sectorwise.kernels.torch_peers import capture_peer, find_torch
from sectorwise.verify.driver import allocate, call, describe_gpu, release, upload
from sectorwise.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sectorwise.kernels.bench_cases import BenchCase
    from sectorwise.verify.driver import Driver

ROTATED_BYTES: Final = 256 << 20
"""Copies of what is rotated take at least so much: four times the L2 of an H200."""

_REPLAYS: Final = 21
_WARM_UPS: Final = 3
_DEVICE: Final = 0
_RELAXED: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED of cuda.h
_PIECE_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class BenchRow:
    """What one case took: microseconds of a launch, those of the peer, terabytes a second, and whether that is enough.

    `peer_us` is None where there is no PyTorch, or where it does not do this; `peer_because` says why.
    """

    name: str
    kernel: str
    us: float
    tbps: float
    peer: str
    peer_us: float | None
    peer_because: str | None
    goal_us: float | None
    goal_tbps: float | None

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached; against the peer where there is no other; None where nothing tells."""
        if self.goal_us is not None:
            return self.us <= self.goal_us
        if self.goal_tbps is not None:
            return self.tbps >= self.goal_tbps
        return None if self.peer_us is None else self.us <= self.peer_us


@dataclass(frozen=True, slots=True)
class _Graph:
    """An instantiated graph of so many launches, and the stream that it is replayed on."""

    handle: ctypes.c_void_p
    stream: ctypes.c_void_p
    launches: int


def measure_cases(select: str = "") -> Iterator[BenchRow]:
    """Time the cases whose names contain `select`, one after the other.

    Raises:
        DeviceRunError: there is no GPU.
    """
    driver = open_library()
    for case in list_cases(count_multiprocessors(_DEVICE), read_capability(_DEVICE)):
        if select in case.name:
            with make_current(_DEVICE):
                yield measure_case(driver, case)


def describe_run(rows: list[BenchRow]) -> dict[str, Any]:
    """The document of a run: device, driver, versions, date, and the rows."""
    gpu, torch = describe_gpu(open_library()), find_torch()
    return {
        "schema": "sectorwise.kernels/1",
        "date": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "device": gpu.name,
        "driver": gpu.driver,
        "sectorwise": __version__,
        "compiler": load_nvrtc().version,
        "torch": None if torch is None else str(torch.__version__),
        "python": platform.python_version(),
        "rows": [{**{name: getattr(row, name) for name in BenchRow.__slots__}, "reached": row.reached} for row in rows],
    }


def measure_case(driver: Driver, case: BenchCase) -> BenchRow:
    """Time a case and its peer in turns."""
    rotated_bytes = sum(case.sizes_bytes[name] for name in case.rotated)
    copies = max(2, min(-(-ROTATED_BYTES // rotated_bytes), 64))
    memory = _allocate(driver, case, copies)
    try:
        ours = _capture(driver, case, memory)
        peer: Callable[[], float] | None = None
        because = None
        try:
            peer = capture_peer(case, copies)
        except (RuntimeError, AttributeError, NotImplementedError, SectorwiseError) as error:
            because = str(error).partition("\n")[0]
        mine, theirs = _replay_in_turns(driver, ours, peer)
    finally:
        for addresses in memory:
            for address in set(addresses.values()):
                release(driver, address)
    us = statistics.median(mine) / copies
    return BenchRow(
        name=case.name,
        kernel=case.plan.kernel,
        us=us,
        tbps=case.moved_bytes / us / 1e6,
        peer=case.peer,
        peer_us=statistics.median(theirs) / copies if theirs else None,
        peer_because=because,
        goal_us=case.goal_us,
        goal_tbps=case.goal_tbps,
    )


def _allocate(driver: Driver, case: BenchCase, copies: int) -> list[dict[str, int]]:
    """Addresses of the operands for each copy, filled with bfloat16 of a normal distribution whatever they hold."""
    random = np.random.default_rng(1).standard_normal(_PIECE_BYTES // 2).astype(np.float32)
    piece = (random.view(np.uint32) >> np.uint32(16)).astype(np.uint16).tobytes()
    memory: list[dict[str, int]] = []
    for number in range(copies):
        addresses = {}
        for name, size in case.sizes_bytes.items():
            if number and name not in case.rotated:
                addresses[name] = memory[0][name]
                continue
            addresses[name] = allocate(driver, size)
            for at in range(0, size, _PIECE_BYTES):
                count = min(_PIECE_BYTES, size - at)
                if at == 0:
                    upload(driver, addresses[name], piece[:count])
                else:
                    where = ctypes.c_uint64(addresses[name] + at), ctypes.c_uint64(addresses[name])
                    call(driver, "cuMemcpyDtoD_v2", *where, ctypes.c_size_t(count))
        memory.append(addresses)
    return memory


def _capture(driver: Driver, case: BenchCase, memory: list[dict[str, int]]) -> _Graph:
    """A graph of one launch for each copy; the kernel ran once before, so that it is loaded."""
    stream, graph, handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    launch(case.plan, memory[0], _DEVICE, 0)
    call(driver, "cuCtxSynchronize")
    call(driver, "cuStreamCreate", ctypes.byref(stream), 1)
    call(driver, "cuStreamBeginCapture_v2", stream, _RELAXED)
    for addresses in memory:
        launch(case.plan, addresses, _DEVICE, stream.value or 0)
    call(driver, "cuStreamEndCapture", stream, ctypes.byref(graph))
    call(driver, "cuGraphInstantiateWithFlags", ctypes.byref(handle), graph, ctypes.c_uint64(0))
    return _Graph(handle, stream, len(memory))


def _replay_in_turns(driver: Driver, ours: _Graph, peer: Callable[[], float] | None) -> tuple[list[float], list[float]]:
    """Microseconds of each replay."""
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        call(driver, "cuEventCreate", ctypes.byref(event), 0)
    mine, theirs = [], []
    for number in range(_WARM_UPS + _REPLAYS):
        call(driver, "cuEventRecord", events[0], ours.stream)
        call(driver, "cuGraphLaunch", ours.handle, ours.stream)
        call(driver, "cuEventRecord", events[1], ours.stream)
        call(driver, "cuEventSynchronize", events[1])
        taken = ctypes.c_float()
        call(driver, "cuEventElapsedTime", ctypes.byref(taken), *events)
        other = None if peer is None else peer()
        if number >= _WARM_UPS:
            mine.append(taken.value * 1e3)
            if other is not None:
                theirs.append(other)
    return mine, theirs
