from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from sectorwise.binding import bind
from sectorwise.counting.request import Space
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native.flow import find_flow
from sectorwise.machine.native.origins import find_reach, reach_spaces
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.program import decode
from tests.machine.launching import compile_kernels
from tests.machine.native.agreement import list_differences

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.native.origins import Part

SOURCE = r"""
struct Pair { const int* from; int* to; };
__device__ int table[4096];
__device__ int* held = table;
extern "C" __global__ void through_variable(int* a, int* out, int first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* chosen = first ? a : held;
  chosen[i & 4095] = (i * 7) & 1023;
  __syncthreads();
  out[table[i & 4095]] = 1;
}
extern "C" __global__ void gather(int* out, const int* index, const int* in) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[index[i]];
}
extern "C" __global__ void rounds(float* out, const float* in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = in[i % n], sum = 0;
  while (v > 0.1f) { sum += v; v *= 0.7f; }
  out[i] = sum;
}
extern "C" __global__ void choose(int* a, int* b, int* out, int first) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* chosen = i % 3 == first ? a : b;
  chosen[i] = (i * 7) & 1023;
  out[b[i]] = 1;
}
extern "C" __global__ void passed(int* a, int* b, int* out) {
  __shared__ int* kept[64];
  kept[threadIdx.x] = threadIdx.x & 1 ? a : b;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* other = kept[threadIdx.x ^ 1];
  __builtin_assume(__isGlobal(other));
  other[i] = (i * 5) & 1023;
  out[a[i]] = 1;
}
extern "C" __global__ void swapped(int* a, int* b, int steps) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int k = 0; k < steps; k++) {
    b[a[i] & 1023] = i & 1023;
    int* c = a; a = b; b = c;
  }
}
extern "C" __global__ void packed(Pair pair, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  pair.to[i] = (i * 3) & 1023;
  out[pair.from[i]] = 1;
}
extern "C" __global__ void module(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  table[i & 4095] = (i * 11) & 1023;
  out[table[i & 4095]] = 1;
}
extern "C" __global__ void shuffled(int* a, int* b, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  long long mine = (long long)(threadIdx.x & 1 ? a : b);
  int* other = (int*)__shfl_xor_sync(~0u, mine, 1);
  __builtin_assume(__isGlobal(other));
  other[i] = (i * 5) & 1023;
  out[a[i]] = 1;
}
extern "C" __global__ void loads_far(const int* a, int* b, int* out, long long far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  b[i] = (i * (blockIdx.x % 3 + 1)) & 1023;
  __syncthreads();
  out[a[far + i]] = 1;
}
extern "C" __global__ void stores_far(int* a, const int* b, int* out, long long far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  a[far + i] = (i * (blockIdx.x % 3 + 1)) & 1023;
  __syncthreads();
  out[b[i]] = 1;
}
extern "C" __global__ void exchanges_far(int* a, const int* b, int* out, long long far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicOr(a + far + i, (i * (blockIdx.x % 3 + 1)) & 1023);
  __syncthreads();
  out[b[i]] = 1;
}
"""
GATHER = "gather<<<512, 64>>>(i32[32768], i32[32768]=perm(3), i32[32768])"


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


def _list_reached(launch: str) -> tuple[list[set[Part]], list[set[Part]]]:
    """Parts of each load and of each store, in the order of the code."""
    bound = _bind(launch)
    reach = find_reach(find_flow(decode(bound.kernel)), bound)
    return [set(reach.loads[i]) for i in sorted(reach.loads)], [set(reach.stores[i]) for i in sorted(reach.stores)]


def test_addresses_reach_the_buffers_that_they_were_made_from() -> None:
    assert _list_reached(GATHER) == ([{1}, {2}], [{0}])


def test_one_buffer_that_is_passed_twice_is_one() -> None:
    loads, stores = _list_reached("gather<<<512, 64>>>(x=i32[32768], i32[32768], ptr(x, 0))")
    assert loads == [{1}, {0}]
    assert stores == [{0}]


