"""Turns generated kernels into cubins and, executed by the engine, into the words that they write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.frontends.nvrtc import Program, compile_program, load_nvrtc
from sectorwise.launch.config import BufferArgument, BytesArgument, Contents, LaunchConfig
from sectorwise.machine.execution import ExecutionOptions, Order
from sectorwise.machine.numpy_engine import execute
from tools.fuzz.generate import write_file
from tools.fuzz.inputs import make_scalars
from tools.fuzz.launches import make_buffers, pack_scalars

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binary.ir import Kernel
    from sectorwise.binding import BoundLaunch
    from sectorwise.launch.config import Argument
    from sectorwise.machine.execution import Execution
    from tools.fuzz.generate import FuzzKernel

    Words = npt.NDArray[np.uint32]

TARGET = "sm_90"
DEVICE = "h200"
STEP_LIMIT = 100_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the engine made of a kernel: `words` [slots, threads], the scratch buffer, and what it could not know."""

    words: Words
    scratch: Words
    kernel: Kernel
    execution: Execution


def compile_kernels(kernels: list[FuzzKernel], target: str = TARGET) -> tuple[bytes, str]:
    """The cubin of one file with all these kernels, and the compiler's name."""
    nvrtc = load_nvrtc()
    options = (f"-arch={target}", "-default-device", "-w")
    cubin, _ = compile_program(nvrtc, Program("fuzz.cu", write_file(kernels), (), options, ()))
    return cubin, nvrtc.version


def read_kernels(cubin: bytes) -> dict[str, Kernel]:
    """The kernels of a cubin by name."""
    return {kernel.name: kernel for kernel in read_cubin(cubin, "fuzz.cubin").kernels}


def bind_fuzzed(fuzz: FuzzKernel, kernel: Kernel) -> BoundLaunch:
    """The launch of a kernel with its inputs."""
    read, written, scratch = make_buffers(fuzz.seed, fuzz.threads_total, fuzz.slots)
    arguments: tuple[Argument, ...] = (
        *(BufferArgument("u32", words.size, Contents("array", array=words)) for words in (read, written, scratch)),
        *(BytesArgument(data) for data in pack_scalars(make_scalars(fuzz.seed))),
    )
    launch = LaunchConfig(fuzz.name, (fuzz.blocks, 1, 1), (fuzz.threads, 1, 1), 0, arguments)
    return bind(kernel, launch, load_device(DEVICE))


def run_on_engine(fuzz: FuzzKernel, kernel: Kernel, order: Order = Order.LOWEST) -> Outcome:
    """Execute the kernel with its inputs; `order` is that of lanes that have parted."""
    execution = execute(bind_fuzzed(fuzz, kernel), ExecutionOptions(step_limit=STEP_LIMIT, order=order))
    words = execution.read_buffer(1).view(np.uint32).reshape(fuzz.slots, fuzz.threads_total)
    return Outcome(words, execution.read_buffer(2).view(np.uint32), kernel, execution)
