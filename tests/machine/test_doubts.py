from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Certainty, Site
from tests.machine.launching import Run, find_line, run

SOURCE = r"""
extern "C" __global__ void softmax(const float* in, float* out, int n) {
  __shared__ float part[8];
  const float* row = in + blockIdx.x * n;
  float most = -1e30f, sum = 0;
  for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, row[i]);
  for (int k = 16; k; k /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, k));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = most;
  __syncthreads();
  for (int k = 0; k < 8; ++k) most = fmaxf(most, part[k]);
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += 256) sum += __expf(row[i] - most);
  for (int k = 16; k; k /= 2) sum += __shfl_xor_sync(~0u, sum, k);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int k = 0; k < 8; ++k) sum += part[k];
  for (int i = threadIdx.x; i < n; i += 256) out[blockIdx.x * n + i] = __expf(row[i] - most) / sum;   // the result
}
extern "C" __global__ void clamped(const float* in, int* out) {
  float v = __sinf(in[threadIdx.x]);
  int at = threadIdx.x;
  if (v > 0.5f) {
    at = (int)in[threadIdx.x + 32];                   // by a sine
    if (v > 0.7f) at += (int)in[threadIdx.x * 2];        // by a sine again
    at &= 31;
  }
  __syncwarp();
  out[threadIdx.x + 32] = 1;                          // whatever the sine
  out[at] = 1;                                        // placed by the sine
}
extern "C" __global__ void iterated(const float* in, float* out) {
  float v = in[threadIdx.x];
  int n = 0;
  while (v > 0.1f) { v = __sinf(v) * in[n + 32]; ++n; }   // as often as it takes
  out[threadIdx.x] = v;                               // once
  out[threadIdx.x + 64] = in[n];                      // placed by how often
}
extern "C" __global__ void left(const float* in, float* out) {
  if (__sinf(in[threadIdx.x]) > 0.5f) return;
  out[threadIdx.x] = 1;                               // by those that stay
}
extern "C" __global__ void kept(const float* in, float* out) {
  __shared__ int at[32];
  at[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (__sinf(in[threadIdx.x]) > 0.5f) { at[threadIdx.x ^ 1] = 0; __syncwarp(__activemask()); }
  __syncthreads();
  out[at[threadIdx.x]] = 1;                           // placed by what may have been kept
}
extern "C" __global__ void told(const float* in, float* out) {
  __shared__ int at;
  if (threadIdx.x / 32 == 0) {
    if (__sinf(in[0]) > 0.5f) return;
    at = (int)in[5];
    __syncthreads();
  } else {
    __syncthreads();
    out[at] = 1;                                      // placed by what another warp told
  }
}
extern "C" __global__ void chosen(const float* in, float* out) {
  float v;
  switch ((int)(__expf(in[threadIdx.x]) * 2) & 7) {
    case 0: v = in[40]; break;
    case 1: v = in[33] * in[34]; break;
    case 2: v = in[35] - 4; break;
    case 3: v = in[36] * in[37] + in[1]; break;       // a case
    case 4: v = sqrtf(in[38]); break;
    case 5: v = in[39] / 3; break;
    case 6: v = in[2] + in[3] + in[4]; break;
    default: v = 9;
  }
  out[threadIdx.x] = v;                               // after the cases
}
extern "C" __global__ void ordinary(const float* in, double* out, float by, double by64) {
  float v = in[threadIdx.x] / by + 1.0f / in[threadIdx.x + 1] + sqrtf(in[threadIdx.x + 2]);
  double w = v / by64 + sqrt((double)v) + 1.0 / v;
  out[threadIdx.x] = w;
  out[(int)w + 64] = 1;                               // placed by quotients
}
"""


def _sites(done: Run, mark: str) -> list[Site]:
    found = done.sites_at(find_line(SOURCE, mark))
    assert found
    return found


def _certainties(done: Run, mark: str) -> set[Certainty]:
    return {site.certainty for site in _sites(done, mark)}


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_quotient_of_inexact_sums_leaves_counts_exact(target: str) -> None:
    done = run(SOURCE, "softmax<<<4, 256>>>(f32[4096]=uniform(3), f32[4096], 1024)", target=target)
    assert {site.certainty for site in done.execution.sites} == {Certainty.EXACT}
    given = done.given(0).reshape(4, 1024).astype(np.float64)
    powers = np.exp(given - given.max(axis=1, keepdims=True))
    expected = (powers / powers.sum(axis=1, keepdims=True)).reshape(-1)
    np.testing.assert_allclose(done.output(1, np.float32), expected, rtol=1e-5)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_rounded_quotients_and_roots_are_exact(target: str) -> None:
    done = run(SOURCE, "ordinary<<<1, 32>>>(f32[64]=uniform(5), f64[256], 3.0, 0.7)", target=target)
    assert {site.certainty for site in done.execution.sites} == {Certainty.EXACT}
    assert done.execution.limitations == ()


def test_doubt_ends_where_the_lanes_meet_but_not_in_what_they_wrote() -> None:
    done = run(SOURCE, "clamped<<<1, 32>>>(f32[64]=arange, i32[64])")
    assert _certainties(done, "// by a sine") == {Certainty.ASSUMED}
    assert _certainties(done, "// by a sine again") == {Certainty.ASSUMED}
    assert _certainties(done, "// whatever the sine") == {Certainty.EXACT}
    assert _certainties(done, "// placed by the sine") == {Certainty.ASSUMED}


def test_trips_of_a_loop_are_doubtful_and_what_follows_is_not() -> None:
    done = run(SOURCE, "iterated<<<2, 32>>>(f32[128]=uniform(1), f32[128])")
    assert _certainties(done, "// as often as it takes") == {Certainty.ASSUMED}
    (after,) = _sites(done, "// once")
    assert (after.certainty, after.executed, after.lanes) == (Certainty.EXACT, 2, 64)
    loads = [site for site in _sites(done, "// placed by how often") if site.access.operation == "load"]
    assert [site.certainty for site in loads] == [Certainty.ASSUMED]


def test_doubt_about_who_has_left_does_not_end() -> None:
    done = run(SOURCE, "left<<<1, 32>>>(f32[32]=arange, f32[32])")
    assert _certainties(done, "// by those that stay") == {Certainty.ASSUMED}


def test_doubt_goes_through_memory() -> None:
    done = run(SOURCE, "kept<<<1, 32>>>(f32[32]=arange, f32[32])")
    assert _certainties(done, "// placed by what may have been kept") == {Certainty.ASSUMED}


def test_switch_on_an_inexact_value() -> None:
    done = run(SOURCE, "chosen<<<1, 32>>>(f32[64]=uniform(2), f32[32])")
    assert _certainties(done, "// a case") == {Certainty.ASSUMED}
    assert _certainties(done, "// after the cases") == {Certainty.EXACT}


def test_what_doubtful_warps_store_is_doubtful_for_others() -> None:
    done = run(SOURCE, "told<<<1, 64>>>(f32[64]=arange, f32[64])")
    stores = [site for site in _sites(done, "// placed by what another warp told") if site.access.operation == "store"]
    assert [site.certainty for site in stores] == [Certainty.ASSUMED]
