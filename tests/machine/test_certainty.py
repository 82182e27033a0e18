from __future__ import annotations

import numpy as np
import pytest

from sectorwise.counting.request import Operation
from sectorwise.machine.execution import Certainty, Site
from sectorwise.machine.program import make_step
from tests.machine.lanes import instruction
from tests.machine.launching import Run, find_line, run, run_assembly

SOURCE = r"""
extern "C" __global__ void clocked(const int* in, int* out) {
  unsigned start = clock();                 // the clock
  int v = in[threadIdx.x + (start & 7)];    // unknown load
  out[threadIdx.x] = v;                     // known store of an unknown value
  out[threadIdx.x + in[threadIdx.x]] = 1;   // known
}
extern "C" __global__ void through_memory(const int* in, int* out) {
  __shared__ int at[32];
  at[threadIdx.x] = clock();                // kept in shared memory
  __syncwarp();
  out[threadIdx.x] = in[at[threadIdx.x ^ 1] & 31];   // read through it
}
__device__ __noinline__ int twice(int v) { return 2 * v; }
__device__ __noinline__ int thrice(int v) { return 3 * v; }
__device__ int (*functions[2])(int) = {twice, thrice};
extern "C" __global__ void called(int* out) {
  out[threadIdx.x] = functions[clock() & 1](threadIdx.x);     // one or the other
  out[threadIdx.x + 32] = 1;                // whichever
}
extern "C" __global__ void astray(const int* in, const float* angles, int* out) {
  out[(int)(__expf(angles[threadIdx.x]) * 64)] = 1;            // by an exponential
  if (__sinf(angles[threadIdx.x]) > 0.1f) out[threadIdx.x + 64] = 1;   // if a sine says so
  __syncwarp();
  out[atomicAdd(out, 40)] = 1;              // as lanes come
  out[threadIdx.x + 48] = 1;                // for sure
  out[in[threadIdx.x] & 4095] = 1;          // by noise
}
extern "C" __global__ void smid(int* out) {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));    // which SM
  atomicAdd(out + id, 1);                   // a counter of that SM
}
extern "C" __global__ void inexact_branch(const float* in, float* out) {
  float v = __sinf(in[threadIdx.x]);
  if (v > 0.5f) out[threadIdx.x] = v;       // decided by a sine
  __syncwarp();
  out[threadIdx.x + 64] = 1;
}
extern "C" __global__ void inexact_address(const float* in, float* out) {
  int at = (int)(__expf(in[threadIdx.x]) * 4);
  out[at] = 1;                              // placed by an exponential
  out[threadIdx.x] = 2;                     // placed exactly
}
extern "C" __global__ void divided(const int* in, int* out, int n, unsigned m, long long l) {
  int i = threadIdx.x;
  out[i / n] = in[i % n];                   // signed
  out[64 + (unsigned)i / m] = in[(unsigned)i % m];   // unsigned
  out[128 + (long long)(i + (1ll << 40)) % l] = 1;   // long
}
extern "C" __global__ void inexact_values(const float* in, float* out) {
  out[threadIdx.x] = __expf(in[threadIdx.x]);
}
extern "C" __global__ void cleared(float* out, float* in) {
  __shared__ float kept[32];
  kept[threadIdx.x] = __sinf(in[threadIdx.x]);
  __syncwarp();
  kept[threadIdx.x] = threadIdx.x;          // overwritten by something known
  __syncwarp();
  out[(int)kept[31 - threadIdx.x]] = 1;     // so this is known again
}
extern "C" __global__ void unknown_branch(int* out) {
  if (clock() & 1) out[threadIdx.x] = 1;    // a coin
  out[threadIdx.x + 32] = 2;                // after the coin
}
extern "C" __global__ void unknown_way(volatile int* out) {
  out[threadIdx.x] = 1;                     // before the fork
  unsigned t = clock();                     // the fork
  if (t & 1) { for (int i = 0; i < 9; ++i) out[i] += t; __syncwarp(); }
  out[threadIdx.x + 32] = 2;                // after the fork
}
extern "C" __global__ void compact(const int* in, int* out, int* count) {
  int v = in[blockIdx.x * 64 + threadIdx.x];
  if (v % 3 == 0) out[atomicAdd(count, 1)] = v;      // draws a ticket
}
extern "C" __global__ void last_block(const int* in, int* out, unsigned* count) {
  __shared__ bool last;
  atomicAdd(out + blockIdx.x, in[threadIdx.x]);      // adds in front
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(count, 1u) == gridDim.x - 1;
  __syncthreads();
  if (last) out[threadIdx.x + 64] = out[threadIdx.x];    // the last one sums up
}
extern "C" __global__ void noisy(const int* in, const int* index, int* out) {
  out[threadIdx.x] = in[index[threadIdx.x] & 31];    // indexed by noise
}
extern "C" __global__ void half_sums(const unsigned* in, unsigned* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned old;
    asm volatile("atom.add.noftz.f16x2 %0, [%1], %2;" : "=r"(old) : "l"(out + i), "r"(in[i]) : "memory");
  }
}
extern "C" __global__ void exchanges(const long long* in, unsigned long long* out, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    unsigned long long old;
    asm volatile("atom.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(out + i), "l"(0ll), "l"(in[i]) : "memory");
  }
}
extern "C" __global__ void printing(int* out) {
  if (threadIdx.x == 3) printf("%d\n", out[0]);      // printed
  out[threadIdx.x] = 1;
}
"""


