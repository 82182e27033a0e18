"""Lanes of one warp that store different values to one place: which stays is undefined, and what hangs on it said."""

from __future__ import annotations

import numpy as np
import pytest

from sectorwise.binding import BoundLaunch, bind
from sectorwise.device import load_device
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, Execution, ExecutionOptions
from sectorwise.machine.native.unsupported import UnsupportedError
from sectorwise.machine.native_engine import execute_native
from sectorwise.machine.numpy_engine import execute
from tests.machine.launching import compile_kernels, find_line
from tests.machine.native.agreement import list_differences

SOURCE = r"""
extern "C" __global__ void one_place(const int* in, int* out) {
  __shared__ int chosen;
  chosen = threadIdx.x;                                   // all to one word
  __syncthreads();
  out[chosen] = 1;                                        // where the last one says
  out[64 + threadIdx.x] = in[threadIdx.x];                // anywhere
}
extern "C" __global__ void scattered(const int* in, int* out) {
  __shared__ int table[64];
  table[threadIdx.x] = 0;
  __syncthreads();
  table[in[threadIdx.x] & 31] = threadIdx.x;              // some to one word
  __syncthreads();
  out[table[threadIdx.x]] = 1;                            // where the last one says
}
extern "C" __global__ void alike(const int* in, int* out) {
  __shared__ int flag;
  flag = 5;                                               // the same from all
  __syncthreads();
  out[flag + threadIdx.x] = in[threadIdx.x];              // known
}
extern "C" __global__ void distinct(const int* in, int* out) {
  __shared__ int table[64];
  table[in[threadIdx.x] & 63] = threadIdx.x;              // a permutation
  __syncthreads();
  out[table[threadIdx.x]] = 1;                            // known
}
extern "C" __global__ void in_order(int* out) {
  __shared__ int table[64];
  if (threadIdx.x < 32) table[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x >= 32) table[63 - threadIdx.x] = threadIdx.x;   // another warp's, behind a barrier
  __syncthreads();
  out[table[threadIdx.x & 31]] = 1;                       // known
}
extern "C" __global__ void bytes(const int* in, int* out) {
  __shared__ unsigned char seen[64];
  seen[threadIdx.x] = 0;
  __syncthreads();
  seen[threadIdx.x / 2] = threadIdx.x;                    // two to one byte
  __syncthreads();
  out[seen[threadIdx.x & 15]] = in[threadIdx.x];          // where the last one says
}
extern "C" __global__ void everywhere(const int* in, int* list, int* out) {
  list[in[threadIdx.x] & 7] = threadIdx.x;                // some to one word
  __syncthreads();
  if (list[threadIdx.x & 7] & 1) out[threadIdx.x] = 1;    // if the last one says so
}
extern "C" __global__ void wide(const int* in, int* out) {
  __shared__ int4 kept[8];
  kept[threadIdx.x & 7] = make_int4(1, 2, 3, threadIdx.x & 8);     // four to one place
  __syncthreads();
  int4 v = kept[threadIdx.x & 7];
  out[v.w] = v.x;                                         // where the last one says
}
extern "C" __global__ void unread(const int* in, int* out) {
  __shared__ int chosen;
  chosen = in[threadIdx.x];                               // all to one word
  __syncthreads();
  out[threadIdx.x] = chosen;                              // anywhere, whatever the value
}
"""

SAID = "lanes of one warp store different values to one place here"
RACING = {
    "one_place<<<2, 64>>>(i32[64], i32[128])": ("all to one word", "where the last one says"),
    "scattered<<<2, 64>>>(i32[64]=uniform(3), i32[64])": ("some to one word", "where the last one says"),
    "bytes<<<2, 64>>>(i32[64], i32[64])": ("two to one byte", "where the last one says"),
    "everywhere<<<1, 64>>>(i32[64]=uniform(2), i32[8], i32[64])": ("some to one word", "if the last one says so"),
    "wide<<<2, 64>>>(i32[64], i32[64])": ("four to one place", "where the last one says"),
}
QUIET = {
    "alike<<<2, 64>>>(i32[64], i32[128])": "known",
    "distinct<<<2, 64>>>(i32[64]=perm(4), i32[64])": "known",
    "in_order<<<2, 64>>>(i32[64])": "known",
    "unread<<<2, 64>>>(i32[64]=arange, i32[64])": "anywhere, whatever the value",
}


