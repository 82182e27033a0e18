"""Functions that call themselves, by name or by pointer, meet by chance where some of a warp's lanes recur."""

from __future__ import annotations

import pytest

from sectorwise.machine.execution import Certainty
from tests.machine.launching import run

SOURCE = r"""
typedef int (*Function)(const int*, int*, int);
__device__ __noinline__ int by_name(const int* in, int* out, int n) {
  int v = in[n];
  if (n < 2) return v;
  int sum = by_name(in, out, n - 1);
  if (n & 1) sum += by_name(in, out, n - 2);
  out[n * 32 + threadIdx.x] = sum;
  return sum + in[n / 2];
}
__device__ int by_pointer(const int* in, int* out, int n);
__device__ Function table[2] = {by_pointer, by_pointer};
__device__ __noinline__ int by_pointer(const int* in, int* out, int n) {
  int v = in[n];
  if (n < 2) return v;
  int sum = table[v & 1](in, out, n - 1);
  if (n & 1) sum += table[v >> 1 & 1](in, out, n - 2);
  out[n * 32 + threadIdx.x] = sum;
  return sum + in[n / 2];
}
__device__ __noinline__ int leaf(const int* in, int* out, int n) { return n & 1 ? in[n] + n : out[n]; }
__device__ Function leaves[2] = {leaf, leaf};

extern "C" __global__ void name(const int* in, int* out) {
  out[threadIdx.x] = by_name(in, out, threadIdx.x % 5 + 6);
}
extern "C" __global__ void pointer(const int* in, int* out) {
  out[threadIdx.x] = table[in[0] & 1](in, out, threadIdx.x % 5 + 6);
}
extern "C" __global__ void name_first(const int* in, int* out) {
  out[threadIdx.x] = by_pointer(in, out, threadIdx.x % 5 + 6);
}
extern "C" __global__ void leaf_by_pointer(const int* in, int* out) {
  out[threadIdx.x] = leaves[in[0] & 1](in, out, threadIdx.x % 5 + 6);
}
"""


@pytest.mark.parametrize(
    ("kernel", "certainty"),
    [
        ("name", Certainty.SCHEDULE_DEPENDENT),
        ("pointer", Certainty.SCHEDULE_DEPENDENT),
        ("name_first", Certainty.SCHEDULE_DEPENDENT),
        ("leaf_by_pointer", Certainty.EXACT),
    ],
)
def test_recursion_of_some_lanes_depends_on_the_schedule(kernel: str, certainty: Certainty) -> None:
    done = run(SOURCE, f"{kernel}<<<1, 32>>>(i32[64]=arange, i32[2048])")
    stored = [site for site in done.execution.sites if site.access.operation == "store"]
    assert stored[-1].certainty is certainty

    def follow(n: int) -> int:
        if n < 2:
            return n
        return follow(n - 1) + (follow(n - 2) if n % 2 else 0) + n // 2

    expected = (
        [n + n if n % 2 else 0 for n in range(6, 11)] if kernel == "leaf_by_pointer" else map(follow, range(6, 11))
    )
    assert done.output(1)[:5].tolist() == list(expected)
