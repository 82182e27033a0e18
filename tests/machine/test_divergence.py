from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import Certainty, ExecutionOptions
from tests.machine.launching import Run, find_line, run

SOURCE = r"""
extern "C" __global__ void branch(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i];
  if (v & 1) {
    if (v & 2) out[i] = v * 3;      // both bits
    else out[i] = v + 7;            // low bit
  } else {
    out[i + 4096] = v;              // even
  }
  __syncwarp();
  out[i + 8192] = v;                // together again
}
extern "C" __global__ void loop(const int* trips, const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  #pragma unroll 1
  for (int j = 0; j < trips[i]; ++j)
    sum += in[j];                   // body
  out[i] = sum;                     // after the loop
}
extern "C" __global__ void leave(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  #pragma unroll 1
  for (int j = 0; j < 64; ++j) {
    if (in[j] == i % 64) { out[i] = j; break; }      // found
    if (in[j] == 70) return;
  }
  out[i + 4096] = i;                // survivors
}
extern "C" __global__ void choose(const int* in, int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i];
  switch (v % 12) {
    case 0: v = out[4096] + 1; break;
    case 1: v *= 7; out[4097] = 5; break;
    case 2: v ^= 0x55; break;
    case 3: v = __clz(v); break;
    case 4: v = atomicAdd(out + 4098, 1) >= 0; break;
    case 5: v -= 9; break;
    case 6: v = __popc(v); break;
    case 7: v = v * v; break;
    case 8: v = __brev(v); break;
    case 9: v = ~v; break;
    case 10: v = v << 3; break;
    default: v = 11;
  }
  out[i] = v;
}
__device__ __noinline__ int collatz(int n) {
  int steps = 0;
  #pragma unroll 1
  while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; ++steps; }
  return steps;
}
extern "C" __global__ void call(int* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i % 3 ? collatz(i + 1) : -1;
  out[i] = v;
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recurse(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 9); }
// The same, where the code does not say whom a function calls.
__device__ __noinline__ int count_down(int n, int* out, void* self) {
  out[n] = n;
  return n ? ((int (*)(int, int*, void*))self)(n - 1, out, self) + n : 1;
}
extern "C" __global__ void recurse_by_pointer(int* out, int odds) {
  int (*function)(int, int*, void*) = count_down;
  if (odds < 0) function = (int (*)(int, int*, void*))out;
  out[threadIdx.x] = function(odds + threadIdx.x % 9 * (odds & 1), out + 64, (void*)function);
}
typedef int (*Function)(int);
__device__ __noinline__ int add_one(int x) { return x + 1; }
__device__ __noinline__ int times_five(int x) { return x * 5; }
__device__ __noinline__ int negate(int x) { return -x; }
__device__ Function table[3] = {add_one, times_five, negate};
extern "C" __global__ void indirect(int* out) { out[threadIdx.x] = table[threadIdx.x % 3](threadIdx.x); }
extern "C" __global__ void partial(const int* in, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  out[i] = in[i];                   // in range
}
extern "C" __global__ void votes(const int* in, int* out) {
  int i = threadIdx.x, v = in[i];
  unsigned some = __ballot_sync(0xffffffffu, v > 50);
  if (v > 50) {
    unsigned mine = __activemask();
    int sum = __reduce_add_sync(mine, v);
    out[i] = sum + __popc(mine);
  } else {
    out[i] = __shfl_sync(~some, v, __ffs(~some) - 1);
  }
  out[i + 4096] = some;
  out[i + 8192] = __all_sync(0xffffffffu, v >= 0) + 2 * __any_sync(0xffffffffu, v == 7);
}
extern "C" __global__ void forever(int* out) {
  volatile int* flag = out;
  while (*flag == 0) {}             // waits for nobody
  out[1] = 1;
}
extern "C" __global__ void lock(int* out) {
  __shared__ int held, count;
  if (threadIdx.x == 0) held = count = 0;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (atomicCAS(&held, 0, 1) == 0) {
      count = count + 1;
      __threadfence_block();
      atomicExch(&held, 0);
      done = true;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}
extern "C" __global__ void wait_for_warp(int* out) {
  __shared__ volatile int ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  if (threadIdx.x < 32) { while (ready == 0) {} out[threadIdx.x] = ready; }
  else if (threadIdx.x == 63) ready = 42;
}
"""