def _sites(done: Run, mark: str) -> list[Site]:
    found = done.sites_at(find_line(SOURCE, mark))
    assert found
    return found


def _certainties(done: Run) -> set[Certainty]:
    return {site.certainty for site in done.execution.sites}


def test_address_made_of_the_clock_is_unknown_and_says_why() -> None:
    done = run(SOURCE, "clocked<<<1, 32>>>(i32[64]=arange, i32[128])")
    (site,) = _sites(done, "// unknown load")
    assert site.executed == 1
    assert site.unknown_because is not None
    assert f"line {find_line(SOURCE, '// the clock')}" in site.unknown_because
    assert "clock" in site.unknown_because
    (stored,) = _sites(done, "// known store of an unknown value")
    assert (stored.unknown_because, stored.sectors, stored.certainty) == (None, 4, Certainty.EXACT)
    assert all(other.unknown_because is None for other in _sites(done, "// known"))
    assert [limitation.instruction for limitation in done.execution.limitations] == [site.instruction]


def test_unknown_value_is_followed_through_shared_memory() -> None:
    done = run(SOURCE, "through_memory<<<1, 32>>>(i32[64]=arange, i32[128])")
    unknown = [site for site in done.execution.sites if site.unknown_because is not None]
    assert len(unknown) == 1
    assert unknown[0] in _sites(done, "// read through it")
    assert f"line {find_line(SOURCE, '// kept in shared memory')}" in str(unknown[0].unknown_because)


def test_special_register_without_a_value_makes_an_atomic_unknown() -> None:
    done = run(SOURCE, "smid<<<2, 32>>>(i32[256])")
    (site,) = [site for site in done.execution.sites if site.unknown_because]
    assert "which SM a block runs on" in str(site.unknown_because)
    assert not done.output(0).any()


@pytest.mark.parametrize(
    "launch", ["half_sums<<<1, 32>>>(u32[64]=noise, u32[64], 64)", "exchanges<<<1, 32>>>(i64[64]=noise, u64[64], 64)"]
)
def test_whether_a_generic_atomic_was_done_is_as_sure_as_its_address(launch: str) -> None:
    done = run(SOURCE, launch)
    atomics = [site for site in done.execution.sites if site.access.operation is Operation.ATOMIC]
    assert [(site.executed, site.lanes) for site in atomics if site.executed] == [(2, 64)]
    assert _certainties(done) == {Certainty.EXACT}


def test_branch_on_an_inexact_value_makes_what_follows_assumed() -> None:
    done = run(SOURCE, "inexact_branch<<<1, 32>>>(f32[32]=arange, f32[96])")
    (load,) = [site for site in done.execution.sites if site.access.operation == "load"]
    assert load.certainty is Certainty.EXACT
    (store,) = _sites(done, "// decided by a sine")
    assert store.certainty is Certainty.ASSUMED
    assert store.unknown_because is None
    assert store.lanes == int((np.sin(np.arange(32)) > 0.5).sum())


