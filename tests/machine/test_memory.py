from __future__ import annotations

import numpy as np
import pytest

from sectorwise.machine.execution import FaultKind
from tests.machine.launching import find_line, run, run_assembly

SOURCE = r"""
extern "C" __global__ void beyond(const float* in, float* out, int shift) {
  int i = blockIdx.x * 64 + threadIdx.x;
  float v = in[i + shift];          // reads
  out[i] = v + 1;                   // writes
}
extern "C" __global__ void outside(float* out, int shift) {
  out[(int)threadIdx.x + shift] = 1;  // stores
}
extern "C" __global__ void crooked(const char* in, int* out, int shift) {
  out[threadIdx.x] = *(const int*)(in + 4 * threadIdx.x + shift * (threadIdx.x == 5));  // one is odd
}
extern "C" __global__ void small_block(int* out, int at) {
  __shared__ int values[64];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x + at];   // shared read
}
extern "C" __global__ void widths(const unsigned char* in, unsigned char* out) {
  int t = threadIdx.x;
  ((signed char*)out)[t] = ((const signed char*)in)[t] >> 1;
  ((short*)(out + 256))[t] = ((const short*)(in + 256))[t] >> 1;
  ((unsigned short*)(out + 512))[t] = ((const unsigned short*)(in + 512))[t] + 1;
  ((long long*)(out + 1024))[t] = ((const long long*)(in + 1024))[t] - 1;
  int4 v = ((const int4*)(in + 2048))[t];
  ((int4*)(out + 2048))[t] = make_int4(v.w, v.z, v.y, v.x);
}
extern "C" __global__ void same_place(int* out) { out[threadIdx.x / 40] = threadIdx.x; }
__device__ __noinline__ int pick(const int* p) { return *p; }
extern "C" __global__ void generic(const int* in, int* out) {
  __shared__ int values[32];
  int mine[4];
  for (int i = 0; i < 4; ++i) mine[i] = in[threadIdx.x] + i;
  values[threadIdx.x] = 1000 + threadIdx.x;
  __syncthreads();
  int k = threadIdx.x % 3;
  const int* p = k == 0 ? in + threadIdx.x : k == 1 ? &values[threadIdx.x ^ 1] : &mine[threadIdx.x % 4];
  out[threadIdx.x] = pick(p);
}
extern "C" __global__ void spill(const int* in, int* out) {
  int stack[100];
  #pragma unroll 1
  for (int i = 0; i < 100; ++i) stack[i] = in[(threadIdx.x + i) % 64] * i;
  int at = in[threadIdx.x] % 24;
  stack[(at + 5) % 24] += 7;
  out[threadIdx.x] = stack[at] + stack[(at + 5) % 24];
}
extern "C" __global__ void stage(const float* in, float* out) {
  __shared__ __align__(16) float values[128];
  unsigned to = __cvta_generic_to_shared(values + 4 * threadIdx.x);
  int bytes = threadIdx.x % 5 * 4;
  const float* from = in + 4 * (31 - threadIdx.x);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes));
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (int i = 0; i < 4; ++i) out[threadIdx.x + 32 * i] = values[threadIdx.x + 32 * i];
}
extern "C" __global__ void matrix(const unsigned short* in, unsigned* out) {
  __shared__ __align__(16) unsigned short tile[32 * 8];
  for (int i = 0; i < 8; ++i) tile[threadIdx.x * 8 + i] = in[threadIdx.x * 8 + i];
  __syncwarp();
  unsigned from = __cvta_generic_to_shared(tile + threadIdx.x * 8), a, b, c, d, e;
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
    : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(from));
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(e) : "r"(from));
  out[threadIdx.x] = a; out[32 + threadIdx.x] = b; out[64 + threadIdx.x] = c; out[96 + threadIdx.x] = d;
  out[128 + threadIdx.x] = e;
}
"""


def test_read_beyond_the_end_is_a_fault_and_the_run_goes_on() -> None:
    done = run(SOURCE, "beyond<<<2, 64>>>(f32[128]=arange, f32[128], 3)")
    (fault,) = done.execution.faults
    instruction = done.bound.kernel.instructions[fault.instruction]
    assert fault.kind is FaultKind.OUT_OF_BOUNDS
    assert instruction.location is not None
    assert instruction.location.line == find_line(SOURCE, "// reads")
    assert (fault.block, fault.warp, fault.lane, fault.occurrences) == ((1, 0, 0), 1, 29, 3)
    assert fault.address == done.bound.allocations[0].base + 512
    assert "0 bytes past the end of" in fault.message
    np.testing.assert_array_equal(done.output(1, np.float32)[:125], np.arange(4, 129, dtype=np.float32))
    np.testing.assert_array_equal(done.output(1, np.float32)[125:], 1)
    # What was read there is not known, but no address depends on it.
    assert done.execution.limitations == ()


def test_store_before_the_start_is_dropped() -> None:
    done = run(SOURCE, "outside<<<1, 32>>>(f32[64], -2)")
    (fault,) = done.execution.faults
    assert (fault.lane, fault.occurrences, fault.address) == (0, 2, done.bound.allocations[0].base - 8)
    assert "8 bytes before" in fault.message
    np.testing.assert_array_equal(done.output(0, np.float32), np.arange(64) < 30)