def _bind(launch: str) -> BoundLaunch:
    config = parse_launch(launch)
    return bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))


def _line_of(kernel: str, mark: str) -> int:
    start = find_line(SOURCE, f" {kernel}(")
    return start + find_line("\n".join(SOURCE.splitlines()[start - 1 :]), f"// {mark}") - 1


def _certainty(bound: BoundLaunch, execution: Execution, line: int) -> set[Certainty]:
    instructions = bound.kernel.instructions
    places = {site.instruction: instructions[site.instruction].location for site in execution.sites}
    found = [
        site.certainty
        for site in execution.sites
        if (place := places[site.instruction]) is not None
        and place.line == line
        and site.access.operation == "store"
        and site.access.space == "global"
    ]
    assert found
    return set(found)


@pytest.mark.parametrize(("launch", "marks"), RACING.items(), ids=[launch.split("<")[0] for launch in RACING])
def test_counts_that_hang_on_which_lane_wins_depend_on_the_schedule(launch: str, marks: tuple[str, str]) -> None:
    bound = _bind(launch)
    store, use = (_line_of(bound.kernel.name, mark) for mark in marks)
    execution = execute(bound, ExecutionOptions())
    assert _certainty(bound, execution, use) == {Certainty.SCHEDULE_DEPENDENT}
    told = [each for each in execution.limitations if SAID in each.because]
    lines = {bound.kernel.instructions[each.instruction].location.line for each in told}  # type: ignore[union-attr]
    assert lines == {store}
    assert len(told) == len(execution.limitations)


@pytest.mark.parametrize(("launch", "marks"), RACING.items(), ids=[launch.split("<")[0] for launch in RACING])
def test_machine_code_sees_it_too(launch: str, marks: tuple[str, str]) -> None:
    bound = _bind(launch)
    with pytest.raises(UnsupportedError, match="may depend on what CUDA leaves undefined"):
        execute_native(bound, ExecutionOptions())
    assumed = execute_native(bound, ExecutionOptions(), assumes=True)
    expected = execute(bound, ExecutionOptions())
    line = _line_of(bound.kernel.name, marks[1])
    assert _certainty(bound, assumed, line) == {Certainty.SCHEDULE_DEPENDENT}
    assert [each.sectors for each in assumed.sites] == [each.sectors for each in expected.sites]
    assert assumed.limitations == expected.limitations


@pytest.mark.parametrize(("launch", "mark"), QUIET.items(), ids=[launch.split("<")[0] for launch in QUIET])
def test_what_is_no_race_or_decides_nothing_stays_exact(launch: str, mark: str) -> None:
    bound = _bind(launch)
    execution = execute(bound, ExecutionOptions())
    assert _certainty(bound, execution, _line_of(bound.kernel.name, mark)) == {Certainty.EXACT}
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    assert execution.limitations == ()
    assert list_differences(bound) == []


def test_a_later_store_by_one_lane_ends_the_doubt() -> None:
    overwritten = "  __syncthreads();\n  if (!threadIdx.x) chosen = 3;\n  __syncthreads();\n  out[chosen]"
    source = SOURCE.replace("  __syncthreads();\n  out[chosen]", overwritten)
    config = parse_launch("one_place<<<1, 32>>>(i32[64], i32[128])")
    bound = bind(compile_kernels(source)["one_place"], config, load_device("h200"))
    execution = execute(bound, ExecutionOptions())
    assert {site.certainty for site in execution.sites} == {Certainty.EXACT}
    np.testing.assert_array_equal(np.flatnonzero(execution.read_buffer(1).view(np.int32)[:64]), [3])
