"""Runs sectorwise and its peers on PyPI side by side: `python -m benchmarks.peers`.

The peers are the CUDA simulator of Numba, which executes kernels written in Python, and cuxray, which analyses cubins
without executing them, with NVIDIA's cuobjdump and nvdisasm from the PATH or from Triton's package. What is not
installed beside sectorwise is left out, and said to be. Times are medians of
processor time of whole commands.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import measure_command
from benchmarks.rows import FOLDER

TRANSPOSE = """
extern "C" __global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[32][32];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  int column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) out[(row + j) * n + column] = tile[threadIdx.x][threadIdx.y + j];
}
"""

SIMULATED = """
import numpy as np
from numba import cuda, float32

@cuda.jit
def transpose(out, given, n):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.blockIdx.x * 32 + tx, cuda.blockIdx.y * 32 + ty
    for j in range(0, 32, 8):
        tile[ty + j, tx] = given[(y + j) * n + x]
    cuda.syncthreads()
    column, row = cuda.blockIdx.y * 32 + tx, cuda.blockIdx.x * 32 + ty
    for j in range(0, 32, 8):
        out[(row + j) * n + column] = tile[tx, ty + j]

n = {size}
given, out = np.arange(n * n, dtype=np.float32), np.zeros(n * n, np.float32)
transpose[(n // 32, n // 32), (32, 8)](out, given, n)
assert (out.reshape(n, n) == given.reshape(n, n).T).all()
"""

SIZES = (64, 256, 1024)
SIMULATED_THREADS = 1 << 14
"""The simulator takes minutes for more."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One line: the task, the tool, what it took, what it tells."""

    task: str
    tool: str
    took: str
    tells: str


def find_version(package: str) -> str | None:
    """The release that is installed, if one is."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def compare_transposes() -> list[Compared]:
    """A transpose through shared memory, from its source, for two sizes of the matrix."""
    found = []
    for size in SIZES:
        task = f"transpose of {size} x {size}, from source"
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "transpose.cu"
            source.write_text(TRANSPOSE, encoding="utf-8")
            words = f"f32[{size * size}]"
            launch = f"transpose<<<({size // 32}, {size // 32}), (32, 8)>>>({words}, {words}, n={size})"
            seconds = measure_command(["-m", "sectorwise", "check", str(source), "--launch", launch], "off", 3)
        tells = "sectors, tags, wavefronts of every instruction; findings"
        found.append(Compared(task, "sectorwise", f"{seconds:.2f} s", tells))
        if find_version("numba") is not None and size * size // 4 <= SIMULATED_THREADS:
            os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
            seconds = measure_command(["-c", SIMULATED.format(size=size)], "off", 1)
            found.append(Compared(task, "Numba's simulator", f"{seconds:.2f} s", "the values that the kernel leaves"))
    return found


def compare_cubins() -> list[Compared]:
    """The measured cubin with five transposes, one of them with 31 conflicts a request."""
    task = "five transposes of 256 x 256, from a cubin"
    cubin, launches = str(FOLDER / "transpose.sm_90.cubin"), str(FOLDER / "transpose.json")
    seconds = measure_command(["-m", "sectorwise", "check", cubin, "--launches", launches], "off", 3)
    tells = "the same; all counts equal the profiler's"
    found = [Compared(task, "sectorwise", f"{seconds:.2f} s", tells)]
    if find_version("cuxray") is not None and offer_binaries():
        seconds = measure_command(["-m", "cuxray", "report", cubin, "--threads", "256"], "off", 3)
        tells = "registers, occupancy, conflicts of strides that are in the code; executes nothing"
        found.append(Compared(task, "cuxray", f"{seconds:.2f} s", tells))
    return found


def offer_binaries() -> bool:
    """Puts NVIDIA's binaries on the PATH where Triton brings them; says whether those that cuxray needs are there."""
    triton = importlib.util.find_spec("triton")
    if triton is not None and triton.origin is not None:
        os.environ["PATH"] += f"{os.pathsep}{Path(triton.origin).parent / 'backends' / 'nvidia' / 'bin'}"
    return all(shutil.which(name) for name in ("cuobjdump", "nvdisasm"))


def list_versions() -> str:
    """What ran, in one line."""
    names = {"sectorwise": "sectorwise", "numba": "Numba", "cuxray": "cuxray", "numpy": "NumPy", "llvmlite": "llvmlite"}
    shown = {name: find_version(package) for package, name in names.items()}
    return ", ".join(
        f"{name} {version or '(this tree)'}" for name, version in shown.items() if version or name == "sectorwise"
    )


def main() -> None:
    """Prints the table."""
    sys.stdout.write(list_versions() + "\n")
    for line in (*compare_transposes(), *compare_cubins()):
        sys.stdout.write(f"{line.task:44} {line.tool:18} {line.took:>10}  {line.tells}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