def test_misaligned_lane_is_a_fault_of_its_own() -> None:
    done = run(SOURCE, "crooked<<<1, 32>>>(u8[256]=arange, i32[32], 2)")
    (fault,) = done.execution.faults
    assert fault.kind is FaultKind.MISALIGNED
    assert (fault.lane, fault.occurrences, fault.width_bytes) == (5, 1, 4)
    expected = np.arange(128, dtype=np.uint8).view(np.int32)
    expected[5] = 0
    np.testing.assert_array_equal(done.output(1), expected)


def test_read_outside_of_shared_memory_is_a_fault() -> None:
    done = run(SOURCE, "small_block<<<3, 64>>>(i32[64], 10)")
    (fault,) = done.execution.faults
    assert (fault.kind, fault.block, fault.warp, fault.lane) == (FaultKind.OUT_OF_BOUNDS, (0, 0, 0), 1, 22)
    assert fault.occurrences == 3 * 10
    assert "shared memory" in fault.message
    np.testing.assert_array_equal(done.output(0), [*range(10, 64), *[0] * 10])


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_every_width_is_loaded_extended_and_stored(target: str) -> None:
    done = run(SOURCE, "widths<<<1, 64>>>(u8[4096]=uniform(3), u8[4096])", target=target)
    given, got = done.given(0), done.output(1, np.uint8)
    np.testing.assert_array_equal(got[:64].view(np.int8), given[:64].view(np.int8) >> 1)
    np.testing.assert_array_equal(got[256:384].view(np.int16), given[256:384].view(np.int16) >> 1)
    np.testing.assert_array_equal(got[512:640].view(np.uint16), given[512:640].view(np.uint16) + np.uint16(1))
    np.testing.assert_array_equal(got[1024:1536].view(np.int64), given[1024:1536].view(np.int64) - 1)
    quads = given[2048:3072].view(np.int32).reshape(-1, 4)
    np.testing.assert_array_equal(got[2048:3072].view(np.int32).reshape(-1, 4), quads[:, ::-1])


def test_of_lanes_that_store_to_one_place_the_highest_wins() -> None:
    done = run(SOURCE, "same_place<<<1, 128>>>(i32[4])")
    assert done.output(0).tolist() == [39, 79, 119, 127]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_generic_loads_reach_global_shared_and_local_memory(target: str) -> None:
    done = run(SOURCE, "generic<<<2, 32>>>(i32[32]=perm(1), i32[32])", target=target)
    given, lane = done.given(0), np.arange(32)
    expected = np.choose(lane % 3, [given, 1000 + (lane ^ 1), given + lane % 4])
    np.testing.assert_array_equal(done.output(1), expected)
    assert done.execution.faults == ()


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_local_memory_is_private_to_each_lane(target: str) -> None:
    done = run(SOURCE, "spill<<<3, 64>>>(i32[64]=perm(6), i32[64])", target=target)
    given = done.given(0)
    lane = np.arange(64)
    stack = np.stack([given[(lane + i) % 64] * i for i in range(24)], axis=1)
    at = given % 24
    stack[lane, (at + 5) % 24] += 7
    np.testing.assert_array_equal(done.output(1), stack[lane, at] + stack[lane, (at + 5) % 24])
    assert any(site.sectors_local for site in done.execution.sites)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_async_copy_fills_what_lies_past_its_source_with_zeros(target: str) -> None:
    done = run(SOURCE, "stage<<<1, 32>>>(f32[128]=uniform(1), f32[128])", target=target)
    quads = done.given(0).reshape(32, 4)[::-1]
    kept = np.arange(4) < (np.arange(32) % 5)[:, None]
    np.testing.assert_array_equal(done.output(1, np.float32).reshape(32, 4), np.where(kept, quads, 0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_matrix_loads_spread_rows_over_lanes(target: str) -> None:
    done = run(SOURCE, "matrix<<<1, 32>>>(u16[256]=uniform(2), u32[160])", target=target)
    halves = done.given(0).reshape(4, 8, 8)
    got = done.output(1, np.uint16).reshape(5, 8, 4, 2)
    np.testing.assert_array_equal(got[:4], halves.reshape(4, 8, 4, 2))
    np.testing.assert_array_equal(got[4].reshape(8, 8), halves[0].T)


def test_faults_say_which_memory_they_missed() -> None:
    code = """
        S2R R0, SR_TID.X
        LDC.64 R2, c[0x0][0x210]
        LDC R1, c[0x0][0x28]
        LDC R4, c[0x0][0x20]
        LDC R5, c[0x0][0x24]
        IMAD.WIDE R6, R0, 0x4, R2
        LDL R8, [R1]
        LDL R8, [R1+-0x401]
        LD.E R8, [R4.64+0x1000004]
        LDG.E.64 R8, [R2.64+0x7c]
        LDG.E.64 R8, [R2.64+-0x8]
        LDG.E.U8 R8, [R2.64+0x80]
        LDS R8, [RZ+0x1500]
        STG.E [R6.64], R0
        EXIT
    """
    done = run_assembly(code, "k<<<1, 32>>>(i32[32])")
    messages = [fault.message for fault in done.execution.faults]
    assert "outside of the 1024 bytes of the thread's stack" in messages[0]
    assert "not a multiple of the access width, 4 bytes" in messages[1]
    assert "bytes past the end of" in messages[2]
    assert "not a multiple of the access width, 8 bytes" in messages[3]
    assert messages[4].startswith("8 bytes before")
    assert messages[5].startswith("0 bytes past the end of")
    assert "byte 4352 is outside of the 4096 bytes of the block's shared memory" in messages[6]
    assert all(fault.occurrences == 32 for fault in done.execution.faults)
    np.testing.assert_array_equal(done.output(0), np.arange(32))