def _executed(done: Run, mark: str) -> list[int]:
    return [site.executed for site in done.sites_at(find_line(SOURCE, mark))]


def _warps(values: np.ndarray) -> np.ndarray:
    return values.reshape(-1, 32)


def test_sides_of_a_branch_issue_apart_and_meet_again() -> None:
    done = run(SOURCE, "branch<<<8, 128>>>(i32[1024]=perm(3), i32[12288])")
    given = _warps(done.given(0))
    assert _executed(done, "// both bits") == [int(((given & 3) == 3).any(axis=1).sum())]
    assert _executed(done, "// low bit") == [int(((given & 3) == 1).any(axis=1).sum())]
    assert _executed(done, "// even") == [int(((given & 1) == 0).any(axis=1).sum())]
    assert _executed(done, "// together again") == [32]
    flat = done.given(0)
    odd = np.where(flat & 2, flat * 3, flat + 7)
    np.testing.assert_array_equal(done.output(1)[:1024], np.where(flat & 1, odd, 0))
    np.testing.assert_array_equal(done.output(1)[8192:9216], flat)


@pytest.mark.parametrize("blocks", [1, 16])
def test_loop_issues_as_often_as_its_longest_lane(blocks: int) -> None:
    count = blocks * 96
    done = run(SOURCE, f"loop<<<{blocks}, 96>>>(i32[{count}]=perm(5), i32[{count}]=uniform(1), i32[{count}])")
    trips = done.given(0)
    longest = int(_warps(trips).max(axis=1).sum())
    (body,) = _executed(done, "// body")
    assert body == longest
    assert _executed(done, "// after the loop") == [count // 32]
    sums = np.concatenate([[0], np.cumsum(done.given(1), dtype=np.int32)])
    np.testing.assert_array_equal(done.output(2), sums[trips])


def test_break_and_return_leave_a_loop() -> None:
    done = run(SOURCE, "leave<<<2, 96>>>(i32[64]=perm(9), i32[8192])")
    order = done.given(0)
    where = np.argsort(order)
    lanes = np.arange(192)
    np.testing.assert_array_equal(done.output(1)[:192], where[lanes % 64])
    np.testing.assert_array_equal(done.output(1)[4096:4288], lanes)
    # Each lane finds its number in a round of its own, so each warp issues that store 32 times, and the load in front
    # of it until its last lane is done.
    assert _executed(done, "// found") == [int((where[_warps(lanes % 64)].max(axis=1) + 1).sum()), 192]
    assert _executed(done, "// survivors") == [6]


def test_return_out_of_a_loop_ends_lanes() -> None:
    source = SOURCE.replace("in[j] == 70", "in[j] == 3")
    done = run(source, "leave<<<1, 64>>>(i32[64]=arange, i32[8192])")
    survivors = np.arange(64) < 4
    np.testing.assert_array_equal(done.output(1)[4096:4160], np.where(survivors, np.arange(64), 0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_jump_table(target: str) -> None:
    done = run(SOURCE, "choose<<<4, 128>>>(i32[512]=perm(2), i32[8192])", target=target)
    given = done.given(0)
    reverse = np.array([int(f"{int(v) & 0xFFFFFFFF:032b}"[::-1], 2) for v in given], np.uint32).view(np.int32)
    zeros = np.array([32 - int(v).bit_length() for v in given], np.int32)
    ones = np.bitwise_count(given).astype(np.int32)
    choices = [given * 0 + 1, given * 7, given ^ 0x55, zeros, given * 0 + 1, given - 9, ones, given * given, reverse]
    choices += [~given, given << 3, given * 0 + 11]
    np.testing.assert_array_equal(done.output(1)[:512], np.choose(given % 12, choices))
    assert done.output(1)[4098] == int((given % 12 == 4).sum())


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_call_with_a_loop_inside(target: str) -> None:
    done = run(SOURCE, "call<<<2, 96>>>(i32[192])", target=target)

    def collatz(n: int) -> int:
        steps = 0
        while n != 1:
            n, steps = (3 * n + 1 if n % 2 else n // 2), steps + 1
        return steps

    assert done.output(0).tolist() == [collatz(i + 1) if i % 3 else -1 for i in range(192)]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_recursion_keeps_frames_in_local_memory(target: str) -> None:
    done = run(SOURCE, "recurse<<<1, 64>>>(i32[64])", target=target)
    fibonacci = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    assert done.output(0).tolist() == [fibonacci[i % 9] for i in range(64)]
    assert done.execution.faults == ()


@pytest.mark.parametrize(("odds", "certainty"), [(1, Certainty.SCHEDULE_DEPENDENT), (4, Certainty.EXACT)])
def test_recursion_by_a_pointer_meets_by_chance_where_lanes_part(odds: int, certainty: Certainty) -> None:
    done = run(SOURCE, f"recurse_by_pointer<<<1, 64>>>(i32[256], {odds})")
    depths = [odds + i % 9 * (odds & 1) for i in range(64)]
    assert done.output(0)[:64].tolist() == [n * (n + 1) // 2 + 1 for n in depths]
    assert {site.certainty for site in done.sites_at(find_line(SOURCE, "out[n] = n;"))} == {certainty}


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_indirect_call(target: str) -> None:
    done = run(SOURCE, "indirect<<<1, 64>>>(i32[64])", target=target)
    assert done.output(0).tolist() == [(i + 1, i * 5, -i)[i % 3] for i in range(64)]


def test_lanes_beyond_the_end_exit_alone() -> None:
    done = run(SOURCE, "partial<<<3, 96>>>(i32[200]=arange, i32[200], 200)")
    np.testing.assert_array_equal(done.output(1), np.arange(200))
    assert _executed(done, "// in range") == [7, 7]
    assert [site.lanes for site in done.sites_at(find_line(SOURCE, "// in range"))] == [200, 200]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_votes_and_shuffles_among_the_lanes_of_a_side(target: str) -> None:
    done = run(SOURCE, "votes<<<1, 96>>>(i32[96]=perm(4), i32[16384])", target=target)
    given = _warps(done.given(0))
    high = given > 50
    sums = np.where(high, given, 0).sum(axis=1, keepdims=True) + high.sum(axis=1, keepdims=True)
    first_low = np.take_along_axis(given, (~high).argmax(axis=1)[:, None], axis=1)
    np.testing.assert_array_equal(_warps(done.output(1)[:96]), np.where(high, sums, first_low))
    ballots = (high.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)
    np.testing.assert_array_equal(_warps(done.output(1, np.uint32)[4096:4192]), np.repeat(ballots, 32).reshape(3, 32))
    flags = 1 + 2 * (given == 7).any(axis=1)
    np.testing.assert_array_equal(_warps(done.output(1)[8192:8288]), np.repeat(flags, 32).reshape(3, 32))


def test_endless_loop_is_told_with_its_line() -> None:
    done = run(SOURCE, "forever<<<1, 32>>>(i32[2])", ExecutionOptions(step_limit=20_000))
    (hang,) = done.execution.hangs
    location = done.bound.kernel.instructions[hang.instruction].location
    assert location is not None
    assert location.line == find_line(SOURCE, "// waits for nobody")
    assert "the launch hangs" in hang.message


def test_lock_between_lanes_and_warps_makes_progress() -> None:
    done = run(SOURCE, "lock<<<2, 96>>>(i32[2])", ExecutionOptions(step_limit=2_000_000))
    assert done.output(0).tolist() == [96, 96]


def test_spinning_warp_lets_the_one_it_waits_for_run() -> None:
    done = run(SOURCE, "wait_for_warp<<<2, 64>>>(i32[32])", ExecutionOptions(step_limit=2_000_000))
    assert done.output(0).tolist() == [42] * 32
