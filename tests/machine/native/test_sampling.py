from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.counting.request import Operation
from sectorwise.device import load_device
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.sampling import split_strata, spread
from tests.machine.launching import compile_kernels

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch

SOURCE = r"""
extern "C" __global__ void hashed(float* out, int work) {
  unsigned b = blockIdx.x; b ^= b >> 7; b *= 0x9E3779B1u; b ^= b >> 13;
  int sum = 0;
  for (int k = 0; k < work; k++) sum = sum * 3 + (b ^ k) % 5;
  out[((b + sum) & 1023) * (1 + (b >> 5 & 1)) + threadIdx.x] = 1;
}
extern "C" __global__ void edges(float* out, int work, int n) {
  unsigned b = blockIdx.x * 7919u % 4096u;
  int sum = 0;
  for (int k = 0; k < work; k++) sum = sum * 3 + (b ^ k) % 5;
  int stride = blockIdx.x == 0 || blockIdx.x == gridDim.x - 1 ? 32 : 1;
  if (sum != 12345) out[(threadIdx.x * stride + blockIdx.y * 32) % n] = 1;
}
extern "C" __global__ void seldom_long(float* out, const int* length, const float* in) {
  float sum = 0;
  for (int k = 0, n = length[blockIdx.x * 32 + threadIdx.x]; k < n; k++) sum += in[k * 32 + threadIdx.x];
  out[blockIdx.x * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void chained(int* out, const int* in) {
  int i = blockIdx.x, last = i ? out[i - 1] : 0;
  if (threadIdx.x == 0) out[i] = last + in[i * 7919 % gridDim.x] % 3;
  if (last & 1) out[gridDim.x + threadIdx.x] = 1;
}
"""


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


def test_sampled_counts_are_near_those_of_all_blocks_and_say_what_they_are() -> None:
    bound = _bind("hashed<<<20000, 32>>>(f32[4096], work=20)")
    whole = execute_native(bound, ExecutionOptions(sample_above=None))
    sampled = execute_native(bound, ExecutionOptions(sample_above=2_000_000))
    assert whole.sampling is None
    assert {site.certainty for site in whole.sites} == {Certainty.EXACT}
    assert sampled.sampling is not None
    assert sampled.sampling.of == 20_000
    assert {0, 19_999} < set(sampled.sampling.blocks)
    assert sampled.blocks_executed == len(sampled.sampling.blocks) < 10_000
    assert sampled.sampling.instructions == pytest.approx(int(whole.issued.sum()), rel=0.02)
    (want,), (got,) = whole.sites, sampled.sites
    assert got.certainty is Certainty.SAMPLED
    assert got.executed == want.executed == 20_000
    assert got.sectors == pytest.approx(want.sectors, rel=0.02)
    assert whole.lengths is not None
    assert sampled.lengths is not None
    assert whole.lengths.sum() == whole.issued.sum()
    ran = np.flatnonzero(~np.isnan(sampled.lengths))
    assert ran.tolist() == list(sampled.sampling.blocks)


def test_what_all_sampled_blocks_do_alike_is_met_to_the_last_sector() -> None:
    bound = _bind("edges<<<(300, 9), 32>>>(f32[1024], work=30, n=1024)")
    whole = execute_native(bound, ExecutionOptions(sample_above=None))
    sampled = execute_native(bound, ExecutionOptions(sample_above=500_000))
    assert sampled.sampling is not None
    assert len(sampled.sampling.blocks) < 1500
    assert np.array_equal(sampled.issued, whole.issued)
    assert [site.sectors for site in sampled.sites] == [site.sectors for site in whole.sites]


def _bind_lengths(lengths: npt.NDArray[np.int32]) -> BoundLaunch:
    """Blocks that each run a loop so often."""
    count = len(lengths)
    config = parse_launch(f"seldom_long<<<{count}, 32>>>(f32[{32 * count}], i32[{32 * count}], f32[16384])")
    arguments = list(config.arguments)
    arguments[1] = BufferArgument("i32", 32 * count, Contents("array", array=np.repeat(lengths, 32)))
    launch = replace(config, arguments=tuple(arguments))
    return bind(compile_kernels(SOURCE)["seldom_long"], launch, load_device("h200"))


