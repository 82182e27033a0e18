from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from sectorwise.binding import bind
from sectorwise.counting.request import Operation
from sectorwise.errors import StepLimitError
from sectorwise.launch.notation import parse_launch
from sectorwise.machine.execution import Certainty, ExecutionOptions, Hang, Waiting
from sectorwise.machine.numpy_engine import LANES_IN_BATCH, execute
from tests.machine.launching import Run, find_line, run

SOURCE = r"""
extern "C" __global__ void lock(int* l, int* c) {
  if (threadIdx.x % 32) return;
  while (atomicCAS(l, 0, 1) != 0);
  c[0]++;
  __threadfence();
  atomicExch(l, 0);
}
extern "C" __global__ void backs_off(int* l, volatile int* c) {
  if (threadIdx.x % 32) return;
  unsigned pause = 8;
  while (atomicCAS(l, 0, 1) != 0) { __nanosleep(pause); if (pause < 256) pause *= 2; }
  c[0] = c[0] + 1;
  __threadfence();
  atomicExch(l, 0);
}
extern "C" __global__ void tickets(unsigned* next, volatile unsigned* serving, int* order) {
  if (threadIdx.x % 32) return;
  unsigned mine = atomicAdd(next, 1u);
  while (*serving != mine);
  order[mine] = mine + 1;
  __threadfence();
  *serving = mine + 1;
}
extern "C" __global__ void forever(volatile int* flag, int* out) {
  while (flag[0] == 0) { }                                 // nobody comes
  out[threadIdx.x] = 1;
}
extern "C" __global__ void nothing(int* out) {
  if (threadIdx.x < 32) for (;;) __nanosleep(100);         // for no reason
  out[threadIdx.x] = 1;
}
extern "C" __global__ void counts(volatile int* flag, int* out) {
  int n = 0;
  while (flag[0] == 0) ++n;                                // counts
  out[threadIdx.x] = n;
}
extern "C" __global__ void grid_wide(unsigned* arrived, int* in, int* out) {
  in[blockIdx.x] = blockIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (*(volatile unsigned*)arrived < gridDim.x);      // for all blocks
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = ((volatile int*)in)[(blockIdx.x + 1) % gridDim.x];
}
extern "C" __global__ void backwards(volatile int* done) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) while (done[blockIdx.x + 1] == 0);   // for the next block
    done[blockIdx.x] = gridDim.x - blockIdx.x;
  }
}
extern "C" __global__ void parted(volatile int* flag, int* out) {
  if (threadIdx.x < 32) {
    while (true) {
      int seen = 0;
      if (threadIdx.x == 0) seen = flag[0];
      if (__shfl_sync(~0u, seen, 0)) break;                // told by lane 0
      if (threadIdx.x & 1) __nanosleep(20); else __nanosleep(40);
    }
    out[threadIdx.x] = 7;
  } else {
    for (int i = 0; i < 300; ++i) out[threadIdx.x] += out[(threadIdx.x + i) % 32 + 32] & 1;
    __threadfence();
    if (threadIdx.x == 32) flag[0] = 1;
  }
}
extern "C" __global__ void polled(unsigned* arrived, int* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x);            // asks again
  }
  __syncthreads();
  out[blockIdx.x * 32 + threadIdx.x] = 1;
}
extern "C" __global__ void looked_once(unsigned* arrived, const unsigned* given, int* out) {
  atomicAdd(arrived, 1u);                                  // adds
  if (*(volatile unsigned*)arrived > 40) out[0] = 1;       // as it happens
  if (*(volatile unsigned*)given > 40) out[1] = 1;         // for sure
}
extern "C" __global__ void clocked(volatile int* flag, int* out) {
  if (clock() & 1) flag[0] = 1;
  while (flag[0] == 0) { }                                 // perhaps
  out[threadIdx.x] = 1;
}
extern "C" __global__ void unset(int* out) {
  __shared__ volatile int flag;
  while (flag == 0) { }
  out[threadIdx.x] = 1;
}
extern "C" __global__ void named(int* out) {
  asm volatile("barrier.sync 1, 64;");                     // for 32 threads more than there are
  out[threadIdx.x] = 1;
}
extern "C" __global__ void long_and_dull(int* out, int n) {
  int v = 0;
  for (int i = 0; i < n; ++i) { out[threadIdx.x] = v; v = v * 3 + i; }
  out[threadIdx.x] = v;
}
"""

# Enough for what is to be done, far too little for spinning until others have had 1024 turns.
_FEW = ExecutionOptions(step_limit=20_000)


def _said(done: Run, comment: str) -> list[str]:
    instructions = done.bound.kernel.instructions
    line = find_line(SOURCE, comment)
    places = [(limitation, instructions[limitation.instruction].location) for limitation in done.execution.limitations]
    return [limitation.because for limitation, place in places if place is not None and place.line == line]


