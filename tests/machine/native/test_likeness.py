from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sectorwise.binding import bind
from sectorwise.counting.request import Operation
from sectorwise.device import load_device
from sectorwise.launch.config import BufferArgument, Contents
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.likeness import SAME, Extent, Likeness, find_alike, relate
from sectorwise.machine.native.alike import find_alike_registers
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.origins import find_reach
from sectorwise.machine.native.relevance import find_relevant
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.numpy_algebra import NumpyAlgebra
from sectorwise.machine.program import decode
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch

SOURCE = r"""
extern "C" __global__ void plain(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2;
}
extern "C" __global__ void odd_one(float* out, const float* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[blockIdx.x == 777 ? i * 2 : i] = in[i];
}
extern "C" __global__ void table(float* out, const int* index) { out[index[threadIdx.x] + blockIdx.x * 32] = 1; }
extern "C" __global__ void hashed(float* out) {
  unsigned b = blockIdx.x; b ^= b >> 7; b *= 0x9E3779B1u; b ^= b >> 13;
  out[(b & 1023) * 33 + threadIdx.x] = 1;
}
extern "C" __global__ void pitch33(float* out) { out[blockIdx.x * 33 + threadIdx.x] = 1; }
extern "C" __global__ void wraps(float* out, int big) {
  int i = blockIdx.x * big + threadIdx.x;
  out[(unsigned)i % 4096u] = 1;
}
extern "C" __global__ void overflows(float* out, int big) {
  int i = (int)(blockIdx.x * big) / 1048576;
  out[(i & 1023) * 32 + threadIdx.x] = 1;
}
extern "C" __global__ void trips(float* out) {
  for (int k = 0; k < blockIdx.x % 5 + blockIdx.y; k++) out[k * 64 + threadIdx.x] = k;
}
extern "C" __global__ void triangle(float* out, int n) {
  int row = blockIdx.y * 8 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  if (column <= row) out[row * n + column] = 1;
}
extern "C" __global__ void stencil(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, x = i % 1024, y = i / 1024;
  if (x > 0 && x < 1023 && y > 0 && y < n - 1) out[i] = in[i - 1] + in[i + 1] + in[i - 1024] + in[i + 1024];
}
extern "C" __global__ void guarded(float* out, const float* in, int n) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[blockIdx.x * 64 + t];
  __syncthreads();
  for (int d = 32; d; d /= 2) { if (t < d) s[t] += s[t + d]; __syncthreads(); }
  if (t == 0 && blockIdx.x < n) out[blockIdx.x] = s[0];
}
extern "C" __global__ void gemm(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    left[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0.f;
    right[threadIdx.y][threadIdx.x] = column < n && t + threadIdx.y < n ? b[(t + threadIdx.y) * n + column] : 0.f;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
}
extern "C" __global__ void from_absent_lanes(float* out, const float* in, int n) {
  int base = blockIdx.x * 32, lane = (threadIdx.x + 8) % 32;
  if (threadIdx.x >= 8) {
    for (int k = 0; k < n; k++) { base = base * 3 + 1; out[65536 + k] = in[k] * k; }
    if (n == 77) return;
  } else {
    int other;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xff;" : "=r"(other) : "r"(base), "r"(lane));
    base = other;
  }
  __syncwarp();
  if (threadIdx.x < 8) out[base & 0x7fff] = 1;
}
extern "C" __global__ void shuffled(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[__shfl_xor_sync(~0u, i, 5)] = 1;
}
extern "C" __global__ void swizzled(float* out, const float* in, int across, int group) {
  int id = blockIdx.x, width = group * across, first = id / width * group, by = first + id % width % group;
  int bx = id % width / group;
  if (bx % 3 == 1) return;
  out[(by * 8 + threadIdx.y) * 512 + bx * 32 + threadIdx.x] = in[by * 33 + bx + threadIdx.x];
}
extern "C" __global__ void copied(float* out, const float* in) {
  __shared__ float tile[256];
  const float* from = in + blockIdx.x * 2080 + threadIdx.x * 160;
  unsigned to = (unsigned)__cvta_generic_to_shared(tile + threadIdx.x);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" :: "r"(to), "l"(from));
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void by_table(float* out, const int* index) { out[index[blockIdx.x] + threadIdx.x] = 1; }
extern "C" __global__ void long_rows(float* out, const int* length, const float* in) {
  float sum = 0;
  for (int k = 0, n = length[blockIdx.x] % 7 * 5; k < n; k++) sum += in[k * 32 + threadIdx.x];
  out[blockIdx.x * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void ragged(float* out, const int* begins, const long long* which, const float* in) {
  long long row = which[blockIdx.x];
  float sum = 0;
  for (int k = begins[row]; k < begins[row + 1]; k++) sum += in[k * 33 + threadIdx.x];
  out[row * 32 + threadIdx.x] = sum;
}
extern "C" __global__ void pairs_of_rows(float* out, const int2* rows, int n) {
  if (blockIdx.x >= n) return;
  int2 pair = rows[blockIdx.x];
  if (pair.x & 4) out[pair.y % 64 * 33 + threadIdx.x] = 1;
}
extern "C" __global__ void either_buffer(float* out, const int* one, const int* other) {
  int row = (blockIdx.x % 3 ? one : other)[blockIdx.x];
  if (row & 1) out[row * 33 + threadIdx.x] = 1;
}
extern "C" __global__ void short_rows(float* out, const unsigned char* octets, const short* halves) {
  int row = octets[blockIdx.x] + halves[blockIdx.x];
  if (row & 1) out[(row & 127) * 33 + threadIdx.x] = 1;
}
extern "C" __global__ void decoded(float* out, int across) {
  int bx = blockIdx.x % across, by = blockIdx.x / across;
  out[(by * 8 + threadIdx.y) * 256 + bx * 32 + threadIdx.x] = 1;
}
extern "C" __global__ void chosen_pitch(float* out, int near, int far) {
  float f = blockIdx.x * 0.001f;
  int t = threadIdx.x * near;
  if (f * f > 0.5f) t = threadIdx.x * far;
  out[t] = 1;
  out[t + 5000] = 2;
}
extern "C" __global__ void chosen_bank(float* out, int near, int far) {
  __shared__ float tile[1024];
  float f = blockIdx.x * 0.001f;
  int t = threadIdx.x * near;
  if (f * f * f > 0.5f) t = threadIdx.x * far;
  tile[t] = f;
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = tile[t ^ 1];
}
extern "C" __global__ void last_of_a_row(float* out, int across) {
  int row = blockIdx.x / across, place = blockIdx.x % across;
  out[row * across * 32 + place * 32 + threadIdx.x + (place == across - 1)] = 1;
}
extern "C" __global__ void one_diagonal(float* out, int rows) {
  int i = (blockIdx.z * rows + blockIdx.y) * 32 + threadIdx.x;
  if ((blockIdx.y ^ blockIdx.z) == 5) i += 1;
  out[i] = 1;
}
"""

