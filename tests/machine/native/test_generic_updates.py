"""Generic atomics of lanes that are in several memories run as machine code, and count as in the reference engine."""

from __future__ import annotations

import pytest

from sectorwise.binding import bind
from sectorwise.counting.request import Operation, Space
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

SOURCE = r"""
extern "C" __global__ void unwanted(int* g) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  atomicAdd(t % 8 < 4 ? s + t : g + 4 * t, 5);
}
extern "C" __global__ void halves(unsigned long long* g) {
  __shared__ unsigned long long s[64];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  atomicAdd(t < 12 ? s + t / 2 : g + t, 5ull);
}
extern "C" __global__ void wanted(int* g, int* out) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t] = t * 5;  s[t + 32] = t;
  __syncthreads();
  int* p = t % 3 ? s + (t * 7 & 31) : g + (t & 15);
  int sum = atomicAdd(p, t) + atomicMax(p, 3 * t) * 3 + atomicXor(p, t << 2) * 7;
  sum ^= atomicCAS(p, sum & 63, t) + atomicExch(p + 32, sum);
  out[t] = s[sum & 63];
}
extern "C" __global__ void wide(unsigned long long* g, unsigned long long* out) {
  __shared__ unsigned long long s[64];
  int t = threadIdx.x;
  s[t] = 1ull << t; s[t + 32] = t;
  __syncthreads();
  unsigned long long* p = t & 4 ? s + (t & 31) : g + (t & 15);
  unsigned long long sum = atomicAdd(p, 1ull * t) + atomicMin(p, 1ull << 40 | t) * 3 + atomicExch(p + 32, 7ull * t);
  sum ^= atomicCAS(p, sum & 63, 5ull);
  __syncthreads();
  out[t] = sum + s[sum & 63];
}
extern "C" __global__ void patterns(int* g, const int* at) {
  __shared__ int s[64];
  int t = threadIdx.x;
  s[t & 63] = 0;
  __syncthreads();
  for (int k = 0; k < 40; k++) {
    int a = at[(t * 5 + k * 67 + blockIdx.x * 13) & 1023];
    atomicAdd(a & 1 && k & 1 ? s + (a & 63) : g + a, 1);
  }
}
extern "C" __global__ void far(int* g, const int* at, int n) {
  __shared__ int s[32];
  int t = threadIdx.x, a = at[t & 1023];
  s[t & 31] = 0;
  __syncthreads();
  for (int k = 0; k < 40; k++) { a = at[(a + k) & 1023]; atomicAdd(k == n ? s + (a & 31) : g + a, 1); }
}
"""
LAUNCHES = (
    "unwanted<<<2, 40>>>(i32[256])",
    "halves<<<2, 64>>>(u64[64])",
    "wanted<<<1, 32>>>(i32[64]=arange, i32[32])",
    "wide<<<1, 32>>>(u64[64]=arange, u64[32])",
    "patterns<<<6, 96>>>(i32[1024], i32[1024]=perm(3))",
    "far<<<4, 64>>>(i32[1024], i32[1024]=perm(4), n=77)",
)
OPTIONS = ExecutionOptions(sample_above=None)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_lanes_in_several_memories_update_alike_in_both_engines(launch: str) -> None:
    config = parse_launch(launch)
    kernel = compile_kernels(SOURCE)[config.kernel]
    generic = [step for step in kernel.instructions if step.opcode == "ATOM"]
    assert generic, launch
    assert list_differences(bind(kernel, config, load_device("h200")), OPTIONS, assumes=True) == []


def test_the_pipe_passes_once_for_lanes_of_both_memories() -> None:
    config = parse_launch(LAUNCHES[0])
    execution = execute_native(bind(compile_kernels(SOURCE)["unwanted"], config, load_device("h200")), OPTIONS)
    site = next(site for site in execution.sites if site.access.space is Space.GENERIC)
    assert site.access.operation in (Operation.ATOMIC, Operation.REDUCTION)
    assert (site.wavefronts_hardware, site.wavefronts, site.sectors) == (4, 4, 20)
