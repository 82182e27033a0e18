"""Slow paths of quotients decide no count of memory: neither how sure counts are, nor which blocks are alike."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.notation import parse_launch
from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.program import decode
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    import numpy.typing as npt

    from sectorwise.binding import BoundLaunch

SOURCE = r"""
extern "C" __global__ void softmax(const float* __restrict__ in, float* __restrict__ out, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  const float* r = in + (size_t)blockIdx.x * n;
  float m = -1e30f, z = 0;
  for (int q = t; q < n; q += 64) m = fmaxf(m, r[q]);
  s[t] = m;
  __syncthreads();
  for (int d = 32; d; d >>= 1) { if (t < d) s[t] = fmaxf(s[t], s[t + d]); __syncthreads(); }
  m = s[0];
  __syncthreads();
  for (int q = t; q < n; q += 64) z += __expf(r[q] - m);
  s[t] = z;
  __syncthreads();
  for (int d = 32; d; d >>= 1) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  z = s[0];
  for (int q = t; q < n; q += 64) out[(size_t)blockIdx.x * n + q] = __expf(r[q] - m) / z;
}
extern "C" __global__ void roots(const float* __restrict__ in, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  out[i] = sqrtf(x) + 1 / (x + 1) + in[i ^ 1] / x;
}
extern "C" __global__ void ratio(const float* __restrict__ in, float* __restrict__ out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i ^ 1] / in[i];
}
extern "C" __global__ void scaled(const float* __restrict__ in, float* __restrict__ out, float b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] / b;
}
extern "C" __global__ void picked(const float* __restrict__ in, float* __restrict__ out, float b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float q = in[i] / b;
  if (q > 0.5f) out[i] = q;
}
extern "C" __global__ void placed(const float* __restrict__ in, float* __restrict__ out, float b) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[(int)(__expf(in[i]) / b) + 32 * blockIdx.x] = 1;
}
"""


def _bind(launch: str, values: npt.NDArray[np.float32] | None = None) -> BoundLaunch:
    config = parse_launch(launch)
    if values is not None:
        given = BufferArgument("f32", values.size, Contents("array", array=values))
        config = replace(config, arguments=(given, *config.arguments[1:]))
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


@pytest.mark.parametrize("contents", ["noise", "uniform(3)"])
@pytest.mark.parametrize(
    "launch",
    ["softmax<<<40, 64>>>(f32[8000]={}, f32[8000], n=200)", "roots<<<40, 64>>>(f32[2560]={}, f32[2560])"],
    ids=["softmax", "roots"],
)
def test_quotients_of_what_is_loaded_leave_blocks_alike(launch: str, contents: str) -> None:
    bound = _bind(launch.format(contents))
    assert len(find_flow(decode(bound.kernel)).detours) >= 1
    execution = execute_native(bound, ExecutionOptions(sample_above=0))
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert execution.sampling is None
    assert list_differences(bound) == []


@pytest.mark.parametrize("strange", [0, 1, 17, 39])
def test_counts_are_the_same_where_a_block_takes_the_slow_path(strange: int) -> None:
    values = np.linspace(0, 1, 40 * 200, dtype=np.float32).reshape(40, 200)
    values[strange, 5:9] = -100
    bound = _bind("softmax<<<40, 64>>>(f32[8000], f32[8000], n=200)", values.reshape(-1))
    execution = execute_native(bound, ExecutionOptions(sample_above=0))
    expected = numpy_engine.execute(bound, ExecutionOptions())
    assert execution.sites == expected.sites
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    slow = [each.index for each in bound.kernel.instructions if each.opcode == "CALL"]
    assert expected.issued[slow].sum() > 0
    # So few blocks each stand for themselves.
    assert np.array_equal(execution.issued, expected.issued)


@pytest.mark.parametrize("every", [2, 3, 15])
def test_blocks_that_take_the_slow_path_are_neither_left_out_nor_all_there_is(every: int) -> None:
    blocks = 3000
    values = np.full((blocks, 32), 3, np.float32)
    values[1::every] = 0
    bound = _bind("scaled<<<3000, 32>>>(f32[96000], f32[96000], b=1.5)", values.reshape(-1))
    # Short launches run whole.
    options = ExecutionOptions(sample_above=1)
    execution, whole = execute_native(bound, options), numpy_engine.execute(bound, ExecutionOptions())
    assert execution.sampling is None
    assert execution.sites == whole.sites
    (call,) = (each.index for each in bound.kernel.instructions if each.opcode == "CALL")
    assert whole.issued[call] == blocks // every
    assert execution.issued[call] == pytest.approx(blocks / every, abs=4 * blocks * (1 / every / 64) ** 0.5)


@pytest.mark.parametrize("sample_above", [ExecutionOptions().sample_above, None])
@pytest.mark.parametrize("strange", [21, 39])
def test_all_blocks_of_a_short_launch_run_where_any_may_take_the_slow_path(
    strange: int, sample_above: int | None
) -> None:
    values = np.ones((40, 64), np.float32)
    values[strange, 3] = 1e-41
    bound = _bind("ratio<<<40, 64>>>(f32[2560], f32[2560])", values.reshape(-1))
    assert list_differences(bound, ExecutionOptions(sample_above=sample_above)) == []


def test_blocks_that_all_take_the_slow_path_run_by_themselves() -> None:
    values = np.geomspace(1e-44, 1, 40 * 64, dtype=np.float32).reshape(40, 64)[::-1].T.reshape(-1).copy()
    bound = _bind("roots<<<40, 64>>>(f32[2560], f32[2560])", values)
    assert list_differences(bound) == []


def test_what_hangs_on_the_quotient_itself_is_doubtful_still() -> None:
    for launch in (
        "picked<<<20, 32>>>(f32[640]=noise, f32[640], b=1.5)",
        "placed<<<20, 32>>>(f32[640]=noise, f32[700], b=1.5)",
    ):
        bound = _bind(launch)
        assert len(find_flow(decode(bound.kernel)).detours) == 1, launch
        assert list_differences(bound, assumes=True) == [], launch
        last = execute_native(bound, ExecutionOptions(), assumes=True).sites[-1]
        assert last.certainty is Certainty.ASSUMED, launch
