from __future__ import annotations

import numpy as np
import pytest

from tests.machine.launching import run

SOURCE = r"""
extern "C" __global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < n && y + j < n) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < n && y + j < n) out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void gemv(const float* a, const float* x, float* y, int rows, int columns) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int c = lane; c < columns; c += 32) sum += a[row * columns + c] * x[c];
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (lane == 0) y[row] = sum;
}
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float left[16][16], right[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < k; t += 16) {
    left[threadIdx.y][threadIdx.x] = row < m && t + threadIdx.x < k ? a[row * k + t + threadIdx.x] : 0.f;
    right[threadIdx.y][threadIdx.x] = column < n && t + threadIdx.y < k ? b[(t + threadIdx.y) * n + column] : 0.f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
extern "C" __global__ void reduce(const int* in, int* out, int n) {
  __shared__ int partial[32];
  int sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) atomicAdd(out, sum);
  }
}
extern "C" __global__ void histogram(const unsigned char* in, unsigned* out, int n) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}
extern "C" __global__ void gather(const float* in, const int* index, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[index[i]];
}
extern "C" __global__ void scan(const int* in, int* out) {
  __shared__ int sums[2][256];
  int t = threadIdx.x, now = 0;
  sums[0][t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2) {
    sums[1 - now][t] = sums[now][t] + (t >= d ? sums[now][t - d] : 0);
    now = 1 - now;
    __syncthreads();
  }
  out[blockIdx.x * 256 + t] = sums[now][t];
}
"""

TARGETS = ["sm_80", "sm_90", "sm_120"]


@pytest.mark.parametrize("target", TARGETS)
def test_transpose(target: str) -> None:
    done = run(SOURCE, "transpose<<<(4, 4), (32, 8)>>>(f32[100*100]=uniform(1), f32[100*100], 100)", target=target)
    expected = done.given(0).reshape(100, 100).T
    np.testing.assert_array_equal(done.output(1, np.float32).reshape(100, 100), expected)
    assert done.execution.faults == ()
    assert done.execution.limitations == ()


@pytest.mark.parametrize("target", TARGETS)
def test_gemv(target: str) -> None:
    launch = "gemv<<<10, 256>>>(f32[77*200]=uniform(2), f32[200]=uniform(3), f32[77], 77, 200)"
    done = run(SOURCE, launch, target=target)
    expected = done.given(0).reshape(77, 200).astype(np.float64) @ done.given(1).astype(np.float64)
    np.testing.assert_allclose(done.output(2, np.float32), expected, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_tiled_gemm(target: str) -> None:
    launch = "gemm<<<(3, 4), (16, 16)>>>(f32[50*70]=uniform(1), f32[70*33]=uniform(2), f32[50*33], 50, 33, 70)"
    done = run(SOURCE, launch, target=target)
    expected = done.given(0).reshape(50, 70).astype(np.float64) @ done.given(1).reshape(70, 33).astype(np.float64)
    np.testing.assert_allclose(done.output(2, np.float32).reshape(50, 33), expected, rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_reduction(target: str) -> None:
    done = run(SOURCE, "reduce<<<7, 256>>>(i32[10000]=uniform(4), i32[1], 10000)", target=target)
    assert done.output(1)[0] == done.given(0).sum(dtype=np.int32)


@pytest.mark.parametrize("target", TARGETS)
def test_histogram(target: str) -> None:
    done = run(SOURCE, "histogram<<<5, 192>>>(u8[20000]=uniform(5), u32[256], 20000)", target=target)
    np.testing.assert_array_equal(done.output(1, np.uint32), np.bincount(done.given(0), minlength=256))


@pytest.mark.parametrize("target", TARGETS)
def test_gather(target: str) -> None:
    done = run(SOURCE, "gather<<<8, 128>>>(f32[1000]=uniform(6), i32[1000]=perm(7), f32[1000], 1000)", target=target)
    np.testing.assert_array_equal(done.output(2, np.float32), done.given(0)[done.given(1)])


def test_scan_by_blocks() -> None:
    done = run(SOURCE, "scan<<<9, 256>>>(i32[2304]=uniform(8), i32[2304])")
    expected = np.cumsum(done.given(0).reshape(9, 256), axis=1, dtype=np.int32).reshape(-1)
    np.testing.assert_array_equal(done.output(1), expected)
