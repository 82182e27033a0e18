from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Waiting
from tests.machine.launching import find_line, run

SOURCE = r"""
extern "C" __global__ void exited(const int* in, int* out) {
  __shared__ int values[256];
  if (threadIdx.x >= 200) return;                  // the last warps leave, one of them in part
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 200 + threadIdx.x] = values[199 - threadIdx.x];
}
extern "C" __global__ void counted(const int* in, int* out) {
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  int some = __syncthreads_count(v > 100), any = __syncthreads_or(v == 7), all = __syncthreads_and(v >= 0);
  out[blockIdx.x * blockDim.x + threadIdx.x] = some * 4 + (any != 0) * 2 + (all != 0);
}
extern "C" __global__ void pipeline(const int* in, int* out) {
  __shared__ int slot[64];
  int lane = threadIdx.x % 64;
  for (int k = 0; k < 5; ++k) {
    if (threadIdx.x < 64) {
      if (k) asm volatile("bar.sync 2, 128;" ::: "memory");
      slot[lane] = in[k * 64 + lane];
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      out[k * 64 + lane] = slot[lane ^ 1];
      if (k < 4) asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
  }
}
extern "C" __global__ void halves(int* out) {
  __shared__ int order[4];
  int half = threadIdx.x / 64;
  if (half == 0) {
    if (threadIdx.x == 0) order[0] = 1;
    asm volatile("bar.sync 1, 64;" ::: "memory");
    if (threadIdx.x == 63) out[0] = order[0];
  } else {
    if (threadIdx.x == 64) order[1] = 2;
    asm volatile("bar.sync 2, 64;" ::: "memory");
    if (threadIdx.x == 127) out[1] = order[1];
  }
}
extern "C" __global__ void hang(int* out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;");   // half of the block never comes
  out[threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_exited_threads_hold_nobody_up(target: str) -> None:
    done = run(SOURCE, "exited<<<3, 256>>>(i32[200]=perm(1), i32[600])", target=target)
    np.testing.assert_array_equal(done.output(1), np.tile(done.given(0)[::-1], 3))
    assert done.execution.limitations == ()


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("threads", [32, 96, 250])
def test_barriers_that_count(target: str, threads: int) -> None:
    done = run(SOURCE, f"counted<<<5, {threads}>>>(i32[{5 * threads}]=perm(2), i32[{5 * threads}])", target=target)
    given = done.given(0).reshape(5, threads)
    expected = (given > 100).sum(axis=1) * 4 + (given == 7).any(axis=1) * 2 + 1
    np.testing.assert_array_equal(done.output(1).reshape(5, threads), np.repeat(expected[:, None], threads, axis=1))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_named_barriers_hand_over_between_producers_and_consumers(target: str) -> None:
    done = run(SOURCE, "pipeline<<<1, 128>>>(i32[320]=perm(3), i32[320])", target=target)
    np.testing.assert_array_equal(done.output(1).reshape(-1, 2), done.given(0).reshape(-1, 2)[:, ::-1])


def test_halves_of_a_block_wait_apart() -> None:
    done = run(SOURCE, "halves<<<2, 128>>>(i32[2])")
    assert done.output(0).tolist() == [1, 2]
    assert done.execution.limitations == ()


def test_barrier_that_is_never_complete_is_said() -> None:
    done = run(SOURCE, "hang<<<2, 64>>>(i32[64])")
    (hang,) = done.execution.hangs
    location = done.bound.kernel.instructions[hang.instruction].location
    assert location is not None
    assert location.line == find_line(SOURCE, "// half of the block never comes")
    assert "2 warps wait here" in hang.message
    assert (hang.waiting, hang.is_certain, done.execution.limitations) == (Waiting.BLOCK_BARRIER, True, ())
    assert done.output(0).tolist() == [0] * 32 + [1] * 32
