"""Turns a folder of compiled kernels into what a GPU makes of them, with the driver alone: it needs NumPy, no package.

    python -m tools.fuzz.on_device BATCH RESULTS [SECONDS]

BATCH is what `fuzz_device prepare` made, or the folder `batch` of what `fuzz_device pack` made. RESULTS gets a digest
of every kernel, and all words of those that differ from what the engine computed: a folder, or one file if it is called
something.tar. After SECONDS no file of kernels is begun any more; what has run by then is kept.
"""

from __future__ import annotations

import ctypes
import json
import lzma
import math
import multiprocessing
import queue
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.fuzz.digests import digest, digest_slots
from tools.fuzz.inputs import make_scalars
from tools.fuzz.launches import make_buffers, pack_scalars
from tools.fuzz.parcels import write_results

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Words = npt.NDArray[np.uint32]
    Launch = dict[str, Any]

LONGEST_S = 20
"""A kernel that takes longer hangs: its file is given up."""

MOST_KEPT_BYTES = 40 << 20


class DriverError(Exception):
    """The driver refused; the text names the call."""


@dataclass(frozen=True, slots=True)
class Driver:
    """The CUDA driver with the device's primary context."""

    library: ctypes.CDLL
    device: ctypes.c_int


def open_driver() -> Driver:
    """Initialise the driver and take its first device."""
    driver = Driver(ctypes.CDLL("libcuda.so.1"), ctypes.c_int())
    _call(driver, "cuInit", 0)
    _call(driver, "cuDeviceGet", ctypes.byref(driver.device), 0)
    context = ctypes.c_void_p()
    _call(driver, "cuDevicePrimaryCtxRetain", ctypes.byref(context), driver.device)
    _call(driver, "cuCtxSetCurrent", context)
    return driver


def describe(driver: Driver) -> dict[str, str]:
    """The device's name, and the newest CUDA that the driver knows."""
    text, number = ctypes.create_string_buffer(100), ctypes.c_int()
    _call(driver, "cuDeviceGetName", text, 100, driver.device)
    _call(driver, "cuDriverGetVersion", ctypes.byref(number))
    return {"device": text.value.decode(), "driver": f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"}


def _call(driver: Driver, name: str, *arguments: object) -> None:
    status = getattr(driver.library, name)(*arguments)
    if status:
        message = f"{name}: error {status}"
        raise DriverError(message)


def run_kernel(driver: Driver, module: ctypes.c_void_p, launch: Launch) -> tuple[Words, Words]:
    """Run one kernel: the words that it wrote, [slots, threads], and its scratch buffer."""
    function = ctypes.c_void_p()
    _call(driver, "cuModuleGetFunction", ctypes.byref(function), module, launch["name"].encode())
    threads = launch["blocks"] * launch["threads"]
    buffers = make_buffers(launch["seed"], threads, launch["slots"])
    pointers = [_upload(driver, words) for words in buffers]
    scalars = [ctypes.create_string_buffer(data, 8) for data in pack_scalars(make_scalars(launch["seed"]))]
    values = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (*pointers, *scalars)]
    table = (ctypes.c_void_p * len(values))(*values)
    place = (launch["blocks"], 1, 1, launch["threads"], 1, 1)
    _call(driver, "cuLaunchKernel", function, *place, 0, None, table, None)
    _call(driver, "cuCtxSynchronize")
    for pointer, words in zip(pointers, buffers, strict=True):
        _call(driver, "cuMemcpyDtoH_v2", words.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(words.nbytes))
        _call(driver, "cuMemFree_v2", pointer)
    return buffers[1].reshape(launch["slots"], threads), buffers[2]


def _upload(driver: Driver, words: Words) -> ctypes.c_uint64:
    pointer, size = ctypes.c_uint64(), ctypes.c_size_t(words.nbytes)
    _call(driver, "cuMemAlloc_v2", ctypes.byref(pointer), size)
    _call(driver, "cuMemcpyHtoD_v2", pointer, words.ctypes.data_as(ctypes.c_void_p), size)
    return pointer


def _run_files(paths: list[Path], results: multiprocessing.Queue[tuple[str, str, Any]], until: float) -> None:
    """Run the kernels of files in a process of its own: one that faults takes its context along."""
    driver = open_driver()
    results.put(("device", "", describe(driver)))
    for path in paths:
        if time.time() > until:
            break
        batch = json.loads(path.read_text())
        module = ctypes.c_void_p()
        cubin = lzma.decompress(path.with_suffix(".cubin.xz").read_bytes())
        _call(driver, "cuModuleLoadData", ctypes.byref(module), cubin)
        for launch in batch["launches"]:
            words, scratch = run_kernel(driver, module, launch)
            found = digest(words, scratch)
            kept = (words, scratch) if found != launch["expected"] else None
            results.put(("kernel", path.stem, (launch["seed"], found, digest_slots(words), kept)))
        _call(driver, "cuModuleUnload", module)
        results.put(("file", path.stem, None))
    results.put(("done", "", None))


@dataclass(frozen=True, slots=True)
class Gathered:
    """What came back so far: the device, digests and slot bytes by file and seed, and words of kernels that differ."""

    device: dict[str, str]
    files: dict[str, dict[str, str]]
    slots: dict[str, dict[str, str]]
    kept: dict[str, Words]


def _gather(paths: list[Path], gathered: Gathered, until: float) -> list[Path]:
    """Run files until the end or a time, or until a kernel hangs or faults; return those to try yet."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    process = context.Process(target=_run_files, args=(paths, results, until))
    process.start()
    left = list(paths)
    waited_s = 0
    while True:
        try:
            kind, name, value = results.get(timeout=1)
            waited_s = 0
        except queue.Empty:
            waited_s += 1
            if process.is_alive() and waited_s < LONGEST_S:
                continue
            print(f"{left[0].name}: stopped behind {len(gathered.files.get(left[0].stem, {}))} kernels", flush=True)
            process.kill()
            process.join()
            return left[1:]
        match kind:
            case "device":
                gathered.device.update(value)
            case "kernel":
                seed, found, places, words = value
                gathered.files.setdefault(name, {})[str(seed)] = found
                gathered.slots.setdefault(name, {})[str(seed)] = places.hex()
                if words is not None and sum(each.nbytes for each in gathered.kept.values()) < MOST_KEPT_BYTES:
                    gathered.kept[f"{seed}_words"], gathered.kept[f"{seed}_scratch"] = words
            case "file":
                left.pop(0)
            case _:
                process.join()
                return []


def main() -> None:
    """Run the files of the batch, and write what came of it."""
    batch, target = Path(sys.argv[1]), Path(sys.argv[2])
    until = time.time() + float(sys.argv[3]) if len(sys.argv) > 3 else math.inf
    gathered = Gathered({}, {}, {}, {})
    left = sorted(batch.glob("*.json"))
    while left:
        left = _gather(left, gathered, until) if time.time() < until else []
    count = sum(len(kernels) for kernels in gathered.files.values())
    print(f"{count} kernels, {len(gathered.kept) // 2} differ, on {gathered.device}", flush=True)
    content = {**gathered.device, "files": gathered.files, "slots": gathered.slots}
    write_results(target, content, gathered.kept)


if __name__ == "__main__":
    main()
