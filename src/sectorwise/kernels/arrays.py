"""Turns what frameworks call arrays on a GPU into where these lie, by their protocols and without importing any."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from typing import Any, Final

from sectorwise.errors import ArgumentError
from sectorwise.kernels.axes import find_span, overlaps_itself
from sectorwise.kernels.plan import Operand

_DLPACK_CUDA: Final = (2, 13)
"""kDLCUDA and kDLCUDAManaged of dlpack.h."""

_DLPACK_TYPES: Final = {
    (0, 8): "i8",
    (0, 16): "i16",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 8): "u8",
    (1, 16): "u16",
    (1, 32): "u32",
    (1, 64): "u64",
    (2, 16): "f16",
    (2, 32): "f32",
    (2, 64): "f64",
    (4, 16): "bf16",
    (5, 64): "c64",
    (5, 128): "c128",
    (6, 8): "bool",
    (10, 8): "e4m3",
}
"""Types by the code and bits of dlpack.h; 10 is kDLFloat8_e4m3fn."""

_KINDS: Final = {"i": "i", "u": "u", "f": "f", "c": "c", "b": "bool"}
_TORCH_NAMES: Final = {
    "torch.bfloat16": "bf16",
    "torch.float16": "f16",
    "torch.float32": "f32",
    "torch.float64": "f64",
    "torch.int8": "i8",
    "torch.int16": "i16",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.uint8": "u8",
    "torch.bool": "bool",
    "torch.complex64": "c64",
    "torch.complex128": "c128",
    "torch.float8_e4m3fn": "e4m3",
}
_MOVABLE_BYTES: Final = (1, 2, 4, 8, 16)
_DEFAULT_STREAM: Final = 1
"""The stream of `__dlpack__` that what is launched goes to, as `frameworks.find_stream` has it: the producer waits."""


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array on a GPU: its place, its type (`bf16`), the number of the device, and whether it may be written.

    `device` is None where the protocol does not say. `name` is the parameter's, for errors.
    """

    name: str
    operand: Operand
    dtype: str
    device: int | None
    read_only: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return self.operand.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Distances along each axis, in elements."""
        return tuple(stride // self.operand.item_bytes for stride in self.operand.strides_bytes)


def read_array(name: str, value: object) -> DeviceArray:
    """The place of an array of PyTorch, CuPy, JAX, Numba or any other with one of the two protocols.

    Tensors of PyTorch are asked directly, as their protocols leave out some types; then `__cuda_array_interface__`,
    then DLPack.

    Raises:
        ArgumentError: it is no array, none on a GPU, of a type that has no name here, or has elements that begin at no
            multiple of their size.
    """
    array = _ask(name, value)
    item = array.operand.item_bytes
    steps = [step for size, step in zip(array.shape, array.operand.strides_bytes, strict=True) if size > 1]
    if 0 not in array.shape and any(place % item for place in (array.operand.address, *steps)):
        raise ArgumentError(
            f"{name}: expected elements at multiples of their {item} bytes, got strides of "
            f"{array.operand.strides_bytes} bytes from address {array.operand.address:#x}"
        )
    return array


def _ask(name: str, value: object) -> DeviceArray:
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "data_ptr"):
        return _read_tensor(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        return _read_interface(name, value.__cuda_array_interface__)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _read_dlpack(name, value)
    raise ArgumentError(
        f"{name}: expected an array on a GPU, with __cuda_array_interface__ or DLPack (of PyTorch, CuPy, JAX, Numba), "
        f"got {type(value).__name__}"
    )


def check_output(out: DeviceArray, shape: tuple[int, ...], dtype: str, inputs: tuple[DeviceArray, ...]) -> None:
    """Refuse an array that cannot take the result.

    Raises:
        ArgumentError: its shape, type or device is another, it may not be written, elements of it share bytes, or it
            overlaps an input.
    """
    if out.shape != shape or out.dtype != dtype:
        raise ArgumentError(f"{out.name}: expected {dtype} of shape {shape}, got {out.dtype} of shape {out.shape}")
    if out.read_only:
        raise ArgumentError(f"{out.name}: expected an array that may be written, got a read-only one")
    if overlaps_itself(out.operand):
        raise ArgumentError(f"{out.name}: expected elements that lie apart, got strides {out.strides} for {out.shape}")
    begin, end = find_span(out.operand)
    for given in inputs:
        low, high = find_span(given.operand)
        if begin < high and low < end:
            raise ArgumentError(f"{out.name}: expected memory apart from {given.name}'s, got overlapping ranges")


def check_together(arrays: tuple[DeviceArray, ...]) -> None:
    """Refuse arrays of several GPUs.

    Raises:
        ArgumentError: two are known to be on different ones.
    """
    first = next((array for array in arrays if array.device is not None), None)
    for array in arrays:
        if first is not None and array.device not in {None, first.device}:
            raise ArgumentError(
                f"{array.name}: expected an array on device {first.device}, where {first.name} is, got one on device "
                f"{array.device}"
            )


def check_movable(array: DeviceArray) -> None:
    """Refuse elements that no kernel moves.

    Raises:
        ArgumentError: their size is not 1, 2, 4, 8 or 16 bytes.
    """
    if array.operand.item_bytes not in _MOVABLE_BYTES:
        raise ArgumentError(f"{array.name}: expected elements of 1, 2, 4, 8 or 16 bytes, got {array.dtype}")


def rename_type(array: DeviceArray, dtype: str) -> DeviceArray:
    """The array with its bits read as another type of the same size."""
    return replace(array, dtype=dtype)


def contiguous_strides(shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Strides in bytes of an array whose last axis is nearest."""
    return tuple(item_bytes * math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _read_tensor(name: str, tensor: Any) -> DeviceArray:  # noqa: ANN401 - a tensor of PyTorch
    if tensor.device.type != "cuda":
        raise ArgumentError(f"{name}: expected a tensor on a GPU, got one on {tensor.device}")
    if str(tensor.layout) != "torch.strided":
        raise ArgumentError(f"{name}: expected a dense tensor, got layout {tensor.layout}")
    if tensor.is_conj() or tensor.is_neg():
        raise ArgumentError(f"{name}: expected plain values, got a lazily conjugated or negated view: call resolve_*")
    item = int(tensor.element_size())
    strides = tuple(int(stride) * item for stride in tensor.stride())
    dtype = _TORCH_NAMES.get(str(tensor.dtype), str(tensor.dtype))
    operand = Operand(int(tensor.data_ptr()), tuple(int(n) for n in tensor.shape), strides, item)
    return DeviceArray(name, operand, dtype, int(tensor.device.index or 0), read_only=False)


def _read_interface(name: str, interface: dict[str, Any]) -> DeviceArray:
    """What `__cuda_array_interface__` says; its versions 2 and 3 do not name the device."""
    kind, item = str(interface["typestr"])[1], int(str(interface["typestr"])[2:])
    if kind not in _KINDS or str(interface["typestr"])[0] == ">":
        raise ArgumentError(f"{name}: expected numbers in the device's byte order, got type {interface['typestr']!r}")
    if interface.get("mask") is not None:
        raise ArgumentError(f"{name}: expected an array without a mask, got one with")
    dtype = "bool" if kind == "b" else f"{_KINDS[kind]}{8 * item}"
    shape = tuple(int(extent) for extent in interface["shape"])
    strides = interface.get("strides")
    strides = contiguous_strides(shape, item) if strides is None else tuple(int(stride) for stride in strides)
    address, read_only = interface["data"]
    return DeviceArray(name, Operand(int(address or 0), shape, strides, item), dtype, None, bool(read_only))


class _DLTensor(ctypes.Structure):
    """The fields of dlpack.h; a managed tensor begins with them."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


def _read_dlpack(name: str, value: Any) -> DeviceArray:  # noqa: ANN401 - any array
    """What a DLPack capsule says; it is not consumed, so its own destructor gives the tensor back."""
    kind, _ = value.__dlpack_device__()
    if int(kind) not in _DLPACK_CUDA:
        raise ArgumentError(f"{name}: expected an array on a CUDA device, got DLPack device type {int(kind)}")
    capsule = value.__dlpack__(stream=_DEFAULT_STREAM)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(pointer_of(capsule, b"dltensor"))
    dtype = _DLPACK_TYPES.get((tensor.code, tensor.bits))
    if dtype is None or tensor.lanes != 1:
        raise ArgumentError(f"{name}: DLPack type {tensor.code} of {tensor.bits} bits x {tensor.lanes} is not known")
    item = tensor.bits // 8
    shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
    strides = contiguous_strides(shape, item)
    if tensor.strides:
        strides = tuple(tensor.strides[axis] * item for axis in range(tensor.ndim))
    address = int(tensor.data or 0) + int(tensor.byte_offset)
    return DeviceArray(name, Operand(address, shape, strides, item), dtype, int(tensor.device_id), read_only=False)
