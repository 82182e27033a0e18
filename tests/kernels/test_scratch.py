"""No two launches that may run at a time hand things on through the same memory, seen by a stand-in for the driver."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.errors import DeviceRunError
from sectorwise.kernels import scratch
from sectorwise.verify.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 1 << 20


@dataclass
class Library:
    """A driver's library: what is captured on which stream, what was allocated, what graphs keep."""

    captured: dict[int, tuple[int, int]] = field(default_factory=dict)
    allocated: list[int] = field(default_factory=list)
    cleared: list[tuple[int, int, int]] = field(default_factory=list)
    kept: dict[int, list[tuple[Any, Any]]] = field(default_factory=dict)
    mode: int = 0

    def __getattr__(self, name: str) -> Callable[..., int]:
        """A function that succeeds."""
        return lambda *_: 0

    def cuStreamGetCaptureInfo_v2(  # noqa: N802 - CUDA's
        self,
        stream: ctypes.c_void_p,
        status: Any,  # noqa: ANN401
        number: Any,  # noqa: ANN401
        graph: Any,  # noqa: ANN401
        *_: object,
    ) -> int:
        """Whether a stream is captured, into which graph."""
        if (stream.value or 0) in self.captured:
            status._obj.value = 1  # noqa: SLF001 - what byref points to
            number._obj.value, graph._obj.value = self.captured[stream.value or 0]  # noqa: SLF001
        return 0

    def cuThreadExchangeStreamCaptureMode(self, mode: Any) -> int:  # noqa: ANN401, N802 - CUDA's
        """Exchange the mode."""
        self.mode, mode._obj.value = mode._obj.value, self.mode  # noqa: SLF001
        return 0

    def cuMemAlloc_v2(self, address: Any, size: ctypes.c_size_t) -> int:  # noqa: ANN401, N802 - CUDA's
        """New memory, which a thread that captures may have in relaxed mode alone."""
        assert (self.mode, size.value) == (2, SIZE)
        self.allocated.append(0x1000 * (len(self.allocated) + 1))
        address._obj.value = self.allocated[-1]  # noqa: SLF001
        return 0

    def cuMemsetD8Async(self, address: Any, value: Any, size: Any, _stream: object) -> int:  # noqa: ANN401, N802
        """Note what is cleared."""
        self.cleared.append((address.value, value.value, size.value))
        return 0

    def cuUserObjectCreate(self, kept: Any, pointer: Any, destroy: Any, count: int, flags: int) -> int:  # noqa: ANN401, N802
        """An object that calls `destroy` with the pointer when nothing keeps it."""
        assert (count, flags) == (1, 1)
        kept._obj.value = 5  # noqa: SLF001
        self._made = pointer, destroy
        return 0

    def cuGraphRetainUserObject(self, graph: Any, kept: Any, count: int, flags: int) -> int:  # noqa: ANN401, N802
        """The graph keeps it."""
        assert (kept.value, count, flags) == (5, 1, 1)
        self.kept.setdefault(graph.value, []).append(self._made)
        return 0

    def destroy_graph(self, graph: int) -> None:
        """As the driver does when the graph and what was instantiated from it are gone."""
        for pointer, destroy in self.kept.pop(graph):
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(destroy.value)(ctypes.addressof(pointer))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """A driver that has given no memory yet."""
    monkeypatch.setattr(scratch, "_of_streams", {})
    monkeypatch.setattr(scratch, "_of_graphs", {})
    return Library()


def find(library: Library, stream: int, device: int = 0) -> int:
    """The memory of a stream."""
    return scratch.find_scratch(Driver(library, ctypes.c_int()), device, stream, SIZE)  # type: ignore[arg-type]


def test_each_stream_of_each_device_keeps_memory_of_zeros(library: Library) -> None:
    found = [find(library, 7), find(library, 8), find(library, 7), find(library, 7, device=1), find(library, 0)]
    assert found == [0x1000, 0x2000, 0x1000, 0x3000, 0x4000]
    assert library.cleared == [(address, 0, SIZE) for address in library.allocated]
    assert library.mode == 0


def test_a_graph_has_memory_of_its_own(library: Library) -> None:
    assert find(library, 7) == 0x1000
    library.captured = {7: (1, 100), 8: (1, 100)}
    assert [find(library, 7), find(library, 8), find(library, 7)] == [0x2000, 0x3000, 0x2000]
    library.captured = {7: (2, 200)}
    assert find(library, 7) == 0x4000
    library.captured = {}
    assert find(library, 7) == 0x1000


def test_the_memory_of_a_graph_that_is_no_more_is_another_ones(library: Library) -> None:
    library.captured = {7: (1, 100)}
    assert find(library, 7) == 0x1000
    library.captured = {7: (2, 200)}
    assert find(library, 7) == 0x2000
    library.destroy_graph(100)
    library.captured = {7: (3, 300)}
    assert find(library, 7) == 0x1000
    library.captured = {7: (4, 400)}
    assert find(library, 7) == 0x3000
    assert sorted(library.kept) == [200, 300, 400]


def test_a_stream_that_got_no_memory_asks_again(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(library, "cuMemAlloc_v2", lambda *_: 2)  # CUDA_ERROR_OUT_OF_MEMORY
        for _ in range(2):
            with pytest.raises(DeviceRunError):
                find(library, 7)
    assert find(library, 7) == 0x1000


def test_threads_that_share_a_stream_have_the_same_memory(library: Library) -> None:
    found: list[int] = []
    other = Thread(target=lambda: found.append(find(library, 7)))
    make = library.cuMemAlloc_v2

    def pause(address: Any, size: ctypes.c_size_t) -> int:  # noqa: ANN401
        if not other.ident:
            other.start()
            other.join(0.2)
        return make(address, size)

    library.cuMemAlloc_v2 = pause  # type: ignore[method-assign]
    found.append(find(library, 7))
    other.join()
    assert found == [0x1000, 0x1000]
