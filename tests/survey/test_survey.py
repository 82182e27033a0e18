"""Every memory instruction of a kernel is analysed, said to be unknown, or was not issued: none is lost."""

from __future__ import annotations

import pytest

from tests.machine.launching import compile_kernels
from tests.measured.rows import FOLDER
from tools.survey.analyse import Row, survey_cubin, survey_kernel

MIXED = r"""
__global__ void guessed(const float* in, float* out, const int* at, int n) {
  __shared__ float tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  tile[threadIdx.x % 256] = in[i];
  __syncthreads();
  out[i] = tile[(threadIdx.x + 1) % 256] + in[at[i]];
  if (n < 0) out[i + 1] = in[i + 1];                    // never
  if (clock() % 2) atomicAdd(out + 1, 1.0f);            // who knows
}
__global__ void wanders(const float* in, float* out, long long count, long long pitch) {
  for (long long k = threadIdx.x; k < count; k += blockDim.x) out[k] = in[k * pitch % 64];
}
__global__ void drawn(cudaTextureObject_t texture, float* out) {
  out[threadIdx.x] = tex2D<float>(texture, 0.5f, 0.5f);
}
"""


@pytest.mark.parametrize("family", ["transpose", "generic", "local_memory", "matrix_load", "atomics_shared"])
def test_no_memory_instruction_is_lost(family: str) -> None:
    rows = survey_cubin((FOLDER / f"{family}.sm_90.cubin").read_bytes(), family, "sm_90")
    assert rows
    for row in rows:
        assert row["outcome"] == "ok", row
        assert row["memory"] == row["analysed"] + row["unknown"] + row["not_issued"]  # type: ignore[operator]
        assert row["unknown_opcodes"] == ()


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_guessed_launches_execute_most_of_a_kernel(target: str) -> None:
    rows = {row.kernel.split("(")[0].split()[-1]: row for row in _survey_all(target)}
    guessed, wanders, drawn = (rows[name] for name in ("guessed", "wanders", "drawn"))
    assert (guessed.outcome, guessed.unknown, guessed.faults) == ("ok", 0, 0)
    assert guessed.executed_pct >= 60
    assert 0 < guessed.not_issued < guessed.analysed
    assert (wanders.outcome, wanders.faults, wanders.unknown) == ("ok", 0, 0)
    assert (drawn.outcome, drawn.analysed, drawn.unknown, drawn.not_issued) == ("ok", 1, 1, 0)


def _survey_all(target: str) -> list[Row]:
    return [survey_kernel(kernel, "test.cu", target) for kernel in compile_kernels(MIXED, target).values()]
