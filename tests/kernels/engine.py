"""Turns plans of kernels and arrays of the host into what the kernels leave in them, executed without a GPU."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CUDA
from sectorwise.kernels.plan import (
    SCRATCH_BLOCK_BYTES,
    SCRATCH_ZEROS_BYTES,
    SOURCES,
    Operand,
    Pointer,
    Scratch,
    TensorMap,
    pack,
)
from sectorwise.kernels.tensor_maps import MAP_BYTES
from sectorwise.launch.config import (
    Argument,
    BufferArgument,
    BytesArgument,
    Contents,
    LaunchConfig,
    PointerArgument,
    TensorMapArgument,
)
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import ExecutionOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch
    from sectorwise.kernels.plan import KernelPlan

Array = npt.NDArray[Any]
FAMILIES = {
    "copy.cu": (
        "copy_bytes<16, 1>",
        "copy_bytes<4, 1>",
        "copy_bytes<1, 1>",
        "copy_strided<16, 2, unsigned int>",
        "copy_strided<2, 4, unsigned int>",
        "copy_strided<4, 4, unsigned int>",
    ),
    "transpose.cu": (
        *(f"transpose_vectors<{item}, {8 if item == 1 else 16}>" for item in (1, 2, 4, 8, 16)),
        *(f"transpose_elements<{item}>" for item in (1, 2, 4, 8)),
    ),
    "gemv.cu": (
        *("gemv_rows<bf16, 16, 1, 1, 2>", "gemv_rows<f16, 16, 2, 1, 2>", "gemv_rows<float, 16, 4, 1, 2>"),
        *("gemv_rows<float, 16, 1, 1, 2>", "gemv_rows<bf16, 2, 1, 1, 2>", "gemv_rows<bf16, 2, 4, 1, 2>"),
        *(
            "gemv_columns<bf16, 16, 1, 2, 4, 16>",
            "gemv_columns<float, 16, 4, 2, 4, 8>",
            "gemv_columns<f16, 2, 2, 32, 4, 16>",
        ),
    ),
    "gemv_any.cu": (
        *("gemv_any<bf16, bf16>", "gemv_any<signed char, f16>", "gemv_any<e4m3, f16>", "gemv_any<nibble, bf16>"),
        "pack_int4",
    ),
    "gemv_int4.cu": (
        *(
            f"gemv_int4<{kind}, 1, 1, 1, 12, {warps}, 2, true>"
            for kind, warps in (("bf16", 2), ("bf16", 4), ("f16", 4), ("bf16", 8))
        ),
        *("gemv_int4<f16, 2, 1, 1, 12, 4, 2, true>", "gemv_int4<bf16, 2, 1, 1, 12, 4, 2, true>"),
        *("gemv_int4<bf16, 2, 6, 3, 2, 16, 1, false>", "gemv_int4<bf16, 1, 1, 1, 3, 1, 2, false>"),
    ),
    "gemv_tensor.cu": (
        *("gemv_tensor<Plain, bf16, 8, 1, 1, 8, 1>", "gemv_tensor<Plain, f16, 16, 1, 1, 4, 1>"),
        *("gemv_tensor<Plain, bf16, 16, 1, 1, 1, 1>", "gemv_tensor<Plain, bf16, 8, 1, 1, 1, 1>"),
        *(f"gemv_tensor<{form}, {kind}, 8, 1, 1, 1, 1>" for form in ("Int8", "E4m3") for kind in ("bf16", "f16")),
        *("gemv_tensor<Int4, bf16, 1, 1, 1, 1, 2>", "gemv_tensor<Int4, f16, 16, 1, 1, 2, 1>"),
    ),
    "gemv_ring.cu": (
        *(f"gemv_ring<{form}, {kind}, 1, 2, 1, 1, 2>" for form in ("Int8", "E4m3") for kind in ("bf16", "f16")),
        *(f"gemv_ring<{form}, bf16, 2, 1, 2, 2, 2>" for form in ("Int8", "E4m3", "Plain")),
    ),
    "matmul.cu": (
        *("matmul_tensor<bf16, 64, true, true>", "matmul_tensor<f16, 64, false, false>", "matmul_any<bf16>"),
        *("matmul_tensor<bf16, 128, true, false>", "matmul_tensor<bf16, 64, false, true>"),
    ),
    "records.cu": tuple(
        f"{kernel}<{item}, {fields}, {move}>"
        for kernel in ("records_to_arrays", "arrays_to_records")
        for item, fields, move in ((1, 8, 16), (2, 16, 16), (4, 12, 16), (4, 12, 4), (4, 3, 16), (16, 6, 16))
    ),
}
"""Kernels that tests execute, by source."""
_H200 = load_device("h200")


def place(array: Array, address: int = 512) -> Operand:
    """An array of NumPy as an operand at an address; its memory's beginning lies at a multiple of 512."""
    return Operand(address, array.shape, array.strides, array.itemsize)