def test_few_long_blocks_are_looked_for_as_long_as_there_is_time() -> None:
    count = 20_000
    lengths = np.where(np.arange(count) % 97 == 5, 256, 1).astype(np.int32)
    sampled = execute_native(_bind_lengths(lengths), ExecutionOptions(sample_above=8_000_000))
    assert sampled.sampling is not None
    assert 2_000 < len(sampled.sampling.blocks) < count
    reads = [site for site in sampled.sites if site.access.operation is Operation.LOAD]
    assert sum(site.executed for site in reads) == pytest.approx(count + int(lengths.sum()), rel=0.1)


@pytest.mark.parametrize(
    "lengths",
    [np.where(np.arange(20_000) % 3 == 0, 256, 1), np.arange(20_000) * 7919 % 199 + 1, np.arange(20_000) // 100],
    ids=["a third", "any", "more and more"],
)
def test_a_sample_says_by_how_much_it_may_be_off(lengths: npt.NDArray[np.int64]) -> None:
    bound = _bind_lengths(lengths.astype(np.int32))
    truth = int(execute_native(bound, ExecutionOptions(sample_above=None)).issued.sum())
    errors = []
    for most in (1 << 21, 1 << 23):
        sampling = execute_native(bound, ExecutionOptions(sample_above=most)).sampling
        assert sampling is not None
        assert sampling.error is not None
        assert sampling.error > 0.01
        assert abs(sampling.instructions - truth) < sampling.error * truth
        errors.append(sampling.error)
    assert errors[1] < 0.7 * errors[0]


def test_blocks_that_all_do_the_same_leave_nothing_open() -> None:
    bound = _bind("hashed<<<20000, 32>>>(f32[4096], work=20)")
    sampling = execute_native(bound, ExecutionOptions(sample_above=2_000_000)).sampling
    assert sampling is not None
    assert sampling.error == 0.0


def test_the_same_blocks_are_chosen_however_many_threads_run_them(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = _bind("hashed<<<20000, 32>>>(f32[4096], work=20)")
    found = []
    for cores in (1, 2, 7):
        monkeypatch.setattr("os.sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        found += [(above, execute_native(bound, ExecutionOptions(sample_above=above))) for above in (None, 2_000_000)]
    for above, execution in found[2:]:
        first = next(each for limit, each in found if limit == above)
        assert (execution.sites, execution.sampling) == (first.sites, first.sampling)
        assert np.array_equal(execution.issued, first.issued)
        assert np.array_equal(execution.lanes, first.lanes)


def test_blocks_that_depend_on_each_other_all_run() -> None:
    bound = _bind("chained<<<2000, 32>>>(i32[2100], i32[2000]=perm(1))")
    execution = execute_native(bound, ExecutionOptions(sample_above=1), assumes=True)
    assert execution.sampling is None
    assert execution.blocks_executed == 2000


def test_corners_and_edges_are_strata_of_their_own() -> None:
    strata = split_strata((5, 4, 1), np.arange(20))
    assert sorted(len(stratum) for stratum in strata) == [1, 1, 1, 1, 2, 2, 3, 3, 6]
    assert sorted(np.concatenate(strata).reshape(-1).tolist()) == list(range(20))
    assert [6, 7, 8, 11, 12, 13] in [stratum.reshape(-1).tolist() for stratum in strata]


@pytest.mark.parametrize("count", [1, 2, 7, 256, 1000])
def test_any_number_of_the_first_blocks_are_spread(count: int) -> None:
    order = spread(np.arange(count) + 10)
    assert sorted(order.tolist()) == list(range(10, count + 10))
    for first in (8, 64, 200):
        if first < count // 2:
            gaps = np.diff(np.sort(np.concatenate([[9], order[:first], [count + 10]])))
            assert gaps.max() <= 3 * count / first
