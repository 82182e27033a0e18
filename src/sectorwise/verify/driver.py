"""Turns calls of the CUDA driver's library into Python calls that fail with words; nothing else of CUDA is needed."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Final

from sectorwise.errors import DeviceRunError

_LIBRARY: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* of cuda.h
_MAX_DYNAMIC_SHARED: Final = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES of cuda.h

_WAYS: Final = (
    "run verify on a machine with an NVIDIA GPU, or give a report that was made on one: --report profile.ncu-rep"
)


@dataclass(frozen=True, slots=True)
class Gpu:
    """The first GPU of this machine: its name and compute capability, and the newest CUDA that its driver knows."""

    name: str
    compute_capability: tuple[int, int]
    driver: str


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver's library, and the number of the device that is used."""

    library: ctypes.CDLL
    device: ctypes.c_int


def open_driver() -> Driver:
    """Initialise the driver and take its first device, without making a context.

    Raises:
        DeviceRunError: there is no driver, or no GPU; the text says what to do.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        raise DeviceRunError(f"there is no NVIDIA driver on this machine ({_LIBRARY} is not found): {_WAYS}") from None
    driver = Driver(library, ctypes.c_int())
    count = ctypes.c_int()
    try:
        call(driver, "cuInit", 0)
        call(driver, "cuDeviceGetCount", ctypes.byref(count))
    except DeviceRunError as error:
        raise DeviceRunError(f"the NVIDIA driver finds no GPU ({error}): {_WAYS}") from None
    if not count.value:
        raise DeviceRunError(f"the NVIDIA driver finds no GPU: {_WAYS}")
    call(driver, "cuDeviceGet", ctypes.byref(driver.device), 0)
    return driver


def call(driver: Driver, function: str, *arguments: object) -> None:
    """Call a function of the driver.

    Raises:
        DeviceRunError: it failed; the text has the function and the driver's name of the error.
    """
    status = getattr(driver.library, function)(*arguments)
    if status:
        text = ctypes.c_char_p()
        driver.library.cuGetErrorName(status, ctypes.byref(text))
        raise DeviceRunError(f"{function}: {(text.value or b'an unknown error').decode()} ({status})")


def describe_gpu(driver: Driver) -> Gpu:
    """What the driver says of its device."""
    name, version = ctypes.create_string_buffer(256), ctypes.c_int()
    call(driver, "cuDeviceGetName", name, len(name), driver.device)
    call(driver, "cuDriverGetVersion", ctypes.byref(version))
    parts = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        value = ctypes.c_int()
        call(driver, "cuDeviceGetAttribute", ctypes.byref(value), attribute, driver.device)
        parts.append(value.value)
    return Gpu(name.value.decode(), (parts[0], parts[1]), f"CUDA {version.value // 1000}.{version.value % 1000 // 10}")


def make_current(driver: Driver) -> None:
    """Retain the device's primary context and make it current: from here on the GPU is in use."""
    context = ctypes.c_void_p()
    call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), driver.device)
    call(driver, "cuCtxSetCurrent", context)


def load_function(driver: Driver, module: ctypes.c_void_p, symbol: str, dynamic_shared_bytes: int) -> ctypes.c_void_p:
    """A kernel of a loaded module, allowed to take as much dynamic shared memory as its launch asks for."""
    function = ctypes.c_void_p()
    call(driver, "cuModuleGetFunction", ctypes.byref(function), module, symbol.encode())
    if dynamic_shared_bytes:  # what a block may have unasked is 48 KiB, static shared memory included
        call(driver, "cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, dynamic_shared_bytes)
    return function


def find_variable(driver: Driver, module: ctypes.c_void_p, symbol: str) -> tuple[int, int]:
    """Address and size in bytes of a module variable."""
    address, size = ctypes.c_uint64(), ctypes.c_size_t()
    call(driver, "cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module, symbol.encode())
    return address.value, size.value


def allocate(driver: Driver, size_bytes: int) -> int:
    """Address of new memory of the device."""
    address = ctypes.c_uint64()
    call(driver, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size_bytes, 1)))
    return address.value


def release(driver: Driver, address: int) -> None:
    """Give memory of the device back."""
    call(driver, "cuMemFree_v2", ctypes.c_uint64(address))


def upload(driver: Driver, address: int, data: bytes | memoryview) -> None:
    """Copy bytes to the device."""
    if len(data):
        source = (ctypes.c_char * len(data)).from_buffer_copy(data)
        call(driver, "cuMemcpyHtoD_v2", ctypes.c_uint64(address), source, ctypes.c_size_t(len(data)))


def download(driver: Driver, address: int, size_bytes: int) -> bytes:
    """Bytes of the device's memory."""
    target = ctypes.create_string_buffer(max(size_bytes, 1))
    call(driver, "cuMemcpyDtoH_v2", target, ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))
    return target.raw[:size_bytes]
