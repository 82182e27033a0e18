from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from sectorwise.binary.cubin import read_cubin
from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.errors import StepLimitError
from sectorwise.launch.config import BufferArgument, Contents, LaunchConfig
from sectorwise.launch.contents import materialise
from sectorwise.launch.files import read_launch_file
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Engine, ExecutionOptions, FaultKind
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native_engine import execute_native
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences
from tests.measured.rows import FOLDER

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch

DEVICES = {"sm_80": "a100-80-sxm", "sm_90": "h200", "sm_120": "rtx5090"}

SOURCE = r"""
extern "C" __global__ void diverge(int* out, const int* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int x = in[i], s = 0;
  while (x != 1 && s < 40) {
    x = (x & 1) ? 3 * x + 1 : x / 2; s++;
    if (s == 17) continue;
    if (x == 52) break;
    out[i] += s;
  }
  switch (x & 3) {
    case 0: s += in[(i * 7) % n]; break;
    case 1: s -= in[(i * 3) % n]; break;
    case 2: out[i] = 5; return;
    default: s ^= 77;
  }
  __syncwarp();
  out[i] = s;
}
__device__ __noinline__ int fibonacci(int k, const int* in) {
  return k < 2 ? in[k] : fibonacci(k - 1, in) + fibonacci(k - 2, in);
}
extern "C" __global__ void recurse(int* out, const int* in) { out[threadIdx.x] = fibonacci(threadIdx.x % 7, in); }
extern "C" __global__ void locals(int* out, const int* in, int n) {
  int a[16], i = threadIdx.x + blockIdx.x * blockDim.x, s = 0;
  for (int k = 0; k < 16; k++) a[k] = in[(i * k) % n];
  for (int k = 0; k < 16; k++) s += a[(s + k + i) & 15];
  out[i] = s;
}
extern "C" __global__ void warps(int* out, const int* in) {
  int i = threadIdx.x, v = in[i];
  if (i % 3) {
    v += __shfl_xor_sync(__activemask(), v, 2);
    v ^= __ballot_sync(__activemask(), v & 1);
  }
  v += __shfl_up_sync(~0u, v, 3);
  v = __reduce_add_sync(~0u, v & 0xff) + v;
  if (__any_sync(~0u, v == 4)) v = -v;
  out[i] = v + __match_any_sync(~0u, v & 3);
}
extern "C" __global__ void through_shared(int* out, const int* in) {
  __shared__ int index[256]; __shared__ unsigned char octets[256];
  int t = threadIdx.x;
  index[t] = in[t] & 255; octets[t] = t * 7;
  __syncthreads();
  int k = index[(t * 5) & 255];
  __syncthreads();
  out[blockIdx.x * 256 + t] = in[k] + octets[k] + index[octets[k]];
}
extern "C" __global__ void widths(double* o, const double* a, const float4* b, const uint2* c, short* h) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 f = b[i]; uint2 u = c[i];
  o[i] = a[i] * f.x + f.y * u.x + __longlong_as_double(((long long)u.y << 32));
  h[i] = (short)(i * 3);
  ((char*)h)[2 * i] ^= 1;
}
extern "C" __global__ void order(int* counter, int* out) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  out[i] = atomicAdd(counter, 1 + (i & 1));
  atomicMax(&counter[1 + (i & 3)], i); atomicMin((unsigned*)&counter[5], (unsigned)i);
  atomicCAS(&counter[8 + (i & 1)], 0, i); atomicExch(&counter[12], i); atomicInc((unsigned*)&counter[13], 10);
  atomicAnd(&counter[14], i); atomicXor(&counter[15], i); atomicAdd((unsigned long long*)&counter[16], 1ull << i % 60);
}
extern "C" __global__ void generic(int* g) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = t;
  __syncthreads();
  int* p = (t & 1) ? g + t : s + t;
  *p += 3;
  __syncthreads();
  g[t + 256] = s[(t * 3) & 255];
}
extern "C" __global__ void divide(int* out, const int* in, int d, unsigned e) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int q = in[i] / d, r = in[i] % d;
  unsigned u = (unsigned)in[i] / e;
  long long w = ((long long)in[i] << 20) / (d + 1);
  atomicAdd(&out[(q * 3 + r + i) & 1023], (int)(u + w));
  out[1024 + i] = (int)w;
}
extern "C" __global__ void leave(int* out, const int* in) {
  int t = threadIdx.x;
  if (t % 5 == 0) return;
  __syncthreads();
  if (in[t] & 1) return;
  __syncthreads();
  out[t] = in[(t * 9) & 255];
}
__constant__ int table[64] = {3, 1, 4, 1, 5, 9, 2, 6};
extern "C" __global__ void constants(int* out, const int* in) {
  int t = threadIdx.x;
  out[t] = in[table[t & 7] + table[in[t] & 63]];
}
extern "C" __global__ void outside(int* out, const int* in, int n) { out[threadIdx.x] = in[threadIdx.x * n]; }
extern "C" __global__ void forever(int* out) { while (out[0] >= 0) out[threadIdx.x + 1] += 1; }
"""

