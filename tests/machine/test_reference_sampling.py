"""Samples of blocks in the reference engine against all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine import numpy_engine, reference_sampling
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.reference_sampling import are_independent, execute_some
from sectorwise.machine.sampling import split_strata
from tests.machine.launching import compile_kernels

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch

SOURCE = r"""
// Each block waits at an mbarrier for its own threads.
extern "C" __global__ void gated(float* out, const float* in, int n, int rounds) {
  __shared__ unsigned long long gate;
  unsigned at = (unsigned)__cvta_generic_to_shared(&gate);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at));
  __syncthreads();
  float sum = 0;
  int edge = blockIdx.x == 0 || blockIdx.x == gridDim.x - 1;
  for (int k = 0; k < rounds; k++) {
    asm volatile("{ .reg .b64 s; .reg .pred p; mbarrier.arrive.shared.b64 s, [%0];"
                 " again: mbarrier.try_wait.shared.b64 p, [%0], s; @!p bra again; }" ::"r"(at) : "memory");
    sum += in[((blockIdx.x + k) * 64 + threadIdx.x * (edge ? 8 : 1)) % n];
  }
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}
// The same, but a block reads what the one before it has written.
extern "C" __global__ void chained(int* out) {
  __shared__ unsigned long long gate;
  unsigned at = (unsigned)__cvta_generic_to_shared(&gate);
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at));
  int last = blockIdx.x ? out[blockIdx.x - 1] : 3;
  out[blockIdx.x] = last + 1;
  if (last & 1) out[gridDim.x + threadIdx.x] = 1;
}
// A range of bytes at once, shorter in the last block.
extern "C" __global__ void ranged(float* out, const float* in, int n) {
  __shared__ __align__(128) float tile[256];
  __shared__ unsigned long long gate;
  unsigned at = (unsigned)__cvta_generic_to_shared(&gate), to = (unsigned)__cvta_generic_to_shared(tile);
  int first = blockIdx.x * 256 + 4, count = min(256, n - first);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at));
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(at), "r"(count * 4) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(in + first), "r"(count * 4), "r"(at) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [%0], 0; @!p bra again; }" ::"r"(at)
               : "memory");
  out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
}
// Blocks of a cluster come together.
extern "C" __global__ void __cluster_dims__(2, 1, 1) paired(float* out, const float* in, int n) {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  float sum = 0;
  for (int k = 0; k < 8; k++) sum += in[(blockIdx.x * 64 + threadIdx.x * (blockIdx.x % 2 + 1) + k) % n];
  out[blockIdx.x * 64 + threadIdx.x] = sum;
}
"""
OPTIONS = ExecutionOptions(sample_above=1 << 15)


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE, "sm_90")[config.kernel], config, load_device("h200"))


@pytest.mark.parametrize(
    "launch",
    [
        "gated<<<1000, 64>>>(f32[64000], f32[4096], n=4096, rounds=6)",
        "paired<<<600, 64>>>(f32[38400], f32[4096], n=4096)",
        "ranged<<<800, 64>>>(f32[51200], f32[204740], n=204740)",
    ],
)
def test_a_sample_counts_what_all_blocks_count_and_says_so(launch: str) -> None:
    bound = _bind(launch)
    assert are_independent(bound)
    whole, some = numpy_engine.execute(bound, OPTIONS), execute_some(bound, OPTIONS)
    assert some.sampling is not None
    assert 8 < some.blocks_executed == len(some.sampling.blocks) < bound.launch.blocks_total // 2
    assert {0, bound.launch.blocks_total - 1} < set(some.sampling.blocks)
    assert [replace(site, certainty=Certainty.EXACT, first=None) for site in some.sites] == [
        replace(site, first=None) for site in whole.sites
    ]
    assert {site.certainty for site in some.sites} == {Certainty.SAMPLED}
    assert [replace(copies, certainty=Certainty.EXACT) for copies in some.bulk] == list(whole.bulk)
    assert {copies.certainty for copies in some.bulk} == ({Certainty.SAMPLED} if "ranged" in launch else set())
    assert np.array_equal(some.issued, whole.issued)
    assert np.array_equal(some.lanes, whole.lanes)
    assert some.sampling.instructions == whole.issued.sum()
    assert np.array_equal(some.read_buffer(0), whole.read_buffer(0))


def test_what_machine_code_does_not_run_is_sampled() -> None:
    # Blocks of a cluster run together in the reference engine alone.
    bound = _bind("paired<<<2400, 64>>>(f32[153600], f32[4096], n=4096)")
    sampling = execute(bound, OPTIONS).sampling
    assert sampling is not None
    assert sampling == execute_some(bound, OPTIONS).sampling
    assert execute(_bind("gated<<<2400, 64>>>(f32[153600], f32[4096], n=4096, rounds=4)"), OPTIONS).sampling is None


def test_blocks_that_read_what_others_wrote_all_run() -> None:
    bound = _bind("chained<<<600, 64>>>(i32[700])")
    assert not are_independent(bound)
    execution = execute(bound, OPTIONS)
    assert execution.sampling is None
    assert execution.blocks_executed == 600


def test_launches_that_are_not_much_work_all_run() -> None:
    bound = _bind("gated<<<300, 64>>>(f32[64000], f32[4096], n=4096, rounds=2)")
    execution = execute_some(bound, ExecutionOptions())
    assert execution.sampling is None
    assert execution.sites == numpy_engine.execute(bound, ExecutionOptions()).sites


def test_blocks_that_wait_for_ever_are_described_as_if_all_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = _bind("gated<<<1000, 64>>>(f32[64000], f32[4096], n=4096, rounds=2)")
    monkeypatch.setattr(reference_sampling, "run_numbers", lambda _tally, _numbers: False)
    assert execute_some(bound, OPTIONS).sampling is None


def test_strata_are_of_whole_groups() -> None:
    strata = split_strata((6, 4, 1), np.arange(24), 2)
    assert {group.shape[1] for group in strata} == {2}
    assert sorted(len(group) for group in strata) == [1, 1, 1, 1, 1, 1, 2, 2, 2]
    assert [2, 3] in [row for group in strata for row in group.tolist()]


def test_coarse_strata_are_corners_edges_and_the_rest() -> None:
    strata = split_strata((6, 4, 1), np.arange(24), is_coarse=True)
    assert sorted(stratum.reshape(-1).tolist() for stratum in strata) == [
        [0, 5, 18, 23],
        [1, 2, 3, 4, 6, 11, 12, 17, 19, 20, 21, 22],
        [7, 8, 9, 10, 13, 14, 15, 16],
    ]