LAUNCHES = [
    "plain<<<100, 128>>>(f32[12700], f32[12700], n=12700)",
    "odd_one<<<1024, 32>>>(f32[65536], f32[65536])",
    "table<<<200, 32>>>(f32[8192], i32[32]=perm(3))",
    "hashed<<<512, 32>>>(f32[40000])",
    "pitch33<<<600, 32>>>(f32[20000])",
    "wraps<<<64, 32>>>(f32[4096], big=50000000)",
    "overflows<<<1024, 32>>>(f32[32768], big=4194304)",
    "trips<<<(40, 3), 32>>>(f32[1024])",
    "triangle<<<(8, 32), (32, 8)>>>(f32[65536], n=256)",
    "stencil<<<512, 128>>>(f32[65536], f32[65536], n=64)",
    "guarded<<<100, 64>>>(f32[100], f32[6400], n=90)",
    "gemm<<<(7, 7), (16, 16)>>>(f32[10000]=uniform(1), f32[10000]=uniform(2), f32[10000], n=100)",
    "decoded<<<256, (32, 8)>>>(f32[65536], across=8)",
    "long_rows<<<300, 32>>>(f32[9600], i32[300]=perm(4), f32[2000])",
    "ragged<<<90, 32>>>(f32[2900], i32[91]=arange, i64[90]=perm(5), f32[4000])",
    "pairs_of_rows<<<200, 32>>>(f32[2200], i32[320]=perm(6), n=160)",
    "either_buffer<<<120, 32>>>(f32[4000], i32[120]=perm(8), i32[120]=perm(9))",
    "short_rows<<<150, 32>>>(f32[4300], u8[150]=arange, i16[150]=perm(10))",
    "swizzled<<<(120, 2), (32, 8)>>>(f32[65536], f32[2000], across=15, group=3)",
    "copied<<<96, 64>>>(f32[6400], f32[220000])",
    "from_absent_lanes<<<64, 32>>>(f32[70000], f32[8], n=3)",
    "shuffled<<<100, 128>>>(f32[12800], n=12683)",
    "chosen_pitch<<<2100, 64>>>(f32[20000], near=1, far=2)",
    "chosen_bank<<<2100, 64>>>(f32[134400], near=1, far=8)",
    "last_of_a_row<<<2100, 32>>>(f32[70000], across=37)",
    "one_diagonal<<<(1, 60, 58), 32>>>(f32[112000], rows=60)",
]