def _line_of(done: Run, hang: Hang) -> int | None:
    location = done.bound.kernel.instructions[hang.instruction].location
    return None if location is None else location.line


@pytest.mark.parametrize("launch", ["lock<<<3, 128>>>(i32[1], i32[1])", "backs_off<<<3, 128>>>(i32[1], i32[1])"])
def test_lock_goes_from_warp_to_warp(launch: str) -> None:
    done = run(SOURCE, launch, _FEW)
    assert done.output(1).tolist() == [12]
    assert done.output(0).tolist() == [0]
    assert (done.execution.limitations, done.execution.hangs) == ((), ())


def test_tickets_are_served_in_order() -> None:
    done = run(SOURCE, "tickets<<<4, 128>>>(u32[1], u32[1], i32[16])", _FEW)
    assert done.output(2).tolist() == list(range(1, 17))


def test_loop_that_waits_for_nobody_hangs_and_is_told() -> None:
    done = run(SOURCE, "forever<<<2, 64>>>(i32[1], i32[64])", _FEW)
    (hang,) = done.execution.hangs
    assert hang.message == "4 warps repeat a loop here in which nothing changes any more: the launch hangs"
    assert (hang.waiting, hang.warps, hang.is_certain) == (Waiting.LOOP, 4, True)
    assert _line_of(done, hang) == find_line(SOURCE, "// nobody comes")
    assert done.execution.limitations == ()
    assert done.output(1).tolist() == [0] * 64
    assert {site.certainty for site in done.execution.sites} == {Certainty.SCHEDULE_DEPENDENT}


def test_others_end_beside_a_loop_that_does_not() -> None:
    done = run(SOURCE, "nothing<<<1, 64>>>(i32[64])", _FEW)
    (hang,) = done.execution.hangs
    assert hang.message == "1 warp repeats a loop here in which nothing changes any more: the launch hangs"
    assert (_line_of(done, hang), hang.is_certain) == (find_line(SOURCE, "// for no reason"), True)
    assert done.output(0).tolist() == [0] * 32 + [1] * 32


def test_loop_that_counts_meets_the_step_limit() -> None:
    with pytest.raises(StepLimitError) as caught:
        run(SOURCE, "counts<<<1, 32>>>(i32[1], i32[32])", _FEW)
    assert f"test.cu:{find_line(SOURCE, '// counts')}" in str(caught.value)


@pytest.mark.parametrize("blocks", [5, 264])
def test_blocks_of_different_batches_wait_for_each_other(blocks: int) -> None:
    options = ExecutionOptions(step_limit=20_000, budget_bytes=512 << 20)
    done = run(SOURCE, f"grid_wide<<<{blocks}, 256>>>(u32[1], i32[{blocks}], i32[{blocks}])", options)
    assert (done.execution.limitations, done.execution.hangs) == ((), ())
    np.testing.assert_array_equal(done.output(2), np.roll(np.arange(blocks) + 1, -1))


@pytest.mark.parametrize(
    ("launch", "comment"),
    [
        ("grid_wide<<<5, 256>>>(u32[1], i32[5], i32[5])", "// for all blocks"),
        ("polled<<<5, 32>>>(u32[1], i32[160])", "// asks again"),
    ],
)
def test_how_often_others_are_looked_at_depends_on_the_order_also_if_once_was_enough(launch: str, comment: str) -> None:
    """In one pass of the profiler an H200 looked 48 times, in another 99 (`pass_on` of tests/measured/unseen)."""
    done = run(SOURCE, launch, _FEW)
    (site,) = done.sites_at(find_line(SOURCE, comment))
    assert (site.executed, site.certainty) == (5, Certainty.SCHEDULE_DEPENDENT)


def test_a_volatile_load_sees_the_order_of_atomic_updates_and_of_nothing_else() -> None:
    done = run(SOURCE, "looked_once<<<4, 32>>>(u32[1], u32[1]=arange, i32[2])", _FEW)
    adds, doubtful = (done.sites_at(find_line(SOURCE, comment)) for comment in ("// adds", "// as it happens"))
    assert [site.certainty for site in adds] == [Certainty.EXACT]
    stores = [site for site in doubtful if site.access.operation is Operation.STORE]
    assert [site.certainty for site in stores] == [Certainty.SCHEDULE_DEPENDENT]
    (sure,) = done.sites_at(find_line(SOURCE, "// for sure"))
    assert sure.certainty is Certainty.EXACT


