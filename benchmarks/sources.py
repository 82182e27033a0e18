"""Turns kernels of the benchmarks' own into bound launches."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CudaFrontend
from sectorwise.launch.notation import parse_launch

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch


@dataclass(frozen=True, slots=True)
class Source:
    """A kernel and its launch."""

    text: str
    launch: str


DIVERGENT = Source(
    """
extern "C" __global__ void diverge(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i] + 1, s = 0;
  while (x != 1 && s < 100) {
    if (x & 1) x = 3 * x + 1; else { x >>= 1; out[i] = x; }
    s++;
  }
  out[i] = in[(s * 7 + i) % n];
}
""",
    "diverge<<<4096, 128>>>(i32[524288], i32[524288]=perm(1), n=524288)",
)
"""Each lane runs a loop of its own length, and goes one of two ways in each round, on one of which it stores."""

SILENT = Source(
    DIVERGENT.text.replace("{ x >>= 1; out[i] = x; }", "x >>= 1;"),
    DIVERGENT.launch,
)
"""The same without the stores in the loop."""

LONG = Source(
    """
extern "C" __global__ void polynomial(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i], a[32];
  #pragma unroll
  for (int k = 0; k < 32; k++) a[k] = in[i + 32 * k];
  #pragma unroll
  for (int r = 0; r < 28; r++)
    #pragma unroll
    for (int k = 0; k < 32; k++) a[k] = r % 3 ? a[k] * x + a[(k + r) % 32] : fmaxf(a[k] - r, a[(k * 5 + r) % 32]);
  #pragma unroll
  for (int k = 0; k < 32; k++) out[i + 32 * k] = a[k] > 0 ? a[k] : -x;
}
""",
    "polynomial<<<4, 128>>>(f32[2048], f32[2048]=uniform(1))",
)
"""About two thousand instructions."""

LONG_RUNS = {
    "divergent loops": Source(
        SILENT.text, "diverge<<<1048576, 128>>>(i32[134217728], i32[134217728]=arange, n=134217728)"
    ),
    "the Mandelbrot set, 8192 by 8192": Source(
        """
extern "C" __global__ void escape(int* out, float step) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float a = column * step - 2, b = row * step - 1.5f, x = 0, y = 0;
  int k = 0;
  for (; k < 256 && x * x + y * y < 4; k++) {
    float next = x * x - y * y + a;
    y = 2 * x * y + b;
    x = next;
  }
  out[row * gridDim.x * blockDim.x + column] = k;
}
""",
        "escape<<<(256, 1024), (32, 8)>>>(i32[67108864], step=0.0003662109375)",
    ),
    "a product of 1536 by 1536, tiles of 16": Source(
        """
extern "C" __global__ void product(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * 16 + y, column = blockIdx.x * 16 + x;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    #pragma unroll
    for (int j = 0; j < 16; j++) sum += left[y][j] * right[j][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
""",
        "product<<<(96, 96), (16, 16)>>>(f32[2359296]=uniform(1), f32[2359296]=uniform(2), f32[2359296], n=1536)",
    ),
}
"""Launches that take seconds where all that they leave in memory is asked for."""


def bind_source(source: Source) -> BoundLaunch:
    """The launch, compiled for sm_90."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "benchmark.cu"
        path.write_text(source.text, encoding="utf-8")
        made = CudaFrontend().compile(path, CompileRequest("sm_90"))
    config = parse_launch(source.launch)
    kernels = {kernel.name: kernel for kernel in read_cubin(made.cubin, "benchmark").kernels}
    return bind(kernels[config.kernel], config, load_device("h200"))
