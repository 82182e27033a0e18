"""What tensor cores read of shared memory by themselves is told; what is around them is counted, and nobody waits."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Certainty, Engine, ExecutionOptions
from tests.machine.launching import find_line, run

WARPGROUP = r"""
extern "C" __global__ void wide(float* out, const int* in, unsigned long long a, unsigned long long b) {
  float d[8] = {};
  unsigned h[4] = {};
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0,%1,%2,%3,%4,%5,%6,%7}, %8, %9, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
               : "l"(a), "l"(b));
  asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
               : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3]) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  for (int i = 0; i < 8; ++i) out[threadIdx.x + 128 * i] = d[i] + h[i / 2];       // results
  out[in[threadIdx.x] + 1024] = 1;                                                // beside them
  out[((int)d[0] & 7) + 1024] = 2;                                                // placed by a result
}
"""

REPEATED = r"""
extern "C" __global__ void repeated(float* out, const float* in, unsigned long long a, unsigned long long b) {
  unsigned h[4] = {};
  int rounds = (int)__expf(in[0]);
  for (int i = 0; i < rounds; ++i) {
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+r"(h[0]), "+r"(h[1]), "+r"(h[2]), "+r"(h[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;");
    asm volatile("wgmma.wait_group.sync.aligned 0;");
  }
  out[threadIdx.x] = h[0] + h[1] + h[2] + h[3];
}
"""

TENSOR_MEMORY = r"""
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
extern "C" __global__ void apart(float* out, unsigned long long a, unsigned long long b) {
  __shared__ unsigned base;
  __shared__ unsigned long long bar;
  if (threadIdx.x < 32)
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 64;" :: "r"(SHARED(&base)));
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(SHARED(&bar)));
  __syncthreads();
  unsigned t = base;
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }"
                 :: "r"(t), "l"(a), "l"(b), "r"(0x08100010));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(SHARED(&bar)));
  }
  unsigned yes = 0;
  while (!yes)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(SHARED(&bar)) : "memory");
  unsigned r[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(t));
  asm volatile("tcgen05.wait::ld.sync.aligned;");
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = __uint_as_float(r[i]);   // from tensor memory
  __syncthreads();
  if (threadIdx.x < 32) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 64;" :: "r"(t));
}
"""

REGISTERS = r"""
extern "C" __global__ void __launch_bounds__(256, 1) share(int* out) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    out[threadIdx.x] = 1;
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    out[threadIdx.x] = 2;
  }
}
"""


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.NATIVE])
def test_registers_that_warps_ask_for_are_there(engine: Engine) -> None:
    done = run(REGISTERS, "share<<<1, 256>>>(i32[256])", ExecutionOptions(engine=engine), "sm_90a")
    assert (done.execution.faults, done.execution.limitations) == ((), ())
    np.testing.assert_array_equal(done.output(0, np.int32), np.repeat([1, 2], 128))


def test_warpgroup_products_are_unknown_and_what_is_around_them_is_counted() -> None:
    done = run(WARPGROUP, "wide<<<2, 128>>>(f32[2048], i32[128]=arange, 1, 2)", target="sm_90a")
    said = {limitation.because for limitation in done.execution.limitations}
    assert (
        "HGMMA: what tensor cores read of shared memory is counted by its size, not computed: its results are taken as"
        in {because[: because.index(" unknown")] for because in said if because.endswith(" unknown")}
    )
    products = [site for site in done.execution.sites if site.access.opcode == "HGMMA"]
    # Of A 64 rows of 32 B, of B 16 columns, for four warps: 640 B, five passes for each of the eight warps.
    assert [(site.executed, site.wavefronts, site.wavefronts_ideal, site.wavefronts_hardware) for site in products] == [
        (8, 40, 40, 0)
    ] * 2
    stores = [site for site in done.sites_at(find_line(WARPGROUP, "// results")) if site.access.operation == "store"]
    assert [(site.executed, site.certainty, site.unknown_because) for site in stores] == [
        (8, Certainty.EXACT, None)
    ] * 8
    beside = [
        site for site in done.sites_at(find_line(WARPGROUP, "// beside them")) if site.access.operation == "store"
    ]
    assert [(site.lanes, site.certainty) for site in beside] == [(256, Certainty.EXACT)]
    np.testing.assert_array_equal(done.output(0, np.float32)[1032:1152], 1)
    placed = done.sites_at(find_line(WARPGROUP, "// placed by a result"))
    assert any(site.unknown_because is not None and "HGMMA" in site.unknown_because for site in placed)


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.AUTOMATIC])
def test_products_are_as_sure_as_the_way_to_them(engine: Engine) -> None:
    notation = "repeated<<<2, 128>>>(f32[128], f32[1]=arange, 1, 2)"
    done = run(REPEATED, notation, ExecutionOptions(engine=engine), "sm_90a")
    products = [site for site in done.execution.sites if site.access.opcode == "HGMMA"]
    assert products
    assert {site.certainty for site in products} == {Certainty.ASSUMED}


def test_waits_for_tensor_memory_end() -> None:
    done = run(TENSOR_MEMORY, "apart<<<2, 128>>>(f32[512], 1, 2)", target="sm_100a")
    said = [limitation.because for limitation in done.execution.limitations]
    assert any(because.startswith("UTCHMMA: what tensor cores read") for because in said)
    assert any(because.startswith("LDTM: tensor memory is not followed") for because in said)
    assert not any("hangs" in because for because in said)
    assert done.execution.hangs == ()
    stores = done.sites_at(find_line(TENSOR_MEMORY, "// from tensor memory"))
    assert sum(site.lanes * site.access.width_bytes for site in stores) == 2 * 128 * 16
    assert done.execution.faults == ()


MAYBE = r"""
__device__ void multiply(float* d) {
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(1ull));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
}
extern "C" __global__ void maybe(float* out) {
  float d[4] = {0, 0, 0, 0};
  multiply(d);
  if (d[0] > 3) multiply(d);
  out[threadIdx.x] = d[0] + d[1] + d[2] + d[3];
}
"""


def test_it_is_told_where_nothing_but_products_hangs_on_what_is_not_known() -> None:
    done = run(MAYBE, "maybe<<<4, 128>>>(f32[128])", target="sm_90a")
    products = [site.certainty for site in done.execution.sites if site.access.opcode == "HGMMA"]
    assert products[0] is Certainty.EXACT
    assert set(products[1:]) <= {Certainty.ASSUMED}
    assert any(each.because.startswith("whether lanes go this way is not known") for each in done.execution.limitations)