@pytest.mark.parametrize("odd", [None, 41])
def test_one_odd_entry_of_a_table_that_blocks_read_is_seen(odd: int | None) -> None:
    entries = np.arange(64, dtype=np.int32) * 32
    if odd is not None:
        entries[odd] += 3
    config = parse_launch("by_table<<<64, 32>>>(f32[4096], i32[64])")
    arguments = (config.arguments[0], BufferArgument("i32", 64, Contents("array", array=entries)))
    bound = bind(compile_kernels(SOURCE)["by_table"], replace(config, arguments=arguments), load_device("h200"))
    assert list_differences(bound) == []
    (store,) = (
        site for site in execute_native(bound, ExecutionOptions()).sites if site.access.operation is Operation.STORE
    )
    assert store.sectors == 64 * 4 + (odd is not None)


def test_few_long_blocks_that_a_table_names_are_counted_to_the_last() -> None:
    count = 40_000
    lengths = np.where(np.arange(count) % 997 == 5, 4, 1).astype(np.int32)
    config = parse_launch(f"long_rows<<<{count}, 32>>>(f32[{32 * count}], i32[{count}], f32[1024])")
    arguments = (config.arguments[0], BufferArgument("i32", count, Contents("array", array=lengths)))
    changed = replace(config, arguments=(*arguments, config.arguments[2]))
    bound = bind(compile_kernels(SOURCE)["long_rows"], changed, load_device("h200"))
    execution = execute_native(bound, ExecutionOptions(sample_above=0))
    assert execution.sampling is None
    lines = {site.certainty for site in execution.sites}
    assert lines == {Certainty.EXACT}
    reads = [site for site in execution.sites if site.access.operation is Operation.LOAD]
    # A length for each block, then five or twenty rows of 32 floats.
    assert sum(site.executed for site in reads) == count + 5 * int(lengths.sum())


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda text: text.partition("<")[0])
def test_counts_by_likeness_are_those_of_whole_execution(launch: str) -> None:
    assert list_differences(_bind(launch)) == []


@pytest.mark.parametrize(
    ("launch", "strides"),
    [
        ("plain<<<100, 128>>>(f32[12700], f32[12700], n=12700)", (1, 0, 0)),
        ("pitch33<<<600, 32>>>(f32[20000])", (1, 0, 0)),
        ("hashed<<<512, 32>>>(f32[40000])", (1, 0, 0)),
        ("trips<<<(40, 3), 32>>>(f32[1024])", (1, 1, 0)),
        ("odd_one<<<1024, 32>>>(f32[65536], f32[65536])", None),
        ("stencil<<<512, 128>>>(f32[65536], f32[65536], n=64)", (32, 0, 0)),
        ("gemm<<<(7, 7), (16, 16)>>>(f32[10000], f32[10000], f32[10000], n=100)", (1, 1, 0)),
    ],
)
def test_blocks_are_compared_along_the_axes_on_which_counts_depend_linearly(
    launch: str, strides: tuple[int, int, int] | None
) -> None:
    bound = _bind(launch)
    flow = find_flow(decode(bound.kernel))
    reach = find_reach(flow, bound)
    alike = find_alike_registers(flow, frozenset(find_relevant(flow, reach)), bound, reach)
    assert (None if alike is None else alike.port.strides) == strides


WORDS = st.integers(0, 2**32 - 1)
STEPS = st.integers(-(2**31), 2**31 - 1) | st.integers(-512, 512)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(
        ["add", "subtract", "multiply", "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "invert"]
    ),
    WORDS,
    STEPS,
    st.integers(0, 40) | WORDS,
    st.integers(-5, 5),
)
def test_a_result_moves_by_its_form_where_its_conditions_hold(
    operation: str, value: int, step: int, other: int, steps: int
) -> None:
    operands = [Likeness(((0, step),) if step else SAME), Likeness(known=other)][: 1 if operation == "invert" else 2]
    likeness, conditions = relate(operation, operands, {})
    if likeness.spoiled:
        return
    here, there = value, value + step * steps
    if any(not 0 <= there < 2**32 for _ in conditions):
        return
    run = getattr(NumpyAlgebra(), operation)
    numbers = [np.full((1, 1), number & 0xFFFFFFFF, np.uint32) for number in (here, there, other)]
    with np.errstate(all="ignore"):
        rest = numbers[2:] if len(operands) > 1 else []
        results = [int(run(number, *rest)[0, 0]) for number in numbers[:2]]
    assert (results[0] + dict(likeness.form).get(0, 0) * steps - results[1]) % 2**32 == 0


def test_blocks_are_alike_as_far_as_every_extent_reaches() -> None:
    extents = [Extent(((0, 4),), 0, 40, 0, 100), Extent(((1, -1),), 5, 5, 2, 10), Extent(SAME, 3, 4, 0, 9)]
    places = np.array([[0, 0, 0], [15, 0, 0], [16, 0, 0], [0, 3, 0], [0, 4, 0], [1, -5, 0], [-1, 0, 0]])
    assert find_alike(extents, dict(enumerate(places.T))).tolist() == [True, True, False, True, False, True, False]
