"""Copies of whole ranges behind a branch on an inexact value leave what is no surer than the branch."""

from __future__ import annotations

import pytest

from sectorwise.counting.request import Operation
from sectorwise.machine.execution import Certainty
from tests.machine.launching import run

SOURCE = r"""
__device__ void copy(int* to, const int* from, bool asked) {
  if (threadIdx.x == 0 && asked) {
    unsigned place = (unsigned)__cvta_generic_to_shared(from);
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" :: "l"(to), "r"(place) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
__device__ void scatter(int* table, float* out, bool asked) {
  __shared__ __align__(128) int held[128];
  held[threadIdx.x] = 3 * threadIdx.x;
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  copy(table, held, asked);
  __syncthreads();
  if (threadIdx.x >= 32) out[table[threadIdx.x] & 1023] = 1;
}
extern "C" __global__ void given(int* table, float* out, float x) { scatter(table, out, x > 1); }
extern "C" __global__ void estimated(int* table, float* out, float x) { scatter(table, out, __expf(x) > 3); }
"""


@pytest.mark.parametrize(
    ("kernel", "x", "certainty", "sectors"),
    [
        ("given", 1.5, Certainty.EXACT, 36),
        ("given", 0.5, Certainty.EXACT, 3),
        ("estimated", 1.5, Certainty.ASSUMED, 36),
        ("estimated", 0.5, Certainty.ASSUMED, 3),
    ],
)
def test_where_lanes_store_by_what_was_copied(kernel: str, x: float, certainty: Certainty, sectors: int) -> None:
    done = run(SOURCE, f"{kernel}<<<1, 128>>>(i32[128], f32[1024], {x})")
    stores = [
        site
        for site in done.execution.sites
        if site.access.operation is Operation.STORE and site.access.space == "global"
    ]
    assert [(site.sectors, site.certainty) for site in stores] == [(sectors, certainty)]