def test_blocks_that_do_not_fit_on_the_device_together_hang() -> None:
    done = run(SOURCE, "grid_wide<<<300, 1024>>>(u32[1], i32[300], i32[300])", _FEW)
    # An H200 holds 264 blocks of 1024 threads.
    line = find_line(SOURCE, "// for all blocks")
    (spins,) = [hang for hang in done.execution.hangs if _line_of(done, hang) == line]
    assert spins.message.endswith("hangs unless one of the last 36 blocks, which do not fit beside, ends it")
    assert (spins.waiting, spins.warps, spins.is_certain) == (Waiting.LOOP, 264, False)


@pytest.mark.parametrize(
    ("block", "resident"),
    [
        # Of 228 KiB an SM holds 4 blocks with 50 KiB and the driver's KiB each, 2 with 100 KiB.
        ((96, 50 << 10), 4 * 132),
        ((32, 100 << 10), 2 * 132),
    ],
)
def test_as_many_blocks_meet_as_the_device_holds(block: tuple[int, int], resident: int) -> None:
    threads, shared = block
    for blocks, hangs in ((resident, False), (resident + 1, True)):
        launch = f"grid_wide<<<{blocks}, {threads}, {shared}>>>(u32[1], i32[{blocks}], i32[{blocks}])"
        done = run(SOURCE, launch, _FEW)
        assert done.execution.limitations == ()
        assert bool(done.execution.hangs) == hangs
        assert not any(hang.is_certain for hang in done.execution.hangs)
        if not hangs:
            np.testing.assert_array_equal(done.output(2), np.roll(np.arange(blocks) + 1, -1))


def test_registers_limit_how_many_blocks_meet() -> None:
    """255 registers in each of 256 threads: one block an SM."""
    bound = run(SOURCE, "grid_wide<<<2, 256>>>(u32[1], i32[2], i32[2])", _FEW).bound
    needs = replace(bound.kernel.resources, registers_per_thread=255)
    kernel = replace(bound.kernel, resources=needs)
    for blocks, hangs in ((132, False), (133, True)):
        launch = parse_launch(f"grid_wide<<<{blocks}, 256>>>(u32[1], i32[{blocks}], i32[{blocks}])")
        execution = execute(bind(kernel, launch, bound.device), _FEW)
        assert bool(execution.hangs) == hangs


def test_blocks_for_which_memory_is_lacking_here_may_end_a_wait() -> None:
    small = ExecutionOptions(step_limit=20_000, budget_bytes=8 << 20)
    done = run(SOURCE, "grid_wide<<<264, 256>>>(u32[1], i32[264], i32[264])", small)
    assert done.execution.hangs == ()
    said = _said(done, "// for all blocks")
    assert said
    assert all("for want of memory they were not run beside these" in each for each in said)


def test_a_wait_on_what_is_not_known_is_no_hang_but_a_limitation() -> None:
    done = run(SOURCE, "clocked<<<1, 64>>>(i32[1], i32[64])", _FEW)
    assert done.execution.hangs == ()
    (said,) = _said(done, "// perhaps")
    assert "the launch hangs, as far as known. It may wait for something that is not known here" in said


def test_a_wait_that_began_with_unset_memory_is_not_certain() -> None:
    done = run(SOURCE, "unset<<<1, 32>>>(i32[32])", _FEW)
    (hang,) = done.execution.hangs
    assert (hang.waiting, hang.warps, hang.is_certain) == (Waiting.LOOP, 1, False)
    assert "the launch hangs if what led there is as assumed" in hang.message


def test_warps_that_wait_for_ever_are_added_up_over_batches() -> None:
    blocks = 2 * LANES_IN_BATCH // 32 + 3
    done = run(SOURCE, f"named<<<{blocks}, 32>>>(i32[32])", _FEW)
    (hang,) = done.execution.hangs
    assert hang.message == f"{blocks:,} warps wait here for the block's barrier: the launch hangs"
    assert (hang.waiting, hang.warps, hang.is_certain) == (Waiting.BLOCK_BARRIER, blocks, True)


def test_each_block_may_wait_for_the_next() -> None:
    done = run(SOURCE, "backwards<<<400, 512>>>(i32[400])", ExecutionOptions(step_limit=200_000))
    np.testing.assert_array_equal(done.output(0), 400 - np.arange(400))


def test_loop_whose_lanes_part_inside_waits_for_others() -> None:
    done = run(SOURCE, "parted<<<1, 64>>>(i32[1], i32[64])", ExecutionOptions(step_limit=60_000))
    assert done.output(1)[:32].tolist() == [7] * 32


def test_ordinary_loop_is_no_spin() -> None:
    done = run(SOURCE, "long_and_dull<<<2, 64>>>(i32[64], 1000)", _FEW)
    v = np.int32(0)
    with np.errstate(over="ignore"):
        for i in range(1000):
            v = v * np.int32(3) + np.int32(i)
    assert done.output(0).tolist() == [int(v)] * 64
    assert {site.certainty for site in done.execution.sites} == {Certainty.EXACT}
