"""Turns a plan and the addresses of its operands into a launch on a GPU, compiled at first use."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError, DeviceRunError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.kernels.extended import SINCE_MAJOR, configure_overlap
from sectorwise.kernels.plan import SCRATCH_BLOCK_BYTES, SCRATCH_ZEROS_BYTES, SOURCES, Pointer, Scratch, TensorMap, pack
from sectorwise.kernels.scratch import find_scratch
from sectorwise.kernels.tensor_maps import encode_map
from sectorwise.verify.driver import Driver, call, load_function, open_driver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.plan import Argument, KernelPlan

_POINTER_DEVICE: Final = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL of cuda.h
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_* of cuda.h
_MULTIPROCESSORS: Final = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT of cuda.h


@cache
def open_library() -> Driver:
    """The driver of this machine.

    Raises:
        DeviceRunError: there is none, or it has no GPU.
    """
    try:
        return open_driver()
    except DeviceRunError as error:
        reason = str(error).partition(": ")[0]
        raise DeviceRunError(f"the kernels run on an NVIDIA GPU, and here is none: {reason}") from None


def find_device(address: int) -> int:
    """The number of the GPU that an address belongs to.

    Raises:
        DeviceRunError: it is an address of no GPU.
    """
    device = ctypes.c_int()
    call(
        open_library(),
        "cuPointerGetAttribute",
        ctypes.byref(device),
        ctypes.c_int(_POINTER_DEVICE),
        ctypes.c_uint64(address),
    )
    return device.value


def choose_device(arrays: tuple[DeviceArray, ...]) -> int:
    """The GPU that arrays are on: as one of them says, else as the driver knows their addresses.

    Raises:
        ArgumentError: they are on several.
        DeviceRunError: there is no GPU.
    """
    known = next((array.device for array in arrays if array.device is not None), None)
    if known is not None:
        return known
    found = {array.name: find_device(array.operand.address) for array in arrays if 0 not in array.shape}
    if len(set(found.values())) > 1:
        places = ", ".join(f"{name} on {device}" for name, device in found.items())
        raise ArgumentError(f"expected arrays on one device, got {places}")
    return next(iter(found.values()), 0)


@cache
def count_multiprocessors(device: int) -> int:
    """The SMs of a GPU."""
    return _read_attribute(device, _MULTIPROCESSORS)


@cache
def read_capability(device: int) -> tuple[int, int]:
    """The compute capability of a GPU."""
    major, minor = (_read_attribute(device, number) for number in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
    return major, minor


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch as the driver takes it: may be put on its stream again and again.

    `held` is what `arguments` point to; `scratch` is the address of what its blocks hand on through, None where they
    hand on nothing.
    """

    device: int
    stream: int
    function: str
    arguments: tuple[object, ...]
    held: tuple[object, ...]
    scratch: int | None


def launch(plan: KernelPlan, addresses: Mapping[str, int], device: int, stream: int) -> Launch:
    """Put the launch of a plan on a stream; nothing is allocated and nothing waits once its kernel was loaded.

    One that hands something on has memory for that from the first such launch on its stream, or of its CUDA graph, on.

    Raises:
        CompileError, MissingToolError: the kernel cannot be compiled, at its first use.
        DeviceRunError: the driver refuses the launch.
    """
    made = prepare(plan, addresses, device, stream)
    put(made)
    return made


