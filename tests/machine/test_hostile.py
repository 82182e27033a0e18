from __future__ import annotations

import numpy as np
import pytest

from sectorwise.binding import bind
from sectorwise.device import load_device
from sectorwise.errors import LaunchError, StepLimitError
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.engine import execute
from sectorwise.machine.execution import Certainty, Engine, ExecutionOptions, FaultKind
from tests.machine.launching import Run, compile_kernels, find_line, run

SOURCE = r"""
extern "C" __global__ void divided(const double* in, double* out) {
  out[threadIdx.x] = in[threadIdx.x] / 3.0;
  out[threadIdx.x + 32] = in[threadIdx.x] / 49.0;
}
extern "C" __global__ void textured(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
  float4 four = tex2D<float4>(t, 1.5f, threadIdx.x);
  out[(int)four.w & 31] = four.x;                                 // placed by a texture
  int v;
  surf2Dread(&v, (cudaSurfaceObject_t)t, threadIdx.x * 4, 1);
  surf2Dwrite(v, (cudaSurfaceObject_t)t, threadIdx.x * 4, 0);
}
extern "C" __global__ void trapped(int* out) {
  out[threadIdx.x] = 1;
  if (threadIdx.x == 3) __trap();                                 // the trap
  out[threadIdx.x] = 2;
}
extern "C" __global__ void asserted(int* out) {
  out[threadIdx.x] = 1;
  if (threadIdx.x == 5) __assertfail("a", "b", 1, "c", 1);        // the assertion
  out[threadIdx.x] = 2;
}
extern "C" __global__ void allocated(int* out) {
  int* p = (int*)malloc(64);                                      // the heap
  p[threadIdx.x & 15] = threadIdx.x;                              // into the heap
  out[threadIdx.x] = 1;
}
extern "C" __global__ void ticketed(int* next, int* out) {
  int at = atomicAdd(next, (int)threadIdx.x + 1);
  out[at] = 1;                                                    // where the ticket says
  out[threadIdx.x] = 2;                                           // anywhere
}
extern "C" __global__ void last_block(unsigned* count, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) out[threadIdx.x] = 1;                                 // by the last block
}
extern "C" __global__ void counted(int* bins, const int* in) {
  atomicAdd(bins + in[threadIdx.x], 1);                           // nobody looks at what it was
  __syncthreads();
  if (bins[0] > 1) bins[100] = 1;                                 // the sum is the sum in any order
}
extern "C" __global__ void summed(float* sum, int* out) {
  atomicAdd(sum, 0.1f * threadIdx.x);
  __syncthreads();
  out[(int)*sum] = 1;                                             // where the sum says
}
extern "C" __global__ void noisy(const int* in, int* out) {
  if (in[threadIdx.x] > -2147483647) out[threadIdx.x] = 1;        // all go, but who knew
}
extern "C" __global__ void awaited(int* out) {
  volatile int* seen = out;
  while (((int)clock() ^ seen[threadIdx.x]) & 64) { }                // waits
  out[threadIdx.x] = 2;
}
extern "C" __global__ void slept(int* out) {
  long long begun = clock64();
  while (clock64() - begun < 1000) { }
  out[threadIdx.x] = 2;
}
extern "C" __global__ void followed(const int* from, int* out) {
  out[threadIdx.x] = from[threadIdx.x];
}
__device__ __noinline__ int deep(int n, int* out) {
  int own[8];
  own[n & 7] = n;
  int v = deep(n + 1, out) + own[out[0] & 7];                     // without end
  out[v & 31] = v;
  return v;
}
extern "C" __global__ void fallen(int* out) {
  if (threadIdx.x & 1) out[threadIdx.x] = deep(threadIdx.x, out);
  else out[threadIdx.x] = 7;                                      // others
}
typedef int (*Function)(int);
__device__ __noinline__ int one_more(int v) { return v + 1; }
__device__ Function functions[2] = {one_more, one_more};
extern "C" __global__ void past_the_table(int* out, int at) {
  out[threadIdx.x] = functions[at](threadIdx.x);                  // calls whatever is there
  out[threadIdx.x + 32] = 1;
}
extern "C" __global__ void anywhere(Function* from, int* out) {
  out[threadIdx.x] = from[threadIdx.x](threadIdx.x);              // calls garbage
  out[threadIdx.x + 32] = 1;
}
extern "C" __global__ void forever(int* out) {
  while (true) out[threadIdx.x] += 1;                             // never ends
}
extern "C" __global__ void dynamic(int* out) {
  extern __shared__ int s[];
  s[threadIdx.x] = threadIdx.x;                                   // past the end
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""

CLUSTERS = r"""
extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(int* out) {
  out[blockIdx.x] = 1;
}
extern "C" __global__ void __cluster_dims__(1, 1, 1) lonely(int* out) {
  out[blockIdx.x] = 1;
}
"""


def _certainty(done: Run, mark: str) -> set[Certainty]:
    sites = done.sites_at(find_line(SOURCE, mark))
    assert sites
    return {site.certainty for site in sites if site.access.operation == "store"}


def _reasons(done: Run, mark: str) -> list[str]:
    line = find_line(SOURCE, mark)
    instructions = done.bound.kernel.instructions
    found = []
    for limitation in done.execution.limitations:
        location = instructions[limitation.instruction].location
        if location is not None and location.line == line:
            found.append(limitation.because)
    return found


def test_doubles_are_divided_by_constants() -> None:
    done = run(SOURCE, "divided<<<1, 32>>>(f64[32]=uniform(3), f64[64])")
    values = done.given(0).view(np.float64)
    np.testing.assert_array_equal(done.output(1, np.float64), np.concatenate([values / 3.0, values / 49.0]))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_textures_and_surfaces_are_sites_that_are_not_known(target: str) -> None:
    done = run(SOURCE, "textured<<<2, 32>>>(u64(0), f32[64])", target=target)
    sites = [site for site in done.execution.sites if site.access.space in {"texture", "surface"}]
    assert sorted((str(site.access.space), str(site.access.operation), site.executed) for site in sites) == [
        ("surface", "load", 2),
        ("surface", "store", 2),
        ("texture", "load", 2),
        ("texture", "load", 2),
    ]
    assert all("not modelled" in str(site.unknown_because) for site in sites)
    told = [limitation.instruction for limitation in done.execution.limitations]
    assert all(told.count(site.instruction) == 1 for site in sites)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_every_component_of_a_texture_is_unknown(target: str) -> None:
    done = run(SOURCE, "textured<<<1, 32>>>(u64(0), f32[64])", target=target)
    stores = [site for site in done.execution.sites if site.access.space == "global"]
    assert [site.unknown_because is None for site in stores] == [True, False]
    assert "not modelled" in str(stores[1].unknown_because)


@pytest.mark.parametrize(
    ("kernel", "mark", "lane"), [("trapped", "// the trap", 3), ("asserted", "// the assertion", 5)]
)
def test_lanes_that_trap_end_and_are_told(kernel: str, mark: str, lane: int) -> None:
    done = run(SOURCE, f"{kernel}<<<1, 32>>>(i32[32])")
    np.testing.assert_array_equal(done.output(0), np.where(np.arange(32) == lane, 1, 2))
    assert ["on a GPU the launch fails" in because for because in _reasons(done, mark)] == [True]


def test_what_an_external_function_returns_is_unknown() -> None:
    done = run(SOURCE, "allocated<<<1, 32>>>(i32[32])")
    assert done.execution.faults == ()
    (site,) = done.sites_at(find_line(SOURCE, "// into the heap"))
    assert f"line {find_line(SOURCE, '// the heap')}: malloc is not seen" in str(site.unknown_because)
    np.testing.assert_array_equal(done.output(0), 1)


def test_address_that_an_atomic_returned_depends_on_the_schedule() -> None:
    done = run(SOURCE, "ticketed<<<2, 64>>>(i32[1], i32[8192])")
    assert _certainty(done, "// where the ticket says") == {Certainty.SCHEDULE_DEPENDENT}
    assert _certainty(done, "// anywhere") == {Certainty.EXACT}


def test_work_of_the_last_block_depends_on_the_schedule() -> None:
    done = run(SOURCE, "last_block<<<3, 64>>>(u32[1], i32[64])")
    assert _certainty(done, "// by the last block") == {Certainty.SCHEDULE_DEPENDENT}
    np.testing.assert_array_equal(done.output(1), 1)


def test_sums_of_integers_do_not_depend_on_the_schedule() -> None:
    done = run(SOURCE, "counted<<<1, 32>>>(i32[128], i32[32])")
    assert _certainty(done, "// the sum is the sum in any order") == {Certainty.EXACT}
    assert done.output(0)[100] == 1


def test_sums_of_floats_depend_on_the_schedule() -> None:
    done = run(SOURCE, "summed<<<1, 32>>>(f32[1], i32[128])")
    assert _certainty(done, "// where the sum says") == {Certainty.SCHEDULE_DEPENDENT}
    assert done.output(1)[49] == 1


def test_branch_on_noise_is_assumed_though_no_warp_parts() -> None:
    done = run(SOURCE, "noisy<<<1, 32>>>(i32[32]=noise, i32[32])")
    assert _certainty(done, "// all go, but who knew") == {Certainty.ASSUMED}


def test_wait_for_something_unknown_is_left_and_told() -> None:
    done = run(SOURCE, "awaited<<<1, 32>>>(i32[32])", ExecutionOptions(step_limit=10_000))
    assert any("a clock depends" in because and "taken not to" in because for because in _reasons(done, "// waits"))
    np.testing.assert_array_equal(done.output(0), 2)


def test_time_that_decides_no_count_is_not_worth_a_word() -> None:
    done = run(SOURCE, "slept<<<1, 32>>>(i32[32])", ExecutionOptions(step_limit=10_000))
    assert done.execution.limitations == ()
    np.testing.assert_array_equal(done.output(0), 2)


def test_null_pointer_is_called_one() -> None:
    done = run(SOURCE, "followed<<<1, 32>>>(nullptr, i32[32])")
    (fault,) = done.execution.faults
    assert (fault.kind, fault.address, fault.occurrences) == (FaultKind.OUT_OF_BOUNDS, 0, 32)
    assert "null pointer" in fault.message


def test_missing_dynamic_shared_memory_is_told_in_the_kernels_own_bytes() -> None:
    done = run(SOURCE, "dynamic<<<1, 64, 128>>>(i32[64])")
    first = done.execution.faults[0]
    assert (first.kind, first.warp, first.lane, first.occurrences) == (FaultKind.OUT_OF_BOUNDS, 1, 0, 32)
    assert first.message == "byte 128 is outside of the 128 bytes of the block's shared memory"


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
def test_clusters_have_to_fill_the_grid(target: str) -> None:
    assert run(CLUSTERS, "clustered<<<4, 1>>>(i32[4])", target=target).execution.limitations == ()
    with pytest.raises(LaunchError, match="a grid of 3 x 1 x 1 blocks cannot be made of the kernel's clusters of 2 x"):
        run(CLUSTERS, "clustered<<<3, 1>>>(i32[4])", target=target)
    assert run(CLUSTERS, "lonely<<<4, 1>>>(i32[4])", target=target).execution.limitations == ()


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.AUTOMATIC])
@pytest.mark.parametrize("blocks", [1, 200])
def test_recursion_without_end_uses_up_the_stack_and_is_told(engine: Engine, blocks: int) -> None:
    config = parse_launch(f"fallen<<<{blocks}, 32>>>(i32[32])")
    bound = bind(compile_kernels(SOURCE)["fallen"], config, load_device("h200"))
    # Far fewer steps than would be run if nobody saw it.
    done = Run(bound, execute(bound, ExecutionOptions(engine=engine, step_limit=20_000)))
    told = [each.because for each in done.execution.limitations if "stack" in each.because]
    assert told == ["the 1,024 bytes of the stack are used up: on a GPU the launch fails, here only they end"]
    assert len(_reasons(done, "// without end")) == 1
    np.testing.assert_array_equal(done.output(0)[::2], 7)


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.AUTOMATIC])
@pytest.mark.parametrize(
    ("launch", "mark"),
    [
        ("past_the_table<<<8, 32>>>(i32[64], 1000)", "// calls whatever is there"),
        ("past_the_table<<<8, 32>>>(i32[64], 2)", "// calls whatever is there"),
        ("anywhere<<<8, 32>>>(u64[32]=uniform(3), i32[64])", "// calls garbage"),
        ("anywhere<<<8, 32>>>(u64[32], i32[64])", "// calls garbage"),
    ],
)
def test_calls_of_garbage_are_stepped_over_and_told(engine: Engine, launch: str, mark: str) -> None:
    config = parse_launch(launch)
    bound = bind(compile_kernels(SOURCE)[config.kernel], config, load_device("h200"))
    done = Run(bound, execute(bound, ExecutionOptions(engine=engine, step_limit=20_000)))
    assert any("is stepped over: what it does is not seen" in because for because in _reasons(done, mark))
    np.testing.assert_array_equal(done.output(0 if "past" in launch else 1)[32:], 1)


@pytest.mark.parametrize("engine", [Engine.REFERENCE, Engine.NATIVE])
def test_a_loop_that_never_ends_is_told_or_ends_at_the_limit(engine: Engine) -> None:
    bound = bind(compile_kernels(SOURCE)["forever"], parse_launch("forever<<<4, 32>>>(i32[32])"), load_device("h200"))
    options = ExecutionOptions(engine=engine, step_limit=20_000)
    if engine is Engine.NATIVE:
        with pytest.raises(StepLimitError, match="a warp ran more than 20,000 instructions"):
            execute(bound, options)
    else:
        told = [each.message for each in execute(bound, options).hangs]
        assert any("the launch hangs" in message for message in told)