LAUNCHES = [
    "diverge<<<9, 128>>>(i32[1000], i32[1000]=perm(3), n=1000)",
    "recurse<<<1, 64>>>(i32[64], i32[64]=arange)",
    "locals<<<2, 96>>>(i32[192], i32[192]=perm(1), n=192)",
    "warps<<<1, 256>>>(i32[256], i32[256]=perm(2))",
    "through_shared<<<3, 256>>>(i32[768], i32[256]=perm(5))",
    "widths<<<4, 128>>>(f64[512], f64[512]=uniform(1), f32[2048]=uniform(2), i32[1024]=perm(4), i16[512])",
    "order<<<3, 96>>>(i32[32], i32[288])",
    "generic<<<1, 256>>>(i32[512]=arange)",
    "divide<<<4, 256>>>(i32[2048], i32[1024]=perm(9), d=7, e=13)",
    "leave<<<2, 256>>>(i32[256], i32[256]=perm(8))",
    "constants<<<1, 128>>>(i32[128], i32[128]=perm(8))",
]

ROWS = [
    "async_copy:k_ac_ca8_meven",
    "atomics_global:k_atg_dadd_lane",
    "atomics_shared:k_ats_exch_two",
    "cp_async:k_cpa_ca8_swz",
    "gemm:k_mm_tile16",
    "gemv:k_gemv_thread_per_row",
    "generic:k_gen_mixed",
    "ldmatrix:k_ldm_x4t_pitch128",
    "local_memory:k_lm_u8_lane",
    "reduction:k_histogram",
    "shared_masked:k_shm_f4_even_pack",
    "shared_random:k_sr_f4_7",
    "struct_layout:k_aos12_one",
    "transpose:k_tr_pad",
]


@pytest.mark.parametrize("target", DEVICES)
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda text: text.partition("<")[0])
def test_compiled_kernels_run_alike_in_both_engines(launch: str, target: str) -> None:
    config = parse_launch(launch)
    kernel = compile_kernels(SOURCE, target)[config.kernel]
    assert list_differences(bind(kernel, config, load_device(DEVICES[target]))) == []


def _bind_row(row: str) -> BoundLaunch:
    family, _, name = row.partition(":")
    cubin = read_cubin((FOLDER / f"{family}.sm_90.cubin").read_bytes(), family)
    kernels = {kernel.name: kernel for kernel in cubin.kernels}
    config = next(case for case in read_launch_file(FOLDER / f"{family}.json").cases if case.case == name)
    return bind(kernels[config.kernel], config, load_device("h200"))


@pytest.mark.parametrize("row", ROWS)
def test_measured_kernels_run_alike_in_both_engines(row: str) -> None:
    assert list_differences(_bind_row(row)) == []