def prepare(plan: KernelPlan, addresses: Mapping[str, int], device: int, stream: int) -> Launch:
    """The launch of a plan on a stream, as the driver takes it.

    Raises:
        As `launch`.
    """
    function = _load(plan.source, plan.kernel, device, plan.dynamic_shared_bytes, "a" if plan.specific else "")
    scratch = None
    if any(isinstance(argument, Scratch) for argument in plan.arguments):
        scratch = provide_scratch(device, stream)
    with make_current(device):
        held = [pack_argument(argument, addresses, scratch) for argument in plan.arguments]
    buffers = [ctypes.create_string_buffer(value, len(value)) for value in held]
    table = (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))
    if plan.overlaps and read_capability(device)[0] >= SINCE_MAJOR:
        config = configure_overlap(plan, stream)
        return Launch(
            device,
            stream,
            "cuLaunchKernelEx",
            (ctypes.byref(config), function, table, None),
            (*buffers, config),
            scratch,
        )
    shape = (*plan.grid, *plan.block, plan.dynamic_shared_bytes)
    arguments = (function, *shape, ctypes.c_void_p(stream), table, None)
    return Launch(device, stream, "cuLaunchKernel", arguments, tuple(buffers), scratch)


def put(made: Launch) -> None:
    """Put a launch on its stream.

    Raises:
        DeviceRunError: the driver refuses it.
    """
    if _is_current(made.device):
        call(open_library(), made.function, *made.arguments)
        return
    with make_current(made.device):
        call(open_library(), made.function, *made.arguments)


def provide_scratch(device: int, stream: int) -> int:
    """The address of what the launches of a stream, or of the CUDA graph that it is captured into, hand on through."""
    size_bytes = SCRATCH_ZEROS_BYTES + count_multiprocessors(device) * SCRATCH_BLOCK_BYTES
    with make_current(device):
        return find_scratch(open_library(), device, stream, size_bytes)


def pack_argument(argument: Argument, addresses: Mapping[str, int], scratch: int | None = None) -> bytes:
    """The bytes of an argument of a plan, its operands being at these addresses, and what it hands on through there."""
    match argument:
        case Pointer(operand=operand, offset_bytes=offset_bytes):
            return (addresses[operand] + offset_bytes).to_bytes(8, "little")
        case Scratch(offset_bytes=offset_bytes):
            return ((scratch or 0) + offset_bytes).to_bytes(8, "little")
        case TensorMap(operand=operand):
            return encode_at(argument, addresses[operand])
        case _:
            return pack(argument)


@lru_cache(maxsize=4096)
def encode_at(described: TensorMap, address: int) -> bytes:
    """The bytes of a tensor map at an address; those asked for last are remembered."""
    return encode_map(open_library(), described, address)


@contextmanager
def make_current(device: int) -> Iterator[None]:
    """Have a GPU's primary context current, the one that frameworks use, and afterwards what was current before."""
    if _is_current(device):
        yield
        return
    driver = open_library()
    call(driver, "cuCtxPushCurrent_v2", _retain(device))
    try:
        yield
    finally:
        call(driver, "cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def _is_current(device: int) -> bool:
    current = ctypes.c_void_p()
    call(open_library(), "cuCtxGetCurrent", ctypes.byref(current))
    return current.value == _retain(device).value


@cache
def _retain(device: int) -> ctypes.c_void_p:
    driver, handle, context = open_library(), ctypes.c_int(), ctypes.c_void_p()
    call(driver, "cuDeviceGet", ctypes.byref(handle), device)
    call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
    return context


def _read_attribute(device: int, attribute: int) -> int:
    driver, handle, value = open_library(), ctypes.c_int(), ctypes.c_int()
    call(driver, "cuDeviceGet", ctypes.byref(handle), device)
    call(driver, "cuDeviceGetAttribute", ctypes.byref(value), attribute, handle)
    return value.value


@cache
def _load(source: str, kernel: str, device: int, dynamic_shared_bytes: int, variant: str) -> ctypes.c_void_p:
    major, minor = read_capability(device)
    made = CUDA.compile(SOURCES / source, CompileRequest(f"sm_{major}{minor}{variant}", kernels=(kernel,)))
    driver, module = open_library(), ctypes.c_void_p()
    with make_current(device):
        call(driver, "cuModuleLoadData", ctypes.byref(module), made.cubin)
        return load_function(driver, module, made.kernel_names.get(kernel, kernel), dynamic_shared_bytes)
