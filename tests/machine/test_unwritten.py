"""Shared and local memory begin as anything: what hangs on a read of what nothing has written is assumed, and said."""

from __future__ import annotations

import pytest

from sectorwise.binding import BoundLaunch, bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.numpy_engine import execute
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

SOURCE = r"""
extern "C" __global__ void bins_not_cleared(const int* in, int* out) {
  __shared__ int bins[32];
  atomicAdd(bins + (in[threadIdx.x] & 31), 1);
  __syncthreads();
  if (bins[threadIdx.x & 31] > 2) out[threadIdx.x] = 1;
}
extern "C" __global__ void bins_cleared(const int* in, int* out) {
  __shared__ int bins[32];
  if (threadIdx.x < 32) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(bins + (in[threadIdx.x] & 31), 1);
  __syncthreads();
  if (bins[threadIdx.x & 31] > 2) out[threadIdx.x] = 1;
}
extern "C" __global__ void half_filled(const int* in, int* out) {
  __shared__ int at[64];
  if (threadIdx.x < 32) at[threadIdx.x] = in[threadIdx.x] & 63;
  __syncthreads();
  out[at[threadIdx.x]] = 1;
}
extern "C" __global__ void filled(const int* in, int* out) {
  __shared__ int at[64];
  at[threadIdx.x] = in[threadIdx.x] & 63;
  __syncthreads();
  out[at[63 - threadIdx.x]] = 1;
}
extern "C" __global__ void odd_bytes(const int* in, int* out) {
  __shared__ unsigned char seen[64];
  if (threadIdx.x & 1) seen[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[seen[threadIdx.x]] = 1;
}
extern "C" __global__ void own_bytes(const int* in, int* out) {
  __shared__ unsigned char seen[64];
  __shared__ unsigned short twice[64];
  if (threadIdx.x & 1) { seen[threadIdx.x] = threadIdx.x; twice[threadIdx.x] = 2 * threadIdx.x; }
  __syncthreads();
  out[(seen[threadIdx.x | 1] + twice[threadIdx.x | 1]) & 63] = 1;
}
extern "C" __global__ void wide_and_narrow(const int* in, int* out) {
  __shared__ int4 kept[16];
  if (threadIdx.x < 16) kept[threadIdx.x] = make_int4(1, 2, 3, in[threadIdx.x] & 15);
  __syncthreads();
  out[((int*)kept)[threadIdx.x] + ((short*)kept)[2 * threadIdx.x]] = 1;
}
extern "C" __global__ void local_not_written(const int* in, int* out) {
  int own[16];
  for (int i = 0; i < (in[threadIdx.x] & 7); ++i) own[in[i] & 15] = i;
  out[own[in[threadIdx.x + 1] & 15]] = 1;
}
extern "C" __global__ void local_written(const int* in, int* out) {
  int own[16];
  for (int i = 0; i < 16; ++i) own[i ^ (in[0] & 15)] = i;
  out[own[in[threadIdx.x + 1] & 15]] = 1;
}
extern "C" __global__ void by_pointer(const int* in, int* out) {
  __shared__ int at[64];
  int* p = in[0] < 0 ? out : at;
  if (threadIdx.x < 32) p[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[p[threadIdx.x]] = 1;
}
extern "C" __global__ void exchanged(const int* in, int* out) {
  __shared__ int at[64];
  atomicExch(at + threadIdx.x, (int)threadIdx.x);
  __syncthreads();
  out[at[threadIdx.x]] = 1;
}
extern "C" __global__ void copied(const int* in, int* out) {
  __shared__ int at[64];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
               :: "r"((unsigned)__cvta_generic_to_shared(at + threadIdx.x)), "l"(in + threadIdx.x));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[at[63 - threadIdx.x] & 63] = 1;
}
extern "C" __global__ void turns_taken(const int* in, int* out) {
  __shared__ int turns[64];
  int turn = atomicAdd(turns + threadIdx.x, in[threadIdx.x]);
  out[turn & 63] = 1;
}
extern "C" __global__ void turns_counted(const int* in, int* out) {
  __shared__ int turns[64];
  atomicAdd(turns + threadIdx.x, in[threadIdx.x]);           // nobody looks
  out[threadIdx.x] = 1;
}
extern "C" __global__ void matrix_not_written(const int* in, int* out) {
  __shared__ __align__(16) int tile[256];
  if (threadIdx.x < 16) tile[threadIdx.x] = in[threadIdx.x] & 31;
  __syncthreads();
  unsigned row = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x % 32 * 4), at;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(at) : "r"(row));
  out[at & 63] = 1;
}
extern "C" __global__ void matrix_written(const int* in, int* out) {
  __shared__ __align__(16) int tile[256];
  if (threadIdx.x < 32) tile[threadIdx.x] = in[threadIdx.x] & 31;
  __syncthreads();
  unsigned row = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x % 32 * 4), at;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(at) : "r"(row));
  out[at & 63] = 1;
}
extern "C" __global__ void only_written_on(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x + 64];
}
"""