def _bind_source(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


def test_a_wrong_address_is_told_by_the_reference_engine() -> None:
    bound = _bind_source("outside<<<1, 64>>>(i32[64], i32[64], n=2)")
    with pytest.raises(UnsupportedError):
        execute(bound, ExecutionOptions(engine=Engine.NATIVE))
    (fault,) = execute(bound, ExecutionOptions()).faults
    assert (fault.kind, fault.warp, fault.lane, fault.occurrences) == (FaultKind.OUT_OF_BOUNDS, 1, 0, 32)


@pytest.mark.parametrize("engine", [Engine.NATIVE, Engine.REFERENCE])
def test_an_endless_kernel_ends_at_the_step_limit(engine: Engine) -> None:
    bound = _bind_source("forever<<<1, 32>>>(i32[64])")
    with pytest.raises(StepLimitError, match=r"forever: a warp ran more than 20,000 instructions"):
        execute(bound, ExecutionOptions(step_limit=20_000, engine=engine))


def test_progress_counts_blocks() -> None:
    seen: list[tuple[int, int]] = []
    execute_native(_bind_row("gemm:k_mm_tile16"), ExecutionOptions(), lambda done, total: seen.append((done, total)))
    assert seen[-1] == (256, 256)
    assert seen == sorted(seen)


def test_values_that_decide_nothing_are_computed_when_they_are_asked_for() -> None:
    bound = _bind_row("gemm:k_mm_tile16")
    execution = execute_native(bound, ExecutionOptions())
    a, b = (materialise(bound.allocations[number].buffer).reshape(256, 256).astype(np.float64) for number in (0, 1))
    product = execution.read_buffer(2).view(np.float32).reshape(256, 256)
    np.testing.assert_allclose(product, a @ b, rtol=1e-5)


@pytest.mark.parametrize("engine", [Engine.NATIVE, Engine.REFERENCE])
def test_kernels_write_to_a_copy_of_what_was_given(engine: Engine) -> None:
    given = np.arange(256, dtype=np.int32)
    buffers = [BufferArgument("i32", 256, Contents("array", array=array)) for array in (given, given.copy())]
    launch = LaunchConfig("leave", (1, 1, 1), (256, 1, 1), 0, tuple(buffers))
    bound = bind(compile_kernels(SOURCE)["leave"], launch, load_device("h200"))
    written = execute(bound, ExecutionOptions(engine=engine)).read_buffer(0).view(np.int32)
    assert given.tolist() == list(range(256))
    assert written.tolist() != given.tolist()


def test_a_large_launch_runs_although_inexact_values_decide_and_says_so() -> None:
    bound = _bind_row("atomics_global:k_atg_faddv_row")
    with pytest.raises(UnsupportedError, match="inexact, or on an order"):
        execute_native(bound, ExecutionOptions())
    certain = {site.certainty for site in execute_native(bound, ExecutionOptions(), assumes=True).sites}
    assert certain == {site.certainty for site in execute(bound, ExecutionOptions(engine=Engine.REFERENCE)).sites}


VOTES = r"""
extern "C" __global__ void votes(int* out, int* moved, const int* in) {
  __shared__ int kept[96];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, v = in[i];
  int some = __syncthreads_or(v == 7), all = __syncthreads_and(v >= 0), count = __syncthreads_count(v & 1);
  for (int k = 0; k < count % 5 + 1; k++) {
    kept[(t + k) % 96] = v;
    __syncthreads();
    int other = kept[t];
    count += __syncthreads_count(other % 3 == k % 3);
  }
  if (count & 4) count += 100 * __syncthreads_count(v & 8); else count -= 100 * __syncthreads_count(v & 16);
  out[i] = count * 4 + some * 2 + all;
  if (__syncthreads_or(v % 97 == 0)) moved[96 * blockIdx.x + (t + count * count) % 96] = t;
  if (t >= 64) return;
  out[i] += __syncthreads_count(t & 1);
}
"""


def test_what_blocks_vote_is_read_alike_by_both_engines() -> None:
    launch = parse_launch("votes<<<70, 96>>>(i32[6720], i32[6720], i32[6720]=perm(3))")
    bound = bind(compile_kernels(VOTES)[launch.kernel], launch, load_device("h200"))
    assert any(step.text.startswith("BAR.RED") for step in bound.kernel.instructions)
    assert list_differences(bound) == []
