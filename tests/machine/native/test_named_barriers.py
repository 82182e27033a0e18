"""Barriers at which some warps of a block wait, or pass: machine code against the reference engine."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.unsupported import OccurredError
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

SOURCE = r"""
__device__ void sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ void pass(int number, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
// Two halves of a block hand words to each other through shared memory, which decide where they store.
extern "C" __global__ void exchange(int* out, const int* in, int rounds) {
  __shared__ int held[256];
  int half = blockDim.x / 2, mine = threadIdx.x / half, place = threadIdx.x % half, word = in[threadIdx.x];
  for (int k = 0; k < rounds; k++) {
    if (mine == 0) {
      held[place] = (word + k) % half;
      pass(1, blockDim.x);
      sync(2, blockDim.x);
    } else {
      sync(1, blockDim.x);
      out[blockIdx.x * half + held[place]] = k;
      pass(2, blockDim.x);
    }
  }
}
// Each pair of warps has a barrier of its own; one warp ends early.
extern "C" __global__ void pairs(int* out, int rounds) {
  __shared__ int held[256];
  int pair = threadIdx.x / 64;
  held[threadIdx.x] = threadIdx.x;
  if (threadIdx.x >= blockDim.x - 64 && rounds > 3) return;
  for (int k = 0; k < rounds; k++) {
    sync(1 + pair, 64);
    int word = held[threadIdx.x ^ 32];
    sync(1 + pair, 64);
    held[threadIdx.x] = (word + 1) % 256;
  }
  out[blockIdx.x * 256 + held[threadIdx.x]] = 1;
}
// A number for the barrier that is fixed when the kernel is compiled, and nobody else comes.
extern "C" __global__ void alone(int* out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 3, 64;" ::: "memory");
  out[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize(
    "launch",
    [
        "exchange<<<3, 64>>>(i32[96], i32[64]=arange, rounds=5)",
        "exchange<<<40, 256>>>(i32[5120], i32[256]=perm(3), rounds=9)",
        "pairs<<<2, 256>>>(i32[512], rounds=3)",
        "pairs<<<33, 192>>>(i32[8448], rounds=4)",
    ],
)
def test_some_warps_wait(launch: str) -> None:
    config = parse_launch(launch)
    bound = bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))
    assert list_differences(bound, ExecutionOptions()) == []
    execution = execute_native(bound, ExecutionOptions())
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}


def test_what_the_halves_store() -> None:
    config = parse_launch("exchange<<<2, 64>>>(i32[64], i32[64]=perm(7), rounds=4)")
    bound = bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))
    words = np.random.default_rng(7).permutation(64)[:32]
    expected = np.zeros(32, np.int32)
    for k in range(4):
        expected[(words + k) % 32] = k
    assert np.array_equal(execute_native(bound, ExecutionOptions()).read_buffer(0).view(np.int32), np.tile(expected, 2))


def test_who_waits_alone_is_described() -> None:
    config = parse_launch("alone<<<1, 96>>>(i32[96])")
    bound = bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))
    with pytest.raises(OccurredError):
        execute_native(bound, ExecutionOptions())
    assert len(execute(bound, ExecutionOptions()).hangs) == 1
