"""One source, for every architecture that is compiled here, loads the same bytes of each buffer, and stores them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import list_devices, load_device
from sectorwise.errors import SectorwiseError
from sectorwise.frontends.base import CompileRequest
from sectorwise.frontends.cuda import CudaFrontend
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.numpy_engine import execute
from tests.machine.launching import compile_kernels
from tests.machine.touched import Touched, watch_bytes

if TYPE_CHECKING:
    from pathlib import Path

DEVICES = {
    "sm_75": "t4",
    "sm_80": "a100-80-sxm",
    "sm_86": "rtx3090",
    "sm_87": "jetson-agx-orin-64",
    "sm_89": "l4",
    "sm_90": "h200",
    "sm_90a": "h200",
    "sm_100": "b200",
    "sm_100a": "b200",
    "sm_103": "b300",
    "sm_120": "rtx5090",
    "sm_121": "dgx-spark-gb10",
}

SOURCE = r"""
#define GLOBAL_INDEX (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void saxpy(const float* x, float* y, float a, int n) {
  int i = GLOBAL_INDEX;
  if (i < n) y[i] = a * x[i] + y[i];
}
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < n && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8) if (x < n && y + j < n) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void gather(const float* from, const int* at, float* out, int n) {
  int i = GLOBAL_INDEX;
  if (i < n) out[i] = from[at[i]];
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  __shared__ unsigned own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = GLOBAL_INDEX; i < n; i += gridDim.x * blockDim.x) atomicAdd(own + in[i] % 64, 1u);
  __syncthreads();
  if (threadIdx.x < 64 && own[threadIdx.x]) atomicAdd(bins + threadIdx.x, own[threadIdx.x]);
}
extern "C" __global__ void stencil(const float* in, float* out, int n) {
  int i = GLOBAL_INDEX;
  if (i >= 2 && i < n - 2) out[i] = in[i - 2] + in[i - 1] * 2 + in[i] * 3 + in[i + 1] * 2 + in[i + 2];
}
extern "C" __global__ void sum(const float* in, float* out, int n) {
  __shared__ float part[8];
  float s = 0;
  for (int i = GLOBAL_INDEX; i < n; i += gridDim.x * blockDim.x) s += in[i];
  for (int k = 16; k; k /= 2) s += __shfl_down_sync(~0u, s, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) { for (int k = 1; k < 8; ++k) s += part[k]; out[blockIdx.x] = s; }
}
extern "C" __global__ void multiply(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][16];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    ta[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; ++j) s += ta[threadIdx.y][j] * tb[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = s;
}
extern "C" __global__ void vectors(const float4* in, float2* out, int n) {
  int i = GLOBAL_INDEX;
  if (i < n) { float4 v = in[i]; out[i] = make_float2(v.x + v.y, v.z - v.w); }
}
extern "C" __global__ void copied(const float4* in, float4* out) {
  __shared__ float4 tile[128];
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :: "r"((unsigned)__cvta_generic_to_shared(tile + threadIdx.x)), "l"(in + GLOBAL_INDEX));
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  tile[threadIdx.x] = in[GLOBAL_INDEX];
#endif
  __syncthreads();
  out[GLOBAL_INDEX] = tile[127 - threadIdx.x];
}
extern "C" __global__ void scattered(const int* to, short* out, int n) {
  int i = GLOBAL_INDEX;
  if (i < n && to[i] % 3) out[to[i]] = (short)i;
}
__device__ __noinline__ int climb(const int* parent, int at, int most) {
  return most == 0 || parent[at] == at ? at : climb(parent, parent[at], most - 1);
}
extern "C" __global__ void roots(const int* parent, int* out, int n) {
  int i = GLOBAL_INDEX;
  if (i < n) out[i] = climb(parent, i, 5);
}
extern "C" __global__ void sorted(int* data) {
  __shared__ int part[256];
  part[threadIdx.x] = data[GLOBAL_INDEX];
  for (int size = 2; size <= 256; size *= 2)
    for (int stride = size / 2; stride; stride /= 2) {
      __syncthreads();
      int other = threadIdx.x ^ stride;
      if (other > threadIdx.x) {
        int low = part[threadIdx.x], high = part[other];
        if ((low > high) == ((threadIdx.x & size) == 0)) { part[threadIdx.x] = high; part[other] = low; }
      }
    }
  __syncthreads();
  data[GLOBAL_INDEX] = part[threadIdx.x];
}
extern "C" __global__ void collatz(const int* in, int* out, int n) {
  int i = GLOBAL_INDEX;
  if (i >= n) return;
  int x = in[i], s = 0;
  while (x > 1 && s < 50) { x = x & 1 ? 3 * x + 1 : x / 2; ++s; if (s == 20) out[n + i] = x; }
  switch (s & 3) {
    case 0: out[i] = in[s]; break;
    case 1: out[i] = in[2 * s] + 1; break;
    case 2: out[2 * n + i] = s; break;
    default: break;
  }
}
struct Record { int key; double weight; char flag; };
extern "C" __global__ void weights(const Record* in, double* out, int n) {
  int i = GLOBAL_INDEX;
  if (i < n && in[i].flag != 7) out[i] = in[i].weight / (1 + (in[i].key & 15));
}
extern "C" __global__ void last(const float* in, float* part, unsigned* done, float* out) {
  __shared__ bool is_last;
  float s = in[GLOBAL_INDEX];
  for (int k = 16; k; k /= 2) s += __shfl_xor_sync(~0u, s, k);
  if (threadIdx.x == 0) {
    part[blockIdx.x] = s;
    __threadfence();
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncwarp();
  if (is_last && threadIdx.x < gridDim.x) out[threadIdx.x] = ((volatile float*)part)[threadIdx.x];
}
"""

LAUNCHES = (
    "saxpy<<<9, 128>>>(f32[1100], f32[1100], 2.0, 1100)",
    "transpose<<<(3, 3), (32, 8)>>>(f32[75*75], f32[75*75], 75)",
    "gather<<<4, 128>>>(f32[4096], i32[500]=perm(3), f32[500], 500)",
    "histogram<<<2, 128>>>(u8[3000]=uniform(5), u32[64], 3000)",
    "stencil<<<3, 128>>>(f32[384], f32[384], 380)",
    "sum<<<3, 256>>>(f32[5000]=arange, f32[3], 5000)",
    "multiply<<<(3, 3), (16, 16)>>>(f32[48*48], f32[48*48], f32[48*48], 48)",
    "vectors<<<4, 64>>>(f32[1024], f32[512], 250)",
    "copied<<<3, 128>>>(f32[1536], f32[1536])",
    "scattered<<<5, 64>>>(i32[300]=perm(9), i16[300], 300)",
    "roots<<<3, 64>>>(i32[180]=perm(4), i32[180], 180)",
    "sorted<<<2, 256>>>(i32[512]=perm(8))",
    "collatz<<<4, 64>>>(i32[250]=perm(2), i32[750], 250)",
    "weights<<<3, 64>>>(u8[24*180]=uniform(6), f64[180], 180)",
    "last<<<8, 32>>>(f32[256]=arange, f32[8], u32[1], f32[8])",
)


def watch(launch: str, target: str) -> Touched:
    config = parse_launch(launch)
    bound = bind(compile_kernels(SOURCE, target)[config.kernel], config, load_device(DEVICES[target]))
    touched = watch_bytes(bound)
    execution = execute(bound, ExecutionOptions(observers=(touched,)))
    assert (execution.faults, execution.limitations) == ((), ())
    return touched


@pytest.mark.parametrize("launch", LAUNCHES, ids=[launch.split("<")[0] for launch in LAUNCHES])
def test_architectures_touch_the_same_bytes(launch: str) -> None:
    first, *others = (watch(launch, target) for target in DEVICES)
    assert any(each.any() for each in first.stored)
    for other in others:
        for mine, its in zip((*first.loaded, *first.stored), (*other.loaded, *other.stored), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_every_device_that_kernels_run_on_is_among_them() -> None:
    """Volta and AMD's have calculators alone: their code is not compiled here."""
    targets = {target for device in list_devices() for target in device.compile_targets}
    assert {target.rstrip("af") for target in targets} == {target.rstrip("af") for target in DEVICES}


def test_what_no_compiler_here_makes_is_said(tmp_path: Path) -> None:
    path = tmp_path / "one.cu"
    path.write_text('extern "C" __global__ void one(int* out) { out[threadIdx.x] = 1; }')
    with pytest.raises(SectorwiseError, match="cannot compile for sm_70"):
        CudaFrontend().compile(path, CompileRequest("sm_70"))


def test_bytes_are_those_that_the_source_names() -> None:
    touched = watch("stencil<<<3, 128>>>(f32[384], f32[384], 380)", "sm_90")
    inside = np.arange(384 * 4) // 4
    np.testing.assert_array_equal(touched.loaded[0], inside < 380)
    np.testing.assert_array_equal(touched.stored[1], (inside >= 2) & (inside < 378))
    assert not touched.stored[0].any()
    assert not touched.loaded[1].any()
