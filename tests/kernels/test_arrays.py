"""Arrays are read by the protocols of frameworks, and what cannot be right is refused before a GPU is asked."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise import kernels
from sectorwise.errors import ArgumentError, DeviceRunError
from sectorwise.kernels import launching, moving, products
from sectorwise.kernels.arrays import check_together, read_array
from sectorwise.kernels.axes import find_span, overlaps_itself
from sectorwise.kernels.frameworks import find_stream
from sectorwise.kernels.plan import KernelPlan, Operand
from tests.kernels.devices import CapsuleArray, InterfaceArray, TensorLike, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
        (
            InterfaceArray(np.zeros(4, "f4,i2")["f0"]),
            r"a: expected elements at multiples of their 4 bytes, got strides of \(6,\) bytes from",
        ),
        (InterfaceArray(np.zeros(9, "u1")[1:].view("f4")), "a: expected elements at multiples of their 4 bytes"),
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
        for module in (moving, products):
            monkeypatch.setattr(module, "launch", self.take)
        monkeypatch.setattr(launching, "find_device", lambda _address: 0)
        monkeypatch.setattr(products, "count_multiprocessors", lambda _device: 132)
        monkeypatch.setattr(products, "read_capability", lambda _device: (8, 0))

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


def test_products_are_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(monkeypatch)
    x, weights, out = np.zeros((4, 256), np.uint16), np.zeros((32, 256), np.uint16), np.zeros((4, 32), np.uint16)
    tensors = [TensorLike(each, "bfloat16") for each in (x, weights, out)]
    assert kernels.gemv(*tensors, stream=9) is tensors[2]
    scales, bytes_ = TensorLike(np.ones(32, np.float32), "float32"), np.zeros((32, 256), np.uint8)
    kernels.gemv_fp8(tensors[0], TensorLike(bytes_, "float8_e4m3fn"), scales, tensors[2], stream=9)
    kernels.gemv_fp8(tensors[0], TensorLike(bytes_, "uint8"), scales, tensors[2], stream=9)
    kernels.gemv_int8(tensors[0], TensorLike(bytes_.view(np.int8), "int8"), scales, tensors[2], stream=9)
    packed, groups = (
        TensorLike(np.zeros((2, 2, 16, 64), np.uint8), "uint8"),
        TensorLike(np.ones((2, 32), "u2"), "bfloat16"),
    )
    kernels.gemv_int4(tensors[0], packed, groups, tensors[2], stream=9)
    assert kernels.pack_int4(TensorLike(bytes_.view(np.int8), "int8"), packed, stream=9) is packed
    formats = ["Plain", "E4m3", "E4m3", "Int8", "Int4"]
    assert [plan.kernel.split(",")[0] for plan, *_ in launches.made] == [
        *(f"gemv_tensor<{form}" for form in formats),
        "pack_int4",
    ]
    assert launches.made[4][1] == {
        "x": address_of(x),
        "weights": address_of(packed.values),
        "y": address_of(out),
        "scales": address_of(groups.values),
    }
    kernels.gemv(*(TensorLike(np.zeros(shape, "f4"), "float32") for shape in ((0, 8), (3, 8), (0, 3))))
    assert len(launches.made) == 6
    a, c = (TensorLike(np.zeros((20, width), np.uint16), "bfloat16") for width in (256, 32))
    assert kernels.matmul(a, TensorLike(weights.T, "bfloat16"), c, stream=9) is c
    plan, addresses, _, _ = launches.made[6]
    assert plan.kernel == "matmul_tensor<bf16, 64, true, false>"
    assert addresses == {"a": address_of(a.values), "b": address_of(weights), "c": address_of(c.values)}


def test_bad_products_are_refused() -> None:
    def tensor(dtype: str, *shape: int) -> TensorLike:
        return TensorLike(
            np.zeros(shape, {"bfloat16": "u2", "float32": "f4", "int8": "i1", "uint8": "u1"}[dtype]), dtype
        )

    x, weights, row = tensor("bfloat16", 2, 256), tensor("bfloat16", 8, 256), tensor("float32", 8)
    bad: dict[str, Callable[[], object]] = {
        r"x: expected bf16, f16, f32 of shape \(K,\) or \(batch, K\), got i8": lambda: kernels.gemv(
            tensor("int8", 256), weights
        ),
        r"weights: expected bf16 of shape \(N, 256\), as x has 256 elements, got f32": lambda: kernels.gemv(
            x, tensor("float32", 8, 256)
        ),
        r"weights: expected i8 of shape": lambda: kernels.gemv_int8(x, weights, row),
        r"scales: expected f32 of shape \(8,\) or \(1,\)": lambda: kernels.gemv_int8(
            x, tensor("int8", 8, 256), tensor("float32", 7)
        ),
        r"a: expected bf16 or f16 of shape \(\.\.\., m, k\), got f32": lambda: kernels.matmul(row, weights),
        r"b: expected bf16 of shape \(\.\.\., 256, n\), as a has 256 columns": lambda: kernels.matmul(x, weights),
        r"packed: expected u8 of shape \(1, 2, 16, 64\), as pack_int4 makes of \(8, 256\), got u8": lambda: (
            kernels.gemv_int4(x, tensor("uint8", 8, 128), tensor("bfloat16", 2, 8))
        ),
        r"scales: expected bf16 of shape \(2, N\)": lambda: kernels.gemv_int4(x, tensor("uint8", 1, 2, 16, 64), row),
        r"weights: expected i8 of shape \(N, K\)": lambda: kernels.pack_int4(x),
        r"out: expected bf16 of shape \(2, 8\)": lambda: kernels.gemv(x, weights, tensor("bfloat16", 2, 9)),
        r"out: expected memory apart from weights's": lambda: kernels.gemv(
            x, weights, TensorLike(weights.values[:2, :8], "bfloat16")
        ),
    }
    for said, call in bad.items():
        with pytest.raises(ArgumentError, match=said):
            call()


def test_packed_bytes_of_one_tile_lie_together_whatever_its_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = Launches(monkeypatch)
    x, weights = TensorLike(np.zeros(128, "u2"), "float16"), TensorLike(np.zeros((1, 128), "i1"), "int8")
    scales, out = TensorLike(np.zeros((1, 1), "u2"), "float16"), TensorLike(np.zeros(1, "u2"), "float16")
    spread = TensorLike(np.zeros((1, 1, 16, 128), "u1")[..., ::2], "uint8")
    with pytest.raises(
        ArgumentError, match=r"packed: expected bytes that lie together, got strides \(2048, 2048, 128, 2\)"
    ):
        kernels.gemv_int4(x, spread, scales, out, stream=9)
    with pytest.raises(ArgumentError, match=r"out: expected bytes that lie together, from a multiple of 4 on"):
        kernels.pack_int4(weights, spread, stream=9)
    tile = TensorLike(np.zeros((4, 3, 16, 64), "u1")[::4, ::3], "uint8")
    assert kernels.pack_int4(weights, tile, stream=9) is tile
    assert kernels.gemv_int4(x, tile, scales, out, stream=9) is out
    assert len(launches.made) == 2


def test_without_a_gpu_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> ctypes.CDLL:
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    launching.open_library.cache_clear()
    with pytest.raises(DeviceRunError, match="the kernels run on an NVIDIA GPU, and here is none: there is no NVIDIA"):
        kernels.copy(InterfaceArray(np.zeros(3)), InterfaceArray(np.zeros(3)))
    launching.open_library.cache_clear()
