"""Turns CUDA C++ text and a launch into an execution, for tests of the machine on compiled code."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sectorwise.binary.cubin import read_cubin
from sectorwise.binary.ir import Control, Instruction, Kernel, Location, Parameter, Resources, Target
from sectorwise.binary.parser import parse_statement
from sectorwise.binding import BoundLaunch, bind
from sectorwise.device import load_device
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CudaFrontend
from sectorwise.launch.contents import materialise
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Execution, ExecutionOptions, Site
from sectorwise.machine.numpy_engine import execute

if TYPE_CHECKING:
    import numpy.typing as npt

_DEVICES = {"sm_80": "a100-80-sxm", "sm_90": "h200", "sm_120": "rtx5090", "sm_90a": "h200", "sm_100a": "b200"}


@dataclass(frozen=True, slots=True)
class Run:
    """A launch and what came of it."""

    bound: BoundLaunch
    execution: Execution

    def output(self, number: int, dtype: npt.DTypeLike = np.int32) -> npt.NDArray[Any]:
        """What buffer `number` holds at the end."""
        return self.execution.read_buffer(number).view(dtype)

    def given(self, number: int) -> npt.NDArray[Any]:
        """What buffer `number` held at the start."""
        return materialise(self.bound.allocations[number].buffer)

    def sites_at(self, line: int) -> list[Site]:
        """Memory instructions of a source line, inlined functions included."""
        instructions = self.bound.kernel.instructions
        found = []
        for site in self.execution.sites:
            location = instructions[site.instruction].location
            places = () if location is None else (location, *location.inlined_at)
            if any(place.line == line and place.file.endswith("test.cu") for place in places):
                found.append(site)
        return found


@lru_cache(maxsize=64)
def compile_kernels(source: str, target: str = "sm_90") -> dict[str, Kernel]:
    """The kernels of a source text, by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.cu"
        path.write_text(source, encoding="utf-8")
        made = CudaFrontend().compile(path, CompileRequest(target))
    return {kernel.name: kernel for kernel in read_cubin(made.cubin, "test.cu").kernels}


def run(source: str, launch: str, options: ExecutionOptions | None = None, target: str = "sm_90") -> Run:
    """Compiles, binds and executes one launch."""
    config = parse_launch(launch)
    bound = bind(compile_kernels(source, target)[config.kernel], config, load_device(_DEVICES[target]))
    return Run(bound, execute(bound, options or ExecutionOptions(step_limit=500_000)))


def run_assembly(code: str, launch: str, options: ExecutionOptions | None = None) -> Run:
    """Executes SASS as written, one instruction a line, `name:` before the place that `(name) means; for sm_90.

    The kernel takes one pointer for each argument; parameter i is at c[0x0][0x210 + 8 * i].
    """
    config = parse_launch(launch)
    parameters = tuple(Parameter(i, 8 * i, 8) for i in range(len(config.arguments)))
    resources = Resources(32, 4096, 0, 1, None)
    kernel = Kernel(config.kernel, "sm_90", _assemble(code), parameters, 0x210, resources)
    bound = bind(kernel, config, load_device("h200"))
    return Run(bound, execute(bound, options or ExecutionOptions(step_limit=500_000)))


def _assemble(code: str) -> tuple[Instruction, ...]:
    lines = [line.strip() for line in code.splitlines() if line.strip()]
    labels: dict[str, int] = {}
    texts: list[str] = []
    for line in lines:
        if line.endswith(":"):
            labels[line[:-1]] = 16 * len(texts)
        else:
            texts.append(line)
    made = []
    for index, text in enumerate(texts):
        parsed = parse_statement(text)
        operands = tuple(Target(labels[o.symbol or ""]) if isinstance(o, Target) else o for o in parsed.operands)
        location = Location("test.sass", index + 1)
        control = Control(0, False, 7, 7, 0, 0)  # noqa: FBT003
        made.append(
            Instruction(
                index, 16 * index, parsed.opcode, parsed.modifiers, parsed.guard, operands, text, 0, control, location
            )
        )
    return tuple(made)


def find_line(source: str, text: str) -> int:
    """Number of the first line that contains a text."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if text in line)