@cache
def compile_kernels(source: str, kernels: tuple[str, ...]) -> dict[str, Kernel]:
    """Kernels of one source of the package for an H200, by the names that plans give them."""
    # Of sm_90a where it has wgmma.
    made = CUDA.compile(SOURCES / source, CompileRequest("sm_90", kernels=kernels))
    found = {kernel.name: kernel for kernel in read_cubin(made.cubin, source).kernels}
    return {name: found[made.kernel_names.get(name, name)] for name in kernels}


def find_kernel(source: str, kernel: str) -> Kernel:
    """The kernel of a plan; compiled and read with those that are tested beside it, which costs as much as one."""
    together = FAMILIES.get(source, ())
    return compile_kernels(source, together if kernel in together else (kernel,))[kernel]


def bind_plan(plan: KernelPlan, memories: Mapping[str, Array], offsets: Mapping[str, int]) -> BoundLaunch:
    """The launch of a plan: the memory of each operand, and how far into it, in bytes, the operand begins."""
    kernel = find_kernel(plan.source, plan.kernel)
    arguments: list[Argument] = []
    seen: set[str] = set()
    for argument in plan.arguments:
        match argument:
            case Pointer(operand=name) if name in seen:
                arguments.append(PointerArgument(name, 0))
            case Pointer(operand=name):
                seen.add(name)
                memory = memories[name].view(np.uint8).reshape(-1)
                arguments.append(BufferArgument("u8", memory.size, Contents("array", array=memory), name))
            case TensorMap(operand=name) if name in memories:
                arguments.append(
                    map_matrix(argument, memories[name].view(np.uint8).reshape(-1)[offsets.get(name, 0) :])
                )
            case TensorMap():
                arguments.append(BytesArgument(bytes(MAP_BYTES)))
            case Scratch(offset_bytes=offset):
                zeros = np.zeros(SCRATCH_ZEROS_BYTES if not offset else 132 * SCRATCH_BLOCK_BYTES, np.uint8)
                arguments.append(BufferArgument("u8", zeros.size, Contents("array", array=zeros), f"scratch {offset}"))
            case _:
                arguments.append(BytesArgument(pack(argument)))
    launch = LaunchConfig(plan.kernel, plan.grid, plan.block, plan.dynamic_shared_bytes, tuple(arguments))
    bound = bind(kernel, launch, _H200)
    bank = bytearray(bound.banks[0])
    for parameter, argument in zip(kernel.parameters, plan.arguments, strict=True):
        if isinstance(argument, Pointer):
            at = kernel.parameter_base + parameter.offset_bytes
            moved = struct.unpack_from("<Q", bank, at)[0] + offsets.get(argument.operand, 0) + argument.offset_bytes
            struct.pack_into("<Q", bank, at, moved)
    return replace(bound, banks={**bound.banks, 0: bytes(bank)})


def map_matrix(described: TensorMap, memory: Array) -> TensorMapArgument:
    """A plan's tensor map of a matrix that begins where a memory does."""
    stored = memory if described.kind == "u8" else memory.view(np.uint16)
    return TensorMapArgument(
        BufferArgument(described.kind, stored.size, Contents("array", array=stored), described.operand),
        shape=described.extents,
        strides_bytes=described.steps_bytes,
        box=(*described.box, 1),
        steps=(1, 1, 1),
        swizzle_bytes=128,
        promotion_bytes=128,
    )


def execute_plan(
    plan: KernelPlan, memories: Mapping[str, Array], offsets: Mapping[str, int] | None = None
) -> dict[str, npt.NDArray[np.uint8]]:
    """The bytes of each operand's memory after the launch; nothing outside it was accessed, and all of it is known."""
    bound = bind_plan(plan, memories, offsets or {})
    execution = execute(bound, ExecutionOptions())
    assert execution.faults == ()
    assert (execution.limitations, execution.hangs) == ((), ())
    held = [each.buffer if isinstance(each, TensorMapArgument) else each for each in bound.launch.arguments]
    names = [argument.name for argument in held if isinstance(argument, BufferArgument)]
    return {str(name): execution.read_buffer(number) for number, name in enumerate(names)}


RUNNERS = [execute_plan]
"""Who runs plans, the last of them: `tools/kernels_on_device.py` puts a GPU there."""


def run_plan(
    plan: KernelPlan, memories: Mapping[str, Array], offsets: Mapping[str, int] | None = None
) -> dict[str, npt.NDArray[np.uint8]]:
    """What a plan leaves in memory, as `execute_plan`."""
    return RUNNERS[-1](plan, memories, offsets)
