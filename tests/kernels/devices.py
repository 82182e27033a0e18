"""Turns memory of the host into arrays that say, by the protocols of frameworks, that they are on a GPU."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class InterfaceArray:
    """An array with `__cuda_array_interface__`."""

    values: npt.NDArray[Any]
    read_only: bool = False
    stream: int | None = None

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Version 3, with the strides spelled out."""
        told = self.values.__array_interface__
        return {
            "version": 3,
            "typestr": told["typestr"],
            "shape": self.values.shape,
            "strides": self.values.strides,
            "data": (told["data"][0], self.read_only),
            "stream": self.stream,
        }


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


class CapsuleArray:
    """An array with DLPack alone: type code and bits as in dlpack.h, strides in elements or none."""

    def __init__(
        self, values: npt.NDArray[Any], code: int, *, strides: tuple[int, ...] | None = None, kind: int = 2, at: int = 0
    ) -> None:
        """Hold what the capsule points to."""
        self.values, self.kind = values, kind
        self._shape = (ctypes.c_int64 * values.ndim)(*values.shape)
        self._strides = None if strides is None else (ctypes.c_int64 * values.ndim)(*strides)
        told = values.__array_interface__["data"][0]
        self._tensor = _Tensor(told, kind, 3, values.ndim, code, 8 * values.itemsize, 1, 0, 0, at, 0, 0)
        self._tensor.shape = ctypes.addressof(self._shape)
        self._tensor.strides = None if self._strides is None else ctypes.addressof(self._strides)
        self.asked: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        """A device by kind and number."""
        return self.kind, 3

    def __dlpack__(self, stream: object = None) -> object:
        """A capsule without a destructor."""
        self.asked.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        made: object = new(ctypes.addressof(self._tensor), b"dltensor", None)
        return made


@dataclass(frozen=True, slots=True)
class _Device:
    type: str = "cuda"
    index: int | None = 0


class TensorLike:
    """An array that answers as PyTorch's tensors do; its type claims to be PyTorch's."""

    __module__ = "torch"
    layout = "torch.strided"

    def __init__(self, values: npt.NDArray[Any], dtype: str, device: str = "cuda") -> None:
        """Take the values of the host."""
        self.values, self.dtype, self.device, self.shape = values, f"torch.{dtype}", _Device(device), values.shape

    def data_ptr(self) -> int:
        """Address of element 0."""
        return int(self.values.__array_interface__["data"][0])

    def element_size(self) -> int:
        """Bytes an element."""
        return self.values.itemsize

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(step // self.values.itemsize for step in self.values.strides)

    def is_conj(self) -> bool:
        """Plain values."""
        return False

    def is_neg(self) -> bool:
        """Plain values."""
        return False

    def detach(self) -> Self:
        """Itself."""
        return self


def address_of(values: npt.NDArray[Any]) -> int:
    """Address of element 0."""
    return int(values.__array_interface__["data"][0])


def random_bytes(count: int, seed: int = 1) -> npt.NDArray[np.uint8]:
    """Bytes to begin with."""
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)
