"""Turns cubins of generated kernels into the words that a GPU writes, with the driver alone; needs NumPy, no package.

    python -m tools.fuzz.on_device BATCH.npz RESULTS.npz

The batch holds cubins, launches and what the engine expects; the result holds a checksum for every kernel, and all
words of those that differ.
"""

from __future__ import annotations

import ctypes
import json
import lzma
import multiprocessing
import sys
import zlib
from pathlib import Path

import numpy as np

from tools.fuzz.inputs import make_scalars
from tools.fuzz.launches import make_buffers, pack_scalars

_COMPUTE_CAPABILITY = (75, 76)


class DriverError(Exception):
    """The driver refused; the text names the call."""


class Driver:
    """The CUDA driver with one context."""

    def __init__(self) -> None:
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.device = device
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of the driver; raise if it returns an error."""
        status = getattr(self.cuda, name)(*arguments)
        if status:
            raise DriverError(f"{name}: error {status}")

    def name(self) -> str:
        """The device's name."""
        text = ctypes.create_string_buffer(100)
        self.call("cuDeviceGetName", text, 100, self.device)
        return text.value.decode()

    def version(self) -> int:
        """The CUDA version of the driver, such as 13000."""
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        """Load a cubin."""
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        return module

    def run(self, module: ctypes.c_void_p, launch: dict[str, int | str]) -> tuple[np.ndarray, np.ndarray]:
        """Run one kernel: the words that it wrote, and its scratch buffer."""
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, str(launch["name"]).encode())
        threads = int(launch["blocks"]) * int(launch["threads"])
        buffers = make_buffers(int(launch["seed"]), threads, int(launch["slots"]))
        pointers = []
        for words in buffers:
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(words.nbytes))
            self.call("cuMemcpyHtoD_v2", pointer, words.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(words.nbytes))
            pointers.append(pointer)
        scalars = [ctypes.create_string_buffer(data, 8) for data in pack_scalars(make_scalars(int(launch["seed"])))]
        values = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (*pointers, *scalars)]
        table = (ctypes.c_void_p * len(values))(*values)
        grid, block = (int(launch["blocks"]), 1, 1), (int(launch["threads"]), 1, 1)
        self.call("cuLaunchKernel", function, *grid, *block, 0, None, table, None)
        self.call("cuCtxSynchronize")
        for pointer, words in zip(pointers, buffers, strict=True):
            self.call("cuMemcpyDtoH_v2", words.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(words.nbytes))
            self.call("cuMemFree_v2", pointer)
        return buffers[1].reshape(int(launch["slots"]), threads), buffers[2]


def checksum(words: np.ndarray, scratch: np.ndarray) -> int:
    """One number for all that a kernel wrote."""
    return zlib.crc32(np.ascontiguousarray(scratch).tobytes(), zlib.crc32(np.ascontiguousarray(words).tobytes()))


def _run_file(cubin: bytes, launches: list[dict[str, int | str]], queue: multiprocessing.Queue) -> None:
    driver = Driver()
    module = driver.load(cubin)
    queue.put(("device", (driver.name(), driver.version())))
    for launch in launches:
        words, scratch = driver.run(module, launch)
        found = checksum(words, scratch)
        # Words travel only where the engine's differ, or where it could not say.
        differs = found != launch.get("expected")
        queue.put((launch["seed"], (found, words if differs else None, scratch if differs else None)))
    queue.put(("done", None))


def main() -> None:
    """Run a batch; each file in its own process, as a kernel that faults takes its context along."""
    batch, target = Path(sys.argv[1]), Path(sys.argv[2])
    context = multiprocessing.get_context("spawn")
    sums: dict[str, int] = {}
    kept: dict[str, np.ndarray] = {}
    said = None
    room = 14 << 20
    for path in sorted(batch.glob("*.json")):
        launches = json.loads(path.read_text())
        cubin = lzma.decompress(path.with_suffix(".cubin.xz").read_bytes())
        queue = context.Queue()
        process = context.Process(target=_run_file, args=(cubin, launches, queue))
        process.start()
        while True:
            try:
                key, value = queue.get(timeout=20)
            except Exception:  # noqa: BLE001 - whatever ended the process, the next file is to run
                print("stopped in", path.name, "after", len(sums), flush=True)
                process.kill()
                break
            if key == "done":
                break
            if key == "device":
                said = value
                continue
            sums[str(key)] = value[0]
            if value[1] is not None and room > 0:
                kept[f"{key}_words"], kept[f"{key}_scratch"] = value[1], value[2]
                room -= len(zlib.compress(value[1].tobytes(), 1)) + 2000
        process.join(timeout=10)
    print("ran", len(sums), "kept", len(kept) // 2, "on", said, flush=True)
    np.savez_compressed(target, **kept)
    target.with_suffix(".json").write_text(json.dumps({"device": said, "sums": sums}))


if __name__ == "__main__":
    main()
