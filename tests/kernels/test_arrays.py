"""Arrays are read by the protocols of frameworks, and what cannot be right is refused before a GPU is asked."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise import kernels
from sectorwise.errors import ArgumentError, DeviceRunError
from sectorwise.kernels import launching, moving
from sectorwise.kernels.arrays import check_together, read_array
from sectorwise.kernels.axes import find_span, overlaps_itself
from sectorwise.kernels.frameworks import find_stream
from sectorwise.kernels.plan import KernelPlan, Operand
from tests.kernels.devices import CapsuleArray, InterfaceArray, TensorLike, address_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_interface_with_strides() -> None:
    values = np.zeros((6, 8), np.float32)[1::2, ::-1]
    read = read_array("a", InterfaceArray(values))
    assert read.operand == Operand(address_of(values), (3, 8), (64, -4), 4)
    assert (read.dtype, read.device, read.read_only, read.strides) == ("f32", None, False, (16, -1))


def test_interface_without_strides_is_contiguous() -> None:
    class Plain:
        __cuda_array_interface__ = {"version": 2, "typestr": "<i2", "shape": (3, 5), "data": (1024, True)}  # noqa: RUF012

    read = read_array("a", Plain())
    assert read.operand == Operand(1024, (3, 5), (10, 2), 2)
    assert (read.dtype, read.read_only) == ("i16", True)


@pytest.mark.parametrize(
    ("dtype", "code", "name"),
    [("u2", 4, "bf16"), ("f2", 2, "f16"), ("f4", 2, "f32"), ("i1", 0, "i8"), ("u1", 10, "e4m3"), ("u1", 1, "u8")],
)
def test_dlpack(dtype: str, code: int, name: str) -> None:
    values = np.zeros((4, 6), dtype)
    array = CapsuleArray(values, code, strides=(1, 4), at=2 * values.itemsize)
    read = read_array("a", array)
    item = values.itemsize
    assert read.operand == Operand(address_of(values) + 2 * item, (4, 6), (item, 4 * item), item)
    assert (read.dtype, read.device) == (name, 3)
    assert array.asked == [1]
    assert read_array("a", CapsuleArray(values, code)).operand.strides_bytes == (6 * item, item)


def test_tensors_are_asked_themselves() -> None:
    values = np.zeros((4, 6), np.uint16)
    read = read_array("a", TensorLike(values.T, "bfloat16"))
    assert read.operand == Operand(address_of(values), (6, 4), (2, 12), 2)
    assert (read.dtype, read.device) == ("bf16", 0)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros(3), "a: expected an array on a CUDA device, got DLPack device type 1"),
        ([1, 2], "a: expected an array on a GPU, with __cuda_array_interface__ or DLPack .* got list"),
        (TensorLike(np.zeros(3), "float64", device="cpu"), "a: expected a tensor on a GPU, got one on"),
        (CapsuleArray(np.zeros(3), 2, kind=1), "a: expected an array on a CUDA device, got DLPack device type 1"),
        (CapsuleArray(np.zeros(3), 3), "a: DLPack type 3 of 64 bits x 1 is not known"),
        (InterfaceArray(np.zeros(3, ">f4")), "device's byte order, got type '>f4'"),
    ],
)
def test_what_is_no_array_on_a_gpu_is_refused(value: object, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        read_array("a", value)


def test_arrays_of_two_devices_are_refused() -> None:
    first = read_array("a", CapsuleArray(np.zeros(3), 2))
    with pytest.raises(ArgumentError, match="out: expected an array on device 3, where a is, got one on device 1"):
        check_together((first, replace(first, name="out", device=1)))


def test_spans_and_overlap() -> None:
    assert find_span(Operand(1000, (3, 4), (-64, 8), 8)) == (1000 - 128, 1000 + 24 + 8)
    assert find_span(Operand(1000, (3, 0), (64, 8), 8)) == (1000, 1000)
    assert not overlaps_itself(Operand(0, (3, 4), (8, 24), 8))
    assert not overlaps_itself(Operand(0, (3, 1), (-8, 0), 8))
    assert overlaps_itself(Operand(0, (3, 4), (0, 8), 8))
    assert overlaps_itself(Operand(0, (3, 4), (24, 8), 8))
    assert not overlaps_itself(Operand(0, (3, 0), (0, 0), 8))


class Launches:
    """What would have been launched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[tuple[KernelPlan, dict[str, int], int, int]] = []
        monkeypatch.setattr(moving, "launch", self.take)
        monkeypatch.setattr(moving, "find_device", lambda _address: 0)

    def take(self, plan: KernelPlan, addresses: Mapping[str, int], device: int, stream: int) -> None:
        self.made.append((plan, dict(addresses), device, stream))


def test_a_transpose_is_launched_on_the_stream_of_its_array(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(monkeypatch)
    a, out = np.zeros((2, 64, 128), np.float32), np.zeros((2, 128, 64), np.float32)
    target = InterfaceArray(out)
    assert kernels.transpose(InterfaceArray(a, stream=77), target) is target
    kernels.soa_from_aos(InterfaceArray(a), target, stream=5)
    (plan, addresses, device, stream), (_, _, _, other) = launches.made
    assert plan.source == "transpose.cu"
    assert addresses == {"from": address_of(a), "to": address_of(out)}
    assert (device, stream, other) == (0, 77, 5)
    assert find_stream(CapsuleArray(a, 2)) == 0


def test_nothing_is_launched_for_empty_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(monkeypatch)
    kernels.copy(InterfaceArray(np.zeros((0, 3))), InterfaceArray(np.zeros((0, 3))))
    assert launches.made == []


def test_bad_outputs_are_refused() -> None:
    values = np.zeros((8, 8), np.float32)
    a, other = InterfaceArray(values), np.zeros((8, 8), np.float32)
    cases = {
        "out: expected memory apart from a's, got overlapping ranges": InterfaceArray(values.T),
        r"out: expected f32 of shape \(8, 8\), got f32 of shape \(8, 4\)": InterfaceArray(other[:, :4]),
        r"out: expected f32 of shape \(8, 8\), got f64 of shape \(8, 8\)": InterfaceArray(np.zeros((8, 8))),
        "out: expected an array that may be written": InterfaceArray(other, read_only=True),
        "out: expected elements that lie apart": InterfaceArray(np.broadcast_to(other[:1], (8, 8))),
    }
    for said, out in cases.items():
        with pytest.raises(ArgumentError, match=said):
            kernels.copy(a, out)
    with pytest.raises(ArgumentError, match="a: expected at least two axes to exchange"):
        kernels.transpose(InterfaceArray(np.zeros(3)), a)
    with pytest.raises(ArgumentError, match="out: expected an array to write to, as tests"):
        kernels.copy(a)


def test_elements_that_no_kernel_moves_are_refused() -> None:
    record = np.zeros(4, np.dtype("V3"))
    interface = InterfaceArray(record)
    with pytest.raises(ArgumentError, match="a: expected numbers"):
        kernels.copy(interface, interface)


def test_without_a_gpu_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> ctypes.CDLL:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    launching.open_library.cache_clear()
    with pytest.raises(DeviceRunError, match="the kernels run on an NVIDIA GPU, and here is none: there is no NVIDIA"):
        kernels.copy(InterfaceArray(np.zeros(3)), InterfaceArray(np.zeros(3)))
    launching.open_library.cache_clear()
