"""Turns the probes into recorded results: runs them on this machine's GPU and writes what they made, as digests.

    python -m tests.machine.device.record probes.sm_90.cubin h200.json

The cubin is `probes.cu` compiled for the GPU, which works on any machine:

    python -m tests.machine.device.record --compile sm_90 probes.sm_90.cubin

Only NumPy and the driver are needed where the first command runs.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.machine.device.inputs import KINDS, LANES, make_inputs

if TYPE_CHECKING:
    import numpy.typing as npt

SOURCE = Path(__file__).with_name("probes.cu")
RECORDED = Path(__file__).with_name("h200.json")
BLOCK = 256

_PROBE = re.compile(r"^PROBE\((?P<name>\w+), (?P<kind>\w+), (?P<since>\d+)\)", re.MULTILINE)


def find_probes() -> dict[str, str]:
    """Kinds of inputs by the names of the probes."""
    return {found["name"]: found["kind"] for found in _PROBE.finditer(SOURCE.read_text(encoding="utf-8"))}


def digest(values: npt.NDArray[np.uint32]) -> str:
    """What stands for some words in the record."""
    return hashlib.sha256(np.ascontiguousarray(values, "<u4").tobytes()).hexdigest()[:16]


def digest_columns(results: npt.NDArray[np.uint32]) -> list[str]:
    """A digest for each of the four words a lane."""
    return [digest(results[:, column]) for column in range(results.shape[1])]


class Gpu:
    """The first GPU, through its driver."""

    def __init__(self, cubin: bytes) -> None:
        self.driver = ctypes.CDLL("libcuda.so.1")
        device, context, self.module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuDeviceGet", ctypes.byref(device), 0)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", ctypes.byref(self.module), cubin)
        name = ctypes.create_string_buffer(256)
        self._call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self.driver, function)(*arguments)
        if status:
            message = f"{function} failed with {status}"
            raise RuntimeError(message)

    def run(self, kernel: str, inputs: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
        """What a probe writes for these inputs."""
        source, target, function = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_void_p()
        size = ctypes.c_size_t(inputs.nbytes)
        results = np.empty_like(inputs)
        self._call("cuModuleGetFunction", ctypes.byref(function), self.module, kernel.encode())
        self._call("cuMemAlloc_v2", ctypes.byref(source), size)
        self._call("cuMemAlloc_v2", ctypes.byref(target), size)
        self._call("cuMemcpyHtoD_v2", source, inputs.ctypes.data_as(ctypes.c_void_p), size)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(source), ctypes.addressof(target))
        blocks = len(inputs) // BLOCK
        self._call("cuLaunchKernel", function, blocks, 1, 1, BLOCK, 1, 1, 0, None, arguments, None)
        self._call("cuCtxSynchronize")
        self._call("cuMemcpyDtoH_v2", results.ctypes.data_as(ctypes.c_void_p), target, size)
        self._call("cuMemFree_v2", source)
        self._call("cuMemFree_v2", target)
        return results


def record(cubin: bytes) -> dict[str, object]:
    """Digests of every probe's results on this machine's GPU, and of its inputs."""
    gpu = Gpu(cubin)
    results = {name: digest_columns(gpu.run(name, make_inputs(kind))) for name, kind in find_probes().items()}
    inputs = {kind: digest(make_inputs(kind)) for kind in KINDS}
    return {"device": gpu.name, "lanes": LANES, "inputs": inputs, "results": results}


def main(arguments: list[str]) -> None:
    """The command line that the module's docstring shows."""
    match arguments:
        case ["--compile", target, path]:
            from tests.machine.device.compiling import compile_probes

            Path(path).write_bytes(compile_probes(target))
        case [cubin, path]:
            Path(path).write_text(json.dumps(record(Path(cubin).read_bytes()), indent=1) + "\n", encoding="utf-8")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
