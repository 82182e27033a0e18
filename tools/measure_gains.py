"""Turns pairs of kernels, before and after a remedy, into times on this machine's GPU and whether their outputs agree.

Needs an NVIDIA GPU with its driver, and NumPy; neither this package nor a profiler.

    python tools/measure_gains.py tests/measured/gains/pairs.json -o measured.json

The file names the cubins, launches and arguments of each pair, as `tools/write_gains.py` wrote them. Every launch is
timed by a pair of events, 21 times, and before each a kernel reads 256 MiB of something else through the caches; the
median counts.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import statistics
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from record_truth import Driver, fill_buffer

Case = dict[str, Any]

_FLUSH_BYTES = 256 * 1024 * 1024
_WARM_UPS = 3
_REPETITIONS = 21


@dataclass(frozen=True, slots=True)
class Bench:
    """A context on the GPU, the folder of the cubins, and what empties the caches: a kernel and its arguments."""

    driver: Driver
    folder: Path
    flush: ctypes.c_void_p
    scratch: tuple[ctypes.c_uint64, ctypes.c_uint64]

    def load(self, cubin: str, kernel: str) -> ctypes.c_void_p:
        """The function of a kernel."""
        return _load(self.driver, self.folder / cubin, kernel)

    def launch(self, function: ctypes.c_void_p, case: Case, values: list[bytes]) -> None:
        """Begin a launch."""
        held = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * len(held))(*[ctypes.cast(value, ctypes.c_void_p) for value in held])
        shape = (*case["grid"], *case["block"], case["shared"])
        self.driver.call("cuLaunchKernel", function, *shape, None, pointers, None)

    def empty_caches(self) -> None:
        """Read other data than the cases'."""
        case = {"grid": (_FLUSH_BYTES // 65_536, 1, 1), "block": (256, 1, 1), "shared": 0}
        self.launch(self.flush, case, [bytes(address) for address in self.scratch])


def open_bench(folder: Path) -> Bench:
    """A bench on the first GPU."""
    driver = Driver()
    scratch = (ctypes.c_uint64(), ctypes.c_uint64())
    driver.call("cuMemAlloc_v2", ctypes.byref(scratch[0]), ctypes.c_size_t(_FLUSH_BYTES))
    driver.call("cuMemAlloc_v2", ctypes.byref(scratch[1]), ctypes.c_size_t(512))
    driver.call("cuMemsetD8_v2", scratch[0], ctypes.c_ubyte(0), ctypes.c_size_t(_FLUSH_BYTES))
    return Bench(driver, folder, _load(driver, folder / "flush.sm_90.cubin", "flush"), scratch)


def time_case(bench: Bench, case: Case) -> dict[str, Any]:
    """Run one launch many times: the median and the extremes in ns, and a digest of all its buffers."""
    driver, function = bench.driver, bench.load(case["cubin"], case["kernel"])
    values, buffers = _place_arguments(driver, case["args"])
    start, end = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuEventCreate", ctypes.byref(start), 0)
    driver.call("cuEventCreate", ctypes.byref(end), 0)
    times_ns = []
    for _ in range(_WARM_UPS + _REPETITIONS):
        bench.empty_caches()
        driver.call("cuEventRecord", start, None)
        bench.launch(function, case, values)
        driver.call("cuEventRecord", end, None)
        driver.call("cuEventSynchronize", end)
        elapsed_ms = ctypes.c_float()
        driver.call("cuEventElapsedTime", ctypes.byref(elapsed_ms), start, end)
        times_ns.append(1e6 * elapsed_ms.value)
    digest = hashlib.blake2b(digest_size=8)
    for address, size_bytes in buffers:
        contents = np.empty(size_bytes, np.uint8)
        driver.call("cuMemcpyDtoH_v2", contents.ctypes.data_as(ctypes.c_void_p), address, ctypes.c_size_t(size_bytes))
        digest.update(contents)
        driver.call("cuMemFree_v2", address)
    counted = times_ns[_WARM_UPS:]
    return {
        "time_ns": round(statistics.median(counted)),
        "least_ns": round(min(counted)),
        "most_ns": round(max(counted)),
        "digest": digest.hexdigest(),
    }


def _load(driver: Driver, cubin: Path, kernel: str) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver.call("cuModuleLoadData", ctypes.byref(module), cubin.read_bytes())
    driver.call("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
    return function


@lru_cache(maxsize=2)
def _fill(argument: str) -> np.ndarray:
    """Both sides of a pair have the same contents."""
    return fill_buffer(json.loads(argument))


def _place_arguments(driver: Driver, arguments: list[dict[str, Any]]) -> tuple[list[bytes], list[Any]]:
    values, buffers = [], []
    for argument in arguments:
        if argument["kind"] == "scalar":
            values.append(np.dtype(argument["dtype"]).type(argument["value"]).tobytes())
            continue
        contents, address = _fill(json.dumps(argument)), ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(contents.nbytes))
        source = contents.ctypes.data_as(ctypes.c_void_p)
        driver.call("cuMemcpyHtoD_v2", address, source, ctypes.c_size_t(contents.nbytes))
        values.append(bytes(address))
        buffers.append((address, contents.nbytes))
    return values, buffers


def main() -> None:
    """Time every pair of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    bench = open_bench(options.pairs.parent)
    measured: dict[str, Any] = {"device": bench.driver.device, "pairs": {}}
    for pair in json.loads(options.pairs.read_text())["pairs"]:
        times = {side: time_case(bench, pair[side]) for side in ("before", "after")}
        same = times["before"].pop("digest") == times["after"].pop("digest")
        measured["pairs"][pair["name"]] = {**times, "same_outputs": same}
        options.output.write_text(json.dumps(measured, indent=1) + "\n")


if __name__ == "__main__":
    main()