def test_a_pointer_that_is_chosen_reaches_both() -> None:
    loads, stores = _list_reached("choose<<<4, 64>>>(i32[1024], i32[1024], i32[1024], 1)")
    assert {0, 1} in stores
    assert loads == [{1}]


@pytest.mark.parametrize("kernel", ["passed", "shuffled"])
def test_pointers_are_followed_through_memory_and_other_lanes(kernel: str) -> None:
    loads, stores = _list_reached(f"{kernel}<<<4, 64>>>(i32[1024], i32[1024], i32[1024])")
    assert any({0, 1} <= parts for parts in stores)
    assert {0} in loads


def test_what_is_not_known_to_point_anywhere_reaches_all_of_its_space() -> None:
    bound = _bind(GATHER)
    flow = find_flow(decode(bound.kernel))
    reach = reach_spaces(flow, bound)
    assert (
        set(reach.loads.values())
        == set(reach.stores.values())
        == {frozenset({Space.GLOBAL, *range(len(bound.allocations))})}
    )


@pytest.mark.parametrize(
    "launch",
    [
        GATHER,
        "gather<<<512, 64>>>(x=i32[32768], y=i32[32768]=perm(3), ptr(y, 0))",
        "gather<<<512, 64>>>(x=i32[32768]=perm(3), ptr(x, 0), i32[32768])",
        "rounds<<<64, 64>>>(f32[4096], f32[1000]=uniform(3), 1000)",
        "choose<<<16, 64>>>(i32[1024], i32[1024], i32[1024], 1)",
        "choose<<<16, 64>>>(x=i32[1024], ptr(x, 0), i32[1024], 1)",
        "passed<<<16, 64>>>(i32[1024], i32[1024], i32[1024])",
        "shuffled<<<16, 64>>>(i32[1024], i32[1024], i32[1024])",
        "swapped<<<1, 32>>>(i32[1024]=perm(5), i32[1024]=perm(6), 5)",
        "packed<<<16, 64>>>({x=i32[1024], ptr(x, 0)}, i32[1024])",
        "packed<<<16, 64>>>({i32[1024]=perm(4), i32[1024]}, i32[1024])",
        "module<<<64, 64>>>(i32[1024])",
        "through_variable<<<16, 64>>>(i32[4096], i32[1024], 0)",
    ],
)
def test_counts_are_those_of_the_reference_engine(launch: str) -> None:
    """Launches that store where others, or they themselves, load what decides."""
    assert list_differences(_bind(launch), ExecutionOptions(sample_above=None)) == []


@pytest.mark.parametrize("kernel", ["loads_far", "stores_far", "exchanges_far"])
@pytest.mark.parametrize("grid", [4, 32])
def test_who_goes_to_another_buffer_by_its_distance_is_seen(kernel: str, grid: int) -> None:
    buffers = [
        allocation.base for allocation in _bind(f"{kernel}<<<1, 32>>>(i32[1024], i32[1024], i32[1024], 0)").allocations
    ]
    bound = _bind(f"{kernel}<<<{grid}, 32>>>(i32[1024], i32[1024], i32[1024], {(buffers[1] - buffers[0]) // 4})")
    assert list_differences(bound, ExecutionOptions(sample_above=None)) == []
    indices = [(i * (i // 32 % 3 + 1)) % 1024 for i in range(32 * grid)]
    sectors = sum(len({index // 8 for index in indices[i : i + 32]}) for i in range(0, 32 * grid, 32))
    assert execute_native(bound, ExecutionOptions()).sites[-1].sectors == sectors


@pytest.mark.parametrize(
    "launch",
    [
        "gather<<<1000000, 64>>>(i32[64000000], i32[64000000], i32[64])",
        "rounds<<<1000000, 256>>>(f32[256000000], f32[1000000]=uniform(3), 1000000)",
    ],
)
def test_blocks_without_a_proof_are_sampled_where_they_store_to_what_none_reads(launch: str) -> None:
    execution = execute_native(_bind(launch), ExecutionOptions())
    assert execution.sampling is not None
    assert len(execution.sampling.blocks) < 200_000
    assert {site.certainty for site in execution.sites} <= {Certainty.SAMPLED, Certainty.EXACT}
