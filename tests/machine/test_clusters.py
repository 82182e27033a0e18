"""Blocks of a cluster know each other, wait for each other, and reach each other's shared memory."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Certainty, FaultKind, Site
from tests.machine.launching import Run, find_line, run

SOURCE = r"""
__device__ unsigned rank_of() { unsigned r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ unsigned ranks() { unsigned r; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(r)); return r; }
__device__ void meet() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ unsigned at_rank(const void* p, unsigned rank) {
  unsigned there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  return there;
}
extern "C" __global__ void __cluster_dims__(4, 1, 1) ring(const int* in, int* out) {
  __shared__ int own[128];
  own[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  meet();
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v)
               : "r"(at_rank(own + threadIdx.x, (rank_of() + 1) % ranks())));     // the next block's
  out[blockIdx.x * 128 + threadIdx.x] = v;                                        // in its place
  meet();
}
extern "C" __global__ void __cluster_dims__(2, 2, 1) placed(int* out) {
  unsigned v[6];
  asm volatile("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(v[0]));
  asm volatile("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(v[1]));
  asm volatile("mov.u32 %0, %%clusterid.x;" : "=r"(v[2]));
  asm volatile("mov.u32 %0, %%clusterid.y;" : "=r"(v[3]));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(v[4]));
  v[5] = rank_of() * 100 + ranks();
  for (int k = 0; k < 6; ++k) out[(blockIdx.y * gridDim.x + blockIdx.x) * 6 + k] = v[k];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) counted(const int* in, int* out) {
  __shared__ int bins[64];
  if (threadIdx.x < 64) bins[threadIdx.x] = 0;
  meet();
  int v = in[blockIdx.x * blockDim.x + threadIdx.x] & 127;
  asm volatile("red.shared::cluster.add.u32 [%0], 1;" :: "r"(at_rank(bins + v % 64, v / 64)) : "memory");
  meet();
  if (threadIdx.x < 64) atomicAdd(&out[rank_of() * 64 + threadIdx.x], bins[threadIdx.x]);
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) late(int* out) {
  __shared__ int handed;
  if (rank_of() == 1) {
    int v = 0;
    for (int k = 0; k < 300; ++k) v += out[k % 16];
    if (threadIdx.x == 0)
      asm volatile("st.shared::cluster.u32 [%0], %1;" :: "r"(at_rank(&handed, 0)), "r"(v + 7) : "memory");
    meet();
    return;
  }
  if (threadIdx.x >= 32) {
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    return;
  }
  meet();
  out[blockIdx.x * 32 + threadIdx.x + 16] = handed;                               // after the wait
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) spread(const int* in, int* out) {
  __shared__ __align__(128) int tile[256];
  __shared__ unsigned long long bar;
  unsigned own = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(own) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(own) : "memory");
  }
  meet();
  if (threadIdx.x == 0 && rank_of() == 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], 1024, [%2], %3;"
                 :: "r"((unsigned)__cvta_generic_to_shared(tile)), "l"(in), "r"(own), "h"((short)3) : "memory");
  unsigned yes = 0;
  while (!yes)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(own) : "memory");
  out[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) sent(int* out) {
  __shared__ int slots[64];
  __shared__ unsigned long long bar;
  unsigned own = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(own) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(own) : "memory");
  }
  meet();
  unsigned other = rank_of() ^ 1;
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];"
               :: "r"(at_rank(slots + threadIdx.x, other)), "r"(blockIdx.x * 64 + threadIdx.x),
                  "r"(at_rank(&bar, other))
               : "memory");
  unsigned yes = 0;
  while (!yes)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(own) : "memory");
  out[blockIdx.x * 64 + threadIdx.x] = slots[threadIdx.x];
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) nowhere(int* out) {
  __shared__ int own[32];
  own[threadIdx.x] = 1;
  int v;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(v) : "r"(at_rank(own + threadIdx.x, 5)));
  out[threadIdx.x] = v;
}
"""

TARGETS = pytest.mark.parametrize("target", ["sm_90", "sm_120"])


def _sites(done: Run, mark: str, operation: str) -> list[Site]:
    found = [site for site in done.sites_at(find_line(SOURCE, mark)) if site.access.operation == operation]
    assert found
    return found


@TARGETS
def test_blocks_read_their_neighbours(target: str) -> None:
    done = run(SOURCE, "ring<<<12, 128>>>(i32[1536]=arange, i32[1536])", target=target)
    expected = np.roll(np.arange(1536).reshape(3, 4, 128), -1, axis=1).reshape(-1)
    np.testing.assert_array_equal(done.output(1), expected)
    assert {each.because for each in done.execution.limitations} == {
        "it reaches into another block's shared memory, of which the profiler counts nothing"
    }
    assert [site.certainty for site in _sites(done, "// in its place", "store")] == [Certainty.EXACT]
    remote = {each.instruction for each in done.execution.limitations}
    reading = [site for site in done.execution.sites if site.instruction in remote]
    assert [(site.executed, site.wavefronts, site.sectors, site.certainty) for site in reading] == [
        (48, 0, 0, Certainty.EXACT)
    ]
    assert [site.certainty_hardware for site in reading] == [Certainty.MODELLED]


@TARGETS
def test_places_in_a_cluster(target: str) -> None:
    found = run(SOURCE, "placed<<<(6, 4), 1>>>(i32[144])", target=target).output(0).reshape(4, 6, 6)
    for y in range(4):
        for x in range(6):
            rank = x % 2 + y % 2 * 2
            assert found[y, x].tolist() == [x % 2, y % 2, x // 2, y // 2, 3, rank * 100 + 4]


@TARGETS
def test_atomics_reach_other_blocks(target: str) -> None:
    done = run(SOURCE, "counted<<<4, 128>>>(i32[512]=arange, i32[128])", target=target)
    np.testing.assert_array_equal(done.output(1), np.full(128, 4))


@TARGETS
def test_cluster_waits_for_its_slowest_block_and_not_for_threads_that_left(target: str) -> None:
    done = run(SOURCE, "late<<<4, 64>>>(i32[256])", target=target)
    expected = np.zeros(256, np.int32)
    expected[[16 + block * 32 + lane for block in (0, 2) for lane in range(32)]] = 7
    np.testing.assert_array_equal(done.output(0), expected)
    assert [site.executed for site in _sites(done, "// after the wait", "store")] == [2]
    assert not any("hangs" in each.because for each in done.execution.limitations)
    assert done.execution.hangs == ()


def test_bulk_copy_reaches_all_blocks_that_its_mask_names() -> None:
    done = run(SOURCE, "spread<<<2, 256>>>(i32[256]=arange, i32[512])")
    np.testing.assert_array_equal(done.output(1), np.tile(np.arange(256)[::-1], 2))


def test_multicast_of_consumer_parts_is_a_call_of_the_driver_that_is_named() -> None:
    done = run(SOURCE, "spread<<<2, 256>>>(i32[256]=arange, i32[512])", target="sm_120")
    said = [each.because for each in done.execution.limitations]
    assert "the call of __cuda_syscall_cp_async_bulk_multicast is stepped over: what it does is not seen" in said
    assert any("wait here for an mbarrier whose phase does not end" in because for because in said)


@TARGETS
def test_stores_that_the_other_block_waits_for(target: str) -> None:
    done = run(SOURCE, "sent<<<2, 64>>>(i32[128])", target=target)
    np.testing.assert_array_equal(done.output(0), np.roll(np.arange(128), 64))


@TARGETS
def test_block_that_is_not_there_is_a_fault(target: str) -> None:
    done = run(SOURCE, "nowhere<<<2, 32>>>(i32[32])", target=target)
    (fault,) = done.execution.faults
    assert (fault.kind, fault.occurrences) == (FaultKind.OUT_OF_BOUNDS, 64)
