"""Warps that race for shared memory in loops: machine code lets them run in step, as the reference engine does."""

from __future__ import annotations

import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

SOURCE = r"""
extern "C" __global__ void histogram(float* out, const int* in, int n) {
  __shared__ float bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&bins[in[i] & 7], (float)(in[i] >> 3));
  __syncthreads();
  if (threadIdx.x < 8) out[blockIdx.x * 8 + threadIdx.x] = bins[threadIdx.x];
}
extern "C" __global__ void doubles(double* out, const int* in) {
  __shared__ double sum[3];
  if (threadIdx.x < 3) sum[threadIdx.x] = 0;
  __syncthreads();
  if (in[threadIdx.x] % 5) atomicAdd(&sum[in[threadIdx.x] % 3], (double)in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x < 3) out[blockIdx.x * 3 + threadIdx.x] = sum[threadIdx.x];
}
extern "C" __global__ void tickets(int* out, const int* in) {
  __shared__ int next;
  if (threadIdx.x == 0) next = 0;
  __syncthreads();
  int mine = -1;
  for (int k = 0; k < in[threadIdx.x] % 4; k++) mine = atomicCAS(&next, next, next + 3) + atomicExch(&next, k);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = mine * 8 + next;
}
extern "C" __global__ void one_warp(float* out, const int* in) {
  __shared__ float sums[4];
  if (threadIdx.x < 4) sums[threadIdx.x] = 0;
  __syncwarp();
  for (int k = 0; k < 3; k++) atomicAdd(&sums[in[threadIdx.x] + k & 3], 1.5f);
  __syncwarp();
  if (threadIdx.x < 4) out[blockIdx.x * 4 + threadIdx.x] = sums[threadIdx.x];
}
extern "C" __global__ void everywhere(int* out, int* sum, int n) {
  int seen = 0;
#pragma unroll 1
  for (int k = 0; k < n && seen < 99; k++) seen = atomicExch(sum, threadIdx.x + k);
  out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}
extern "C" __global__ void handed_on(int* out, volatile int* place, int* where) {
  __shared__ int own[64];
  if (threadIdx.x < 64) own[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int seen = 0;
#pragma unroll 1
  for (int k = 0; k < 5 + (int)(threadIdx.x & 3); k++) {
    if (!(threadIdx.x & 31)) place[threadIdx.x >> 5] = seen + threadIdx.x;
    int* p = where[k & 7] & 1 ? own + (threadIdx.x & 63) : where + 8;
    seen += place[k & 3] + atomicCAS(p, seen & 63, k);
  }
  out[threadIdx.x] = seen;
}
"""
LAUNCHES = (
    "histogram<<<3, 256>>>(f32[24], i32[1000]=perm(2), n=1000)",
    "histogram<<<2, 96>>>(f32[16], i32[700]=noise, n=700)",
    "doubles<<<2, 128>>>(f64[6], i32[128]=perm(4))",
    "tickets<<<2, 160>>>(i32[320], i32[160]=perm(3))",
    "one_warp<<<5, 32>>>(f32[20], i32[32]=perm(1))",
    "everywhere<<<1, 96>>>(i32[96], i32[1], n=30)",
    "everywhere<<<1, 20>>>(i32[20], i32[1], n=30)",
    "handed_on<<<1, 96>>>(i32[96], i32[8], i32[16]=perm(2))",
)
OPTIONS = ExecutionOptions(sample_above=None)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_warps_that_race_run_alike_in_both_engines(launch: str) -> None:
    config = parse_launch(launch)
    bound = bind(compile_kernels(SOURCE, "sm_90")[config.kernel], config, load_device("h200"))
    assert list_differences(bound, OPTIONS, assumes=True) == []


def test_how_often_they_try_is_said_to_depend_on_the_order() -> None:
    config = parse_launch(LAUNCHES[0])
    bound = bind(compile_kernels(SOURCE, "sm_90")[config.kernel], config, load_device("h200"))
    execution = execute_native(bound, OPTIONS, assumes=True)
    doubtful = [site for site in execution.sites if site.certainty is Certainty.SCHEDULE_DEPENDENT]
    assert {bound.kernel.instructions[site.instruction].opcode for site in doubtful} >= {"ATOMS", "LDS"}


def test_blocks_that_race_are_left_to_the_reference_engine() -> None:
    config = parse_launch("everywhere<<<4, 64>>>(i32[256], i32[1], n=30)")
    bound = bind(compile_kernels(SOURCE, "sm_90")[config.kernel], config, load_device("h200"))
    with pytest.raises(UnsupportedError, match="order of warps"):
        execute_native(bound, OPTIONS, assumes=True)