SAID = "reads shared or local memory that nothing has written"
ARGUMENTS = "i32[128]=uniform(3, 64), i32[128]"
UNSURE = ("bins_not_cleared", "half_filled", "odd_bytes", "local_not_written", "by_pointer", "matrix_not_written")
SURE = (
    "bins_cleared",
    "filled",
    "own_bytes",
    "wide_and_narrow",
    "local_written",
    "copied",
    "turns_counted",
    "matrix_written",
)


def _bind(kernel: str, arguments: str = ARGUMENTS) -> BoundLaunch:
    config = parse_launch(f"{kernel}<<<2, 64>>>({arguments})")
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


@pytest.mark.parametrize("kernel", UNSURE)
def test_what_hangs_on_memory_that_nothing_wrote_is_assumed(kernel: str) -> None:
    execution = execute(_bind(kernel), ExecutionOptions())
    stores = [site for site in execution.sites if site.access.operation == "store" and site.access.space == "global"]
    generic = [site for site in execution.sites if site.access.space == "generic" and site.access.operation == "store"]
    assert Certainty.ASSUMED in {site.certainty for site in (*stores, *generic)}
    assert [SAID in each.because for each in execution.limitations] == [True]


@pytest.mark.parametrize("kernel", UNSURE)
def test_machine_code_sees_it_too(kernel: str) -> None:
    bound = _bind(kernel)
    with pytest.raises(UnsupportedError, match="may depend on what CUDA leaves undefined"):
        execute_native(bound, ExecutionOptions())
    assumed, expected = execute_native(bound, ExecutionOptions(), assumes=True), execute(bound, ExecutionOptions())
    assert assumed.limitations == expected.limitations
    for mine, its in zip(assumed.sites, expected.sites, strict=True):
        assert (mine.executed, mine.sectors, mine.wavefronts) == (its.executed, its.sectors, its.wavefronts)
        # It says so of every instruction that may hang on it, and of none less.
        assert mine.certainty in (Certainty.ASSUMED, its.certainty)


@pytest.mark.parametrize("kernel", SURE)
def test_what_was_written_is_sure(kernel: str) -> None:
    bound = _bind(kernel)
    execution = execute(bound, ExecutionOptions())
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert execution.limitations == ()
    assert list_differences(bound) == []


def test_what_atomics_find_in_memory_that_nothing_wrote_is_said() -> None:
    bound = _bind("turns_taken")
    execution = execute(bound, ExecutionOptions())
    assert [site.certainty for site in execution.sites if site.access.operation == "store"] == [
        Certainty.SCHEDULE_DEPENDENT
    ]
    (said,) = execution.limitations
    assert SAID in said.because
    assert "ATOMS" in bound.kernel.instructions[said.instruction].text
    assumed = execute_native(bound, ExecutionOptions(), assumes=True)
    assert assumed.limitations == execution.limitations


def test_values_that_are_only_written_on_leave_counts_exact() -> None:
    bound = _bind("only_written_on", "f32[64], f32[64]")
    execution = execute(bound, ExecutionOptions())
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert execution.limitations == ()
    assert list_differences(bound) == []


def test_an_exchange_writes() -> None:
    execution = execute(_bind("exchanged"), ExecutionOptions())
    assert not any(SAID in each.because for each in execution.limitations)