def test_inexact_address_is_counted_as_assumed() -> None:
    done = run(SOURCE, "inexact_address<<<1, 32>>>(f32[32], f32[64])")
    (site,) = _sites(done, "// placed by an exponential")
    assert (site.certainty, site.sectors) == (Certainty.ASSUMED, 1)
    (other,) = _sites(done, "// placed exactly")
    assert (other.certainty, other.sectors) == (Certainty.EXACT, 4)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_integer_division_is_exact_though_it_uses_a_reciprocal(target: str) -> None:
    done = run(SOURCE, "divided<<<1, 64>>>(i32[64]=arange, i32[512], 7, 5, 11)", target=target)
    assert _certainties(done) == {Certainty.EXACT}
    assert done.execution.limitations == ()
    expected = np.zeros(512, np.int32)
    for i in range(64):
        expected[i // 7] = i % 7
        expected[64 + i // 5] = i % 5
    for i in range(64):
        expected[128 + (i + (1 << 40)) % 11] = 1
    np.testing.assert_array_equal(done.output(1), expected)


def test_inexact_values_that_are_only_stored_leave_counts_exact() -> None:
    done = run(SOURCE, "inexact_values<<<1, 32>>>(f32[32]=arange, f32[32])")
    assert _certainties(done) == {Certainty.EXACT}


def test_a_known_value_wipes_out_an_inexact_one_in_memory() -> None:
    done = run(SOURCE, "cleared<<<1, 32>>>(f32[32], f32[32]=arange)")
    assert {site.certainty for site in _sites(done, "// so this is known again")} == {Certainty.EXACT}
    np.testing.assert_array_equal(done.output(0, np.float32), 1)


def test_unknown_condition_is_a_limitation_and_not_taken() -> None:
    done = run(SOURCE, "unknown_branch<<<1, 32>>>(i32[64])")
    (after,) = _sites(done, "// after the coin")
    assert after.unknown_because is None
    assert after.certainty is Certainty.EXACT  # the coin is a guard here: nobody's way depends on it
    assert any("clock" in limitation.because for limitation in done.execution.limitations)
    np.testing.assert_array_equal(done.output(0), [0] * 32 + [2] * 32)


def test_way_that_depends_on_an_unknown_value_makes_what_follows_assumed() -> None:
    done = run(SOURCE, "unknown_way<<<1, 32>>>(i32[64])")
    (before,) = _sites(done, "// before the fork")
    (after,) = _sites(done, "// after the fork")
    assert (before.certainty, after.certainty) == (Certainty.EXACT, Certainty.ASSUMED)
    because = [limitation.because for limitation in done.execution.limitations]
    assert len(because) == 1
    assert "taken not to" in because[0]
    assert f"line {find_line(SOURCE, '// the fork')}" in because[0]


def test_what_an_unknown_guard_may_have_written_is_unknown() -> None:
    code = """
        S2R R0, SR_TID.X
        CS2R.32 R1, SR_CLOCKLO
        LDC.64 R2, c[0x0][0x210]
        ISETP.GT.AND P0, PT, R1, 0x7, PT
        IMAD.MOV.U32 R4, RZ, RZ, 0x1
        @P0 MOV R0, 0x5
        IMAD.WIDE R2, R0, 0x4, R2
        @P0 STG.E [R2.64+0x80], R4
        STG.E [R2.64], R4
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[64])")
    guarded, plain = done.execution.sites
    assert (guarded.executed, plain.executed) == (1, 1)
    for site in (guarded, plain):
        assert "CS2R at line 2" in str(site.unknown_because)
    assert not done.output(0).any()


def test_opcode_that_is_not_known_makes_its_results_unknown() -> None:
    code = """
        S2R R0, SR_TID.X
        LDC.64 R2, c[0x0][0x210]
        FROBNICATE.WIDE R4, R0, 0x3
        IMAD.WIDE R6, R4, 0x4, R2
        STG.E [R6.64], R0
        IMAD.WIDE R8, R0, 0x4, R2
        STG.E [R8.64], R4
        LDG.FROBNICATE R9, [R8.64]
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[64])")
    placed, plain, loaded = done.execution.sites
    assert placed.unknown_because == "R4 comes from FROBNICATE at line 3: FROBNICATE is not known"
    assert (plain.unknown_because, plain.certainty, plain.sectors) == (None, Certainty.EXACT, 4)
    assert loaded.executed == 1
    assert (2, "FROBNICATE is not known: its results are taken as unknown") in {
        (limitation.instruction, limitation.because) for limitation in done.execution.limitations
    }


def test_place_drawn_from_a_counter_depends_on_the_schedule() -> None:
    done = run(SOURCE, "compact<<<4, 64>>>(i32[256]=perm(1), i32[256], i32[1])")
    load, draw, store = done.execution.sites
    assert (load.certainty, draw.certainty) == (Certainty.EXACT, Certainty.EXACT)
    assert store.certainty is Certainty.SCHEDULE_DEPENDENT
    kept = done.given(0)[done.given(0) % 3 == 0]
    assert sorted(done.output(1)[: kept.size]) == sorted(kept)


def test_what_the_last_block_does_depends_on_the_schedule() -> None:
    done = run(SOURCE, "last_block<<<5, 64>>>(i32[64]=arange, i32[128], u32[1])")
    assert {site.certainty for site in _sites(done, "// adds in front")} == {Certainty.EXACT}
    late = _sites(done, "// the last one sums up")
    assert {site.certainty for site in late if site.access.space == "global"} == {Certainty.SCHEDULE_DEPENDENT}
    assert [site.executed for site in late if site.access.space == "global"] == [2, 2]
    assert done.output(1)[64:69].tolist() == [2016] * 5


def test_contents_that_are_noise_make_addresses_assumed() -> None:
    done = run(SOURCE, "noisy<<<1, 32>>>(i32[32], i32[32]=noise, i32[32])")
    found = {site.certainty for site in _sites(done, "// indexed by noise")}
    assert found == {Certainty.EXACT, Certainty.ASSUMED}


def test_external_function_is_stepped_over_by_name() -> None:
    done = run(SOURCE, "printing<<<1, 32>>>(i32[32])")
    (limitation,) = done.execution.limitations
    location = done.bound.kernel.instructions[limitation.instruction].location
    assert location is not None
    assert location.line == find_line(SOURCE, "// printed")
    assert "vprintf" in limitation.because
    np.testing.assert_array_equal(done.output(0), 1)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_call_of_one_of_several_functions_is_not_guessed(target: str) -> None:
    done = run(SOURCE, "called<<<1, 32>>>(i32[64])", target=target)
    said = [limitation.because for limitation in done.execution.limitations]
    assert "the call of a function that is not known is stepped over: what it does is not seen" in said
    (after,) = done.sites_at(find_line(SOURCE, "// whichever"))
    assert (after.executed, after.lanes) == (1, 32)
    np.testing.assert_array_equal(done.output(0)[32:], 1)


def test_address_of_a_copy_is_made_of_the_registers_it_names() -> None:
    step = make_step(instruction("LDGSTS.E.BYPASS.128 [R35+0x10], desc[UR6][R32.64]"))
    assert step.address_slots == (35, 32, 33)


def test_faults_are_as_sure_as_their_addresses() -> None:
    done = run(SOURCE, "astray<<<1, 32>>>(i32[32]=noise, f32[32]=arange, i32[64])")
    found = {}
    for mark in ("// by an exponential", "// if a sine says so", "// as lanes come", "// for sure", "// by noise"):
        instructions = {site.instruction for site in done.sites_at(find_line(SOURCE, mark))}
        found[mark] = {fault.certainty for fault in done.execution.faults if fault.instruction in instructions}
    assert found == {
        "// by an exponential": {Certainty.ASSUMED},
        "// if a sine says so": {Certainty.ASSUMED},
        "// as lanes come": {Certainty.SCHEDULE_DEPENDENT},
        "// for sure": {Certainty.EXACT},
        "// by noise": {Certainty.ASSUMED},
    }
    for fault in done.execution.faults:
        assert ("assumed" in fault.message) == (fault.certainty is Certainty.ASSUMED)
        assert ("order of warps" in fault.message) == (fault.certainty is Certainty.SCHEDULE_DEPENDENT)


def test_jump_to_where_nobody_knows_leaves_the_kernel() -> None:
    code = """
      LDC.64 R2, c[0x0][0x210]
      S2R R4, SR_LANEID
      IMAD.WIDE.U32 R2, R4, 0x4, R2
      CS2R.32 R6, SR_CLOCKLO
      STG.E desc[UR4][R2.64], R4
      BRX R6 -0x60
      STG.E desc[UR4][R2.64+0x80], R4
      EXIT
    """
    done = run_assembly(code, "jumped<<<1, 32>>>(i32[64])")
    np.testing.assert_array_equal(done.output(0), [*range(32), *([0] * 32)])
    said = " ".join(limitation.because for limitation in done.execution.limitations)
    assert "whether lanes go this way is not known" in said
    assert "some lanes jumped to a place that is not in the kernel" in said
