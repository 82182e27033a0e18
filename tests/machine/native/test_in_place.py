"""Lanes of which some are missing, at the very ends of buffers, and copies cut short: as the reference engine does."""

from __future__ import annotations

import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.machine.native.compiler import find_host, restrict_host
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

SOURCE = r"""
template <class T> __device__ T make(int k) {
  T t;
  for (int b = 0; b < (int)sizeof(T); b++) ((char*)&t)[b] = k * 7 + b;
  return t;
}
// Of 32 consecutive places those from 0 to n - 1 exist; lanes come to some of these.
template <class T> __device__ void move(T* out, const T* in, int n, int shift) {
  unsigned mask = shift;
  __shared__ T tile[64];
  int lane = threadIdx.x, place = lane - shift;
  tile[lane] = make<T>(lane); tile[lane + 32] = make<T>(-lane);
  __syncwarp();
  for (int k = 0; k < 24; k++) {
    mask = mask * 1664525u + 1013904223u;
    if ((mask | mask >> 9) >> lane & 1 && place >= 0 && place < n) {
      T t = in[place];
      out[place] = t;
      tile[lane + k] = t;
    }
    __syncwarp();
    if (mask >> lane & 1 && place >= 0 && place < n) out[place] = tile[(lane + k * 5) & 63];
  }
}
#define KERNEL(name, T) \
  extern "C" __global__ void name(T* out, const T* in, int n, int shift) { move(out, in, n, shift); }
KERNEL(bytes, char) KERNEL(halves, short) KERNEL(words, int) KERNEL(pairs, int2) KERNEL(quads, int4)

extern "C" __global__ void cut(int4* out, const int4* in, const int* sizes) {
  __shared__ int4 tile[96];
  unsigned to = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  tile[threadIdx.x] = tile[threadIdx.x + 32] = tile[threadIdx.x + 64] = make_int4(-1, -1, -1, -1);
  __syncwarp();
  int size = sizes[threadIdx.x];
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(in + threadIdx.x), "r"(size));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to + 512), "l"(in + threadIdx.x), "r"(size / 2));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to + 1024), "l"(in + threadIdx.x), "r"(size / 4));
  asm volatile("cp.async.wait_all;");
  __syncwarp();
  for (int k = 0; k < 3; k++) out[32 * k + threadIdx.x] = tile[32 * k + threadIdx.x];
}
"""
OPTIONS = ExecutionOptions()
LAUNCHES = (
    "bytes<<<1, 32>>>(i8[16], i8[16]=arange, n=16, shift=11)",
    "halves<<<1, 32>>>(i16[16], i16[16]=perm(1), n=16, shift=11)",
    "words<<<1, 32>>>(i32[16], i32[16]=perm(1), n=16, shift=11)",
    "words<<<1, 32>>>(i32[31], i32[31]=perm(1), n=31, shift=0)",
    "pairs<<<1, 32>>>(i32[32], i32[32]=perm(2), n=16, shift=11)",
    "quads<<<1, 32>>>(i32[64], i32[64]=perm(3), n=16, shift=11)",
    "cut<<<1, 32>>>(i32[384], i32[128]=perm(3), i32[32]=arange)",
)


@pytest.mark.parametrize("launch", LAUNCHES)
def test_what_is_missing_is_left_alone(launch: str) -> None:
    config = parse_launch(launch)
    bound = bind(compile_kernels(SOURCE, "sm_90")[config.kernel], config, load_device("h200"))
    assert list_differences(bound) == []
    host = find_host()
    assert host is not None
    one, other = execute_native(bound, OPTIONS), execute_native(bound, OPTIONS, host=restrict_host(host))
    assert one.sites == other.sites
    assert [one.read_buffer(0).tolist()] == [other.read_buffer(0).tolist()]
