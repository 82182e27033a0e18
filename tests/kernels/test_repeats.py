"""A call that is made again is launched again without being planned again, and only then."""

from __future__ import annotations

import ctypes
import sys
import types
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from sectorwise import kernels
from sectorwise.errors import ArgumentError
from sectorwise.kernels import gemv_plans, launching, products, repeats
from sectorwise.verify.driver import Driver
from tests.kernels.devices import InterfaceArray, TensorLike
from tests.kernels.test_launching import Library

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = 0x1234


class Tensor(TensorLike):
    """What the stand-in for PyTorch has for tensors."""

    __module__ = "torch"


class Torch(types.ModuleType):
    """As much of PyTorch as is asked for an array."""

    bfloat16 = "bfloat16"

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str, device: object) -> Tensor:
        """A new tensor."""
        del device
        return Tensor(np.zeros(shape, np.uint16), dtype)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[Library]:
    """A stand-in for the driver that notes launches, and PyTorch beside it; nothing is remembered."""
    found = Library(9)
    driver = Driver(found, ctypes.c_int())  # type: ignore[arg-type] # a stand-in
    monkeypatch.setattr(launching, "open_library", lambda: driver)
    monkeypatch.setattr(launching, "_load", lambda *_: ctypes.c_void_p(7))
    monkeypatch.setattr(products, "count_multiprocessors", lambda _device: 132)
    torch = Torch("torch")
    monkeypatch.setattr(torch, "Tensor", Tensor, raising=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    kept = (launching.read_capability, launching._retain)  # noqa: SLF001 - what is kept of a device
    for each in kept:
        each.cache_clear()
    repeats.forget()
    yield found
    repeats.forget()
    for each in kept:
        each.cache_clear()


def tensor(*shape: int) -> Tensor:
    """A tensor of zeros."""
    return Tensor(np.zeros(shape, np.uint16), "bfloat16")


def count_plans(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Notes what is planned from here on."""
    planned: list[object] = []
    plan = gemv_plans.plan_product

    def note(*given: Any) -> Any:  # noqa: ANN401 - as the planner
        planned.append(given[0])
        return plan(*given)

    monkeypatch.setattr(products, "plan_product", note)
    return planned


def test_the_same_call_is_launched_again_as_it_was(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = count_plans(monkeypatch)
    x, weights, out = tensor(2, 256), tensor(32, 256), tensor(2, 32)
    for _ in range(3):
        assert kernels.gemv(x, weights, out, stream=STREAM) is out
    assert len(planned) == 1
    assert len(library.launches) == 3
    assert library.launches[0] == library.launches[1] == library.launches[2]
    assert library.launches[0]["stream"] == STREAM


def test_any_other_call_is_planned_anew(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = count_plans(monkeypatch)
    x, weights, out = tensor(2, 256), tensor(32, 256), tensor(2, 32)
    kernels.gemv(x, weights, out, stream=STREAM)
    kernels.gemv(x, weights, out, stream=STREAM + 1)
    kernels.gemv(x, weights, out, stream=STREAM, weights_ready=True)
    kernels.gemv(x, weights, tensor(2, 32), stream=STREAM)
    kernels.gemv(tensor(2, 256), weights, out, stream=STREAM)
    kernels.gemv(Tensor(x.values[:1], "bfloat16"), weights, Tensor(out.values[:1], "bfloat16"), stream=STREAM)
    kernels.gemv(
        Tensor(x.values, "float16"), Tensor(weights.values, "float16"), Tensor(out.values, "float16"), stream=0
    )
    assert len(planned) == len(library.launches) == 7


def test_without_out_a_repeated_call_allocates_alone(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    planned, held = count_plans(monkeypatch), tensor(2, 32)
    monkeypatch.setattr(Torch, "empty", staticmethod(lambda shape, dtype, device: held))  # noqa: ARG005 - PyTorch's
    x, weights = tensor(2, 256), tensor(32, 256)
    for _ in range(2):
        assert kernels.gemv(x, weights, stream=STREAM) is held
    assert (len(planned), len(library.launches)) == (1, 2)


def test_what_is_lazily_negated_is_refused_each_time(library: Library) -> None:
    x, weights, out = tensor(2, 256), tensor(32, 256), tensor(2, 32)
    kernels.gemv(x, weights, out, stream=STREAM)
    x.is_neg = lambda: True  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(ArgumentError, match="negated"):
            kernels.gemv(x, weights, out, stream=STREAM)
    assert len(library.launches) == 1


def test_no_more_are_remembered_than_are_to_be(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = count_plans(monkeypatch)
    monkeypatch.setattr(repeats, "_MOST", 2)
    x, weights = tensor(2, 256), tensor(32, 256)
    outs = [tensor(2, 32) for _ in range(3)]
    for out in (*outs, outs[2], outs[0]):
        kernels.gemv(x, weights, out, stream=STREAM)
    assert (len(planned), len(library.launches)) == (4, 5)


class Ndarray(InterfaceArray):
    """What the stand-in for CuPy has for arrays."""

    __module__ = "cupy"
    __slots__ = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of elements."""
        return self.values.dtype


def test_packed_weights_of_cupy_are_of_another_type(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy = types.ModuleType("cupy")
    cupy.empty = lambda shape, dtype: Ndarray(np.zeros(shape, dtype))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    packed = kernels.pack_int4(Ndarray(np.zeros((32, 256), np.int8)), stream=STREAM)
    assert (packed.dtype, packed.values.shape) == (np.uint8, (2, 2, 16, 64))
    assert len(library.launches) == 1
