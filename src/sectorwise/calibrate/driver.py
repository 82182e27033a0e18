"""Turns calls of Python into calls of the CUDA driver, through the library itself: no further package is needed."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.errors import MissingToolError, UnsupportedDeviceError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
_MAX_DYNAMIC_SHARED = 8
_ATTRIBUTES = {
    "max_threads_per_sm": 39,
    "clock_khz": 13,
    "sm_count": 16,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "major": 75,
    "minor": 76,
    "shared_per_block_optin_bytes": 97,
}

Argument = int | float | ctypes.c_uint64 | ctypes.c_double


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU with a context: its driver, its name, the driver's version (12080), and attributes by our names."""

    library: ctypes.CDLL
    name: str
    driver_version: int
    attributes: dict[str, int]

    def call(self, function: str, *arguments: object) -> None:
        """Call a function of the driver; raises `UnsupportedDeviceError` with its name where it fails."""
        status = getattr(self.library, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(status, ctypes.byref(text))
            raise UnsupportedDeviceError(f"{function} failed: {(text.value or b'unknown').decode()}")


def open_gpu() -> Gpu:
    """The first GPU of this machine.

    Raises:
        MissingToolError: there is no driver, or no GPU.
    """
    library = _load()
    if library is None or library.cuInit(0):
        raise MissingToolError(
            "calibrate measures a GPU, and this machine has none: no CUDA driver answers. Everything else works "
            "without one; --device takes the GPUs that come with sectorwise, or a file that calibrate wrote elsewhere."
        )
    gpu = Gpu(library, "", 0, {})
    device, context, version = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
    gpu.call("cuDeviceGet", ctypes.byref(device), 0)
    gpu.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    gpu.call("cuCtxSetCurrent", context)
    gpu.call("cuDriverGetVersion", ctypes.byref(version))
    name = ctypes.create_string_buffer(128)
    gpu.call("cuDeviceGetName", name, 128, device)
    attributes = {}
    for key, number in _ATTRIBUTES.items():
        value = ctypes.c_int()
        gpu.call("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        attributes[key] = value.value
    return Gpu(library, name.value.decode(), version.value, attributes)


def _load() -> ctypes.CDLL | None:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def load_module(gpu: Gpu, cubin: bytes) -> ctypes.c_void_p:
    """The module of a cubin."""
    module = ctypes.c_void_p()
    gpu.call("cuModuleLoadData", ctypes.byref(module), cubin)
    return module


def allocate(gpu: Gpu, size_bytes: int) -> ctypes.c_uint64:
    """Memory of the device, zeroed; it stays to the end of the process."""
    address = ctypes.c_uint64()
    gpu.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
    clear(gpu, address, size_bytes)
    return address


def clear(gpu: Gpu, address: ctypes.c_uint64, size_bytes: int) -> None:
    """Zero some memory of the device."""
    gpu.call("cuMemsetD8_v2", address, ctypes.c_ubyte(0), ctypes.c_size_t(size_bytes))


def read_back(gpu: Gpu, address: ctypes.c_uint64, dtype: str, count: int) -> npt.NDArray[np.generic]:
    """Numbers from the memory of the device, after everything that was launched; shape `(count,)`."""
    numbers = np.zeros(count, dtype)
    gpu.call("cuCtxSynchronize")
    gpu.call("cuMemcpyDtoH_v2", numbers.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(numbers.nbytes))
    return numbers


@dataclass(frozen=True, slots=True)
class Shape:
    """Blocks, threads a block and dynamic shared bytes of a launch."""

    blocks: int
    threads: int
    shared_bytes: int = 0


def make_launch(
    gpu: Gpu, module: ctypes.c_void_p, kernel: str, shape: Shape, arguments: Sequence[Argument]
) -> Callable[[], None]:
    """A function that launches a kernel of one dimension; whole numbers are passed as 32 bits, fractions as floats."""
    function = ctypes.c_void_p()
    gpu.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    if shape.shared_bytes:
        gpu.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shape.shared_bytes)
    values = [_convert(argument) for argument in arguments]
    pointers = (ctypes.c_void_p * len(values))(*[ctypes.cast(ctypes.byref(v), ctypes.c_void_p) for v in values])

    def launch() -> None:
        size = (shape.blocks, 1, 1, shape.threads, 1, 1, shape.shared_bytes)
        gpu.call("cuLaunchKernel", function, *size, None, pointers, None)
        del values[len(pointers) :]  # keeps the arguments alive as long as the function

    return launch


def _convert(argument: Argument) -> ctypes.c_uint64 | ctypes.c_double | ctypes.c_uint32 | ctypes.c_float:
    match argument:
        case int():
            return ctypes.c_uint32(argument & 0xFFFFFFFF)
        case float():
            return ctypes.c_float(argument)
        case _:
            return argument


def time_launch(gpu: Gpu, launch: Callable[[], None], *, times: int = 1, runs: int = 3) -> float:
    """Nanoseconds of one launch, the fastest of some runs of so many launches in a row, after one that is not timed."""
    events = [ctypes.c_void_p(), ctypes.c_void_p()]
    for event in events:
        gpu.call("cuEventCreate", ctypes.byref(event), 0)
    launch()
    best = float("inf")
    for _ in range(runs):
        gpu.call("cuEventRecord", events[0], None)
        for _ in range(times):
            launch()
        gpu.call("cuEventRecord", events[1], None)
        gpu.call("cuEventSynchronize", events[1])
        milliseconds = ctypes.c_float()
        gpu.call("cuEventElapsedTime", ctypes.byref(milliseconds), *events)
        best = min(best, milliseconds.value * 1e6 / times)
    return best
