"""Turns the cases of the table into times on this machine's GPU, each beside its peer in PyTorch where that is there.

A case is a CUDA graph of launches that go through several copies of its operands, together larger than L2. Graphs of
ours and of the peer are replayed in turns, and the median of the replays counts. Where our launches overlap, each
begins to read its weights while the one before still runs; a third graph has them one after the other.
"""

from __future__ import annotations

import ctypes
import datetime as dt
import platform
import statistics
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
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
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sectorwise.kernels.bench_cases import BenchCase
    from sectorwise.kernels.plan import KernelPlan
    from sectorwise.verify.driver import Driver

ROTATED_BYTES: Final = 256 << 20
"""Copies of what is rotated take at least so much: four times the L2 of an H200."""

_MOVED_BYTES: Final = 2 << 30
"""The launches of a graph move at least so much, unless they are many: what it takes to begin and to end is to weigh
little, about six microseconds."""

_LEAST_LAUNCHES, _MOST_LAUNCHES = 8, 192
"""Fewer than 8 are not enough for what moves much: the first launch of a graph meets an L2 full of what the graph
before it wrote and has yet to bring to DRAM, 12 microseconds where that was the driver's copy."""

_REPLAYS: Final = 21
_WARM_UPS: Final = 3
_DEVICE: Final = 0
_RELAXED: Final = 2  # CU_STREAM_CAPTURE_MODE_RELAXED of cuda.h
_PIECE_BYTES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class BenchRow:
    """What one case took: microseconds of a launch, those of the peer, terabytes a second, and whether that is enough.

    `peer_us` is None where there is no PyTorch, or where it does not do this; `peer_because` says why. `alone_us` is
    what a launch takes that does not overlap with the one before, None where none does; `memcpy_us` what the driver's
    own copy takes for as many bytes, where that is the goal. The peer is to take `goal_of_peer` times as long.
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
    alone_us: float | None = None
    memcpy_us: float | None = None
    goal_of_peer: float = 1.0

    @property
    def reached(self) -> bool | None:
        """Whether the goal was reached; against the peer where there is no other; None where nothing tells."""
        if self.goal_us is not None:
            return self.us <= self.goal_us
        if self.goal_tbps is not None:
            return self.tbps >= self.goal_tbps
        return None if self.peer_us is None else self.us * self.goal_of_peer <= self.peer_us


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
    """Time a case and its peers in turns."""
    copies, rounds = _count_copies(case)
    with _hold(driver, case, copies) as memory:
        replays = {"ours": _capture(driver, partial(_launch, case.plan), memory * rounds)}
        if case.plan.overlaps:
            alone = replace(case.plan, overlaps=False)
            replays["alone"] = _capture(driver, partial(_launch, alone), memory * rounds)
        if case.goal_of_memcpy is not None:
            copy = partial(_copy_bytes, driver, case.sizes_bytes["to"])
            replays["memcpy"] = _capture(driver, copy, memory * rounds)
        because = None
        try:
            replays["peer"] = capture_peer(case, copies, rounds)
        except (RuntimeError, AttributeError, NotImplementedError, SectorwiseError) as error:
            because = str(error).partition("\n")[0]
        taken = _replay_in_turns(replays, copies * rounds)
    memcpy_us, goal_tbps = taken.get("memcpy"), case.goal_tbps
    if memcpy_us is not None and case.goal_of_memcpy is not None:
        goal_tbps = case.goal_of_memcpy * case.moved_bytes / memcpy_us / 1e6
    return BenchRow(
        name=case.name,
        kernel=case.plan.kernel,
        us=taken["ours"],
        tbps=case.moved_bytes / taken["ours"] / 1e6,
        peer=case.peer,
        peer_us=taken.get("peer"),
        peer_because=because,
        goal_us=case.goal_us,
        goal_tbps=goal_tbps,
        alone_us=taken.get("alone"),
        memcpy_us=memcpy_us,
        goal_of_peer=case.goal_of_peer,
    )


def compare_plans(driver: Driver, case: BenchCase, plans: Mapping[str, KernelPlan]) -> dict[str, float]:
    """Microseconds of other plans for a case, in turns."""
    copies, rounds = _count_copies(case)
    with _hold(driver, case, copies) as memory:
        replays = {name: _capture(driver, partial(_launch, plan), memory * rounds) for name, plan in plans.items()}
        return _replay_in_turns(replays, copies * rounds)


def _count_copies(case: BenchCase) -> tuple[int, int]:
    """Copies of what is rotated, and how often a graph goes through them."""
    rotated_bytes = sum(case.sizes_bytes[name] for name in case.rotated)
    least = 2 if "weights" in case.rotated else 1  # what is moved leaves the L2 full of its end, and begins elsewhere
    copies = max(least, min(-(-ROTATED_BYTES // rotated_bytes), 64))
    launches = max(_LEAST_LAUNCHES, min(-(-_MOVED_BYTES // case.moved_bytes), _MOST_LAUNCHES))
    return copies, -(-launches // copies)


@contextmanager
def _hold(driver: Driver, case: BenchCase, copies: int) -> Iterator[list[dict[str, int]]]:
    memory = _allocate(driver, case, copies)
    try:
        yield memory
    finally:
        for address in {address for addresses in memory for address in addresses.values()}:
            release(driver, address)


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


def _launch(plan: KernelPlan, addresses: Mapping[str, int], stream: int) -> None:
    launch(plan, addresses, _DEVICE, stream)


def _copy_bytes(driver: Driver, size_bytes: int, addresses: Mapping[str, int], stream: int) -> None:
    where = ctypes.c_uint64(addresses["to"]), ctypes.c_uint64(addresses["from"])
    call(driver, "cuMemcpyDtoDAsync_v2", *where, ctypes.c_size_t(size_bytes), ctypes.c_void_p(stream))


def _capture(
    driver: Driver, put: Callable[[Mapping[str, int], int], None], memory: Sequence[Mapping[str, int]]
) -> Callable[[], float]:
    """A function that replays a graph of what is put on a stream for each copy, and gives the microseconds of all.

    All of it ran once before, so that it is loaded.
    """
    stream, graph, handle = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    put(memory[0], 0)
    call(driver, "cuCtxSynchronize")
    call(driver, "cuStreamCreate", ctypes.byref(stream), 1)
    call(driver, "cuStreamBeginCapture_v2", stream, _RELAXED)
    for addresses in memory:
        put(addresses, stream.value or 0)
    call(driver, "cuStreamEndCapture", stream, ctypes.byref(graph))
    call(driver, "cuGraphInstantiateWithFlags", ctypes.byref(handle), graph, ctypes.c_uint64(0))
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        call(driver, "cuEventCreate", ctypes.byref(event), 0)

    def replay() -> float:
        taken = ctypes.c_float()
        call(driver, "cuEventRecord", events[0], stream)
        call(driver, "cuGraphLaunch", handle, stream)
        call(driver, "cuEventRecord", events[1], stream)
        call(driver, "cuEventSynchronize", events[1])
        call(driver, "cuEventElapsedTime", ctypes.byref(taken), *events)
        return taken.value * 1e3

    return replay


def _replay_in_turns(replays: Mapping[str, Callable[[], float]], launches: int) -> dict[str, float]:
    """The median microseconds of a launch, of each."""
    taken: dict[str, list[float]] = {name: [] for name in replays}
    for number in range(_WARM_UPS + _REPLAYS):
        for name, replay in replays.items():
            us = replay()
            if number >= _WARM_UPS:
                taken[name].append(us)
    return {name: statistics.median(values) / launches for name, values in taken.items()}
