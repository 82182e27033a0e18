"""Rings of stages that a cluster shares: each block fetches a part for all, and all say when they are done."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Certainty
from tests.machine.launching import run

SOURCE = r"""
#define SHARED(pointer) ((unsigned)__cvta_generic_to_shared(pointer))
constexpr int STAGES = 3, PART = 256;

__device__ unsigned at_rank(unsigned place, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(place), "r"(rank));
  return there;
}
__device__ void wait(unsigned barrier, int parity) {
  asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;"
               " @!done bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}
__device__ void meet() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }

// Both blocks add up both parts of each step, from the last stage to the first thread.
template <bool ELECTS>
__device__ void stream(const unsigned* in, unsigned* out, int steps) {
  __shared__ __align__(128) unsigned held[STAGES][2][PART];
  __shared__ unsigned long long full[STAGES], empty[STAGES];
  unsigned rank = blockIdx.x % 2;
  if (threadIdx.x == 0) {
    for (int i = 0; i < STAGES; ++i) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(SHARED(full + i)));
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 4;" ::"r"(SHARED(empty + i)));  // two warps of each block
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet();
  if (threadIdx.x >= 64) {
    unsigned chosen = threadIdx.x == 64;
    if (ELECTS)
      asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(chosen));
    if (chosen)
      for (int step = 0; step < steps; ++step) {
        int stage = step % STAGES;
        wait(SHARED(empty + stage), step / STAGES % 2 ^ 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(SHARED(full + stage)),
                     "r"(8 * PART) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3],"
            " %4;" ::"r"(SHARED(held[stage][rank])),
            "l"(in + (step * 2 + rank) * PART), "r"(4 * PART), "r"(SHARED(full + stage)), "h"((unsigned short)3)
            : "memory");
      }
  } else {
    unsigned sum = 0;
    for (int step = 0; step < steps; ++step) {
      int stage = step % STAGES;
      wait(SHARED(full + stage), step / STAGES % 2);
      for (int i = threadIdx.x; i < PART; i += 64) sum = sum * 3 + held[stage][0][i] + 7 * held[stage][1][PART - 1 - i];
      __syncwarp();
      if (threadIdx.x % 32 < 2)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                         at_rank(SHARED(empty + stage), threadIdx.x % 32)) : "memory");
    }
    out[blockIdx.x * 64 + threadIdx.x] = sum;
  }
  meet();
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) shared_ring(const unsigned* in, unsigned* out, int steps) {
  stream<false>(in, out, steps);
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) elected_ring(const unsigned* in, unsigned* out, int steps) {
  stream<true>(in, out, steps);
}
"""


@pytest.mark.parametrize("kernel", ["shared_ring", "elected_ring"])
def test_a_cluster_streams_through_one_ring(kernel: str) -> None:
    steps = 8
    done = run(SOURCE, f"{kernel}<<<4, 96>>>(u32[{steps * 512}]=uniform(5), u32[256], {steps})")
    assert (done.execution.faults, done.execution.limitations) == ((), ())
    given = done.given(0).view(np.uint32).reshape(steps, 2, 256)
    wanted = np.zeros(64, np.uint32)
    for first, second in given:
        for start in range(0, 256, 64):
            wanted = wanted * np.uint32(3) + first[start : start + 64] + np.uint32(7) * second[::-1][start : start + 64]
    np.testing.assert_array_equal(done.output(1, np.uint32).reshape(4, 64), np.tile(wanted, (4, 1)))
    bulk = done.execution.bulk
    # Each block of two clusters fetches its half of each step, 1 KiB, for both.
    assert (sum(each.copies for each in bulk), sum(each.targets for each in bulk)) == (4 * steps, 8 * steps)
    assert sum(each.written_bytes for each in bulk) == 8 * steps * 1024
    assert (sum(each.sectors for each in bulk), sum(each.sectors_l2 for each in bulk)) == (256 * steps, 128 * steps)
    assert {(each.row_bytes, each.certainty) for each in bulk} == {(1024, Certainty.EXACT)}
    assert len({barrier for each in bulk for barrier in each.barriers}) == 3
    assert len({place for each in bulk for place in each.landings}) == 6
