"""What is handed to the driver for a plan, seen by a stand-in for its library."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.kernels import launching
from sectorwise.kernels.extended import LaunchAttribute, LaunchConfig
from sectorwise.kernels.plan import KernelPlan, Number, Pointer
from sectorwise.verify.driver import Driver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAN = KernelPlan("copy.cu", "copy_bytes<16, 4>", (7, 2, 1), (128, 1, 1), (Pointer("from", 8), Number(-3, 4)), 1024)
STREAM = 0x1234
HANDLE = 0xF00D


@dataclass
class Library:
    """A driver's library of a GPU of one compute capability, that notes launches as what they carry."""

    major: int
    launches: list[dict[str, Any]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., int]:
        """A function that succeeds."""
        return lambda *_: 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, _: object) -> int:  # noqa: ANN401, N802 - CUDA's
        """Major and minor of the capability."""
        value._obj.value = {75: self.major, 76: 0}[attribute]  # noqa: SLF001 - what byref points to
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:  # noqa: ANN401, N802 - CUDA's
        """A plain launch."""
        shape, stream, table = rest[:7], rest[7], rest[8]
        self.launches.append({"function": function.value, "shape": shape, "stream": stream.value, **_read(table)})
        return 0

    def cuLaunchKernelEx(self, config: Any, function: Any, table: Any, _: object) -> int:  # noqa: ANN401, N802 - CUDA's
        """One with attributes."""
        given = config._obj  # noqa: SLF001 - what byref points to
        attribute = given.attributes[0]
        shape = (*given.grid, *given.block, given.dynamic_shared_bytes)
        noted = {"function": function.value, "shape": shape, "stream": given.stream, **_read(table)}
        self.launches.append({**noted, "attributes": (given.attribute_count, attribute.id, attribute.value)})
        return 0


def _read(table: Any) -> dict[str, int]:  # noqa: ANN401 - an array of pointers
    return {
        "pointer": ctypes.cast(table[0], ctypes.POINTER(ctypes.c_uint64))[0],
        "number": ctypes.cast(table[1], ctypes.POINTER(ctypes.c_int32))[0],
    }


def _forget() -> None:
    for kept in (launching.read_capability, launching._retain):  # noqa: SLF001 - what is kept of a device
        kept.cache_clear()


@pytest.fixture(autouse=True)
def _no_device_is_known() -> Iterator[None]:
    _forget()
    yield
    _forget()


def note_launch(monkeypatch: pytest.MonkeyPatch, plan: KernelPlan, major: int) -> dict[str, Any]:
    """What the driver of a GPU of so high a compute capability was given for a plan."""
    library = Library(major)
    driver = Driver(library, ctypes.c_int())  # type: ignore[arg-type] # a stand-in
    monkeypatch.setattr(launching, "open_library", lambda: driver)
    monkeypatch.setattr(launching, "_load", lambda *_: ctypes.c_void_p(HANDLE))
    launching.launch(plan, {"from": 512}, 0, STREAM)
    (noted,) = library.launches
    return noted


def test_a_plan_that_overlaps_says_so_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"function": HANDLE, "shape": (7, 2, 1, 128, 1, 1, 1024), "stream": STREAM, "pointer": 520, "number": -3}
    assert note_launch(monkeypatch, PLAN, 9) == plain
    overlapping = replace(PLAN, overlaps=True)
    assert note_launch(monkeypatch, overlapping, 9) == {**plain, "attributes": (1, 6, 1)}
    _forget()
    assert note_launch(monkeypatch, overlapping, 8) == plain


def test_structures_lie_as_in_cuda_h() -> None:
    assert (ctypes.sizeof(LaunchAttribute), LaunchAttribute.value.offset) == (72, 8)
    assert ctypes.sizeof(LaunchConfig) == 56
    offsets = [getattr(LaunchConfig, name).offset for name, *_ in LaunchConfig._fields_]
    assert offsets == [0, 12, 24, 32, 40, 48]
