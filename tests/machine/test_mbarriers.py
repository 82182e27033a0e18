from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.machine.arrivals import WITH_TRANSACTIONS, WITHOUT_TRANSACTIONS, Arrivals, advance, arrive_in_turn
from sectorwise.machine.execution import Certainty, FaultKind, Site, Waiting
from tests.machine.launching import Run, find_line, run, run_assembly

SOURCE = r"""
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
__device__ void begin(unsigned bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}
__device__ unsigned long long arrive(unsigned bar) {
  unsigned long long token;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(bar) : "memory");
  return token;
}
__device__ bool ended(unsigned bar, unsigned long long token) {
  unsigned yes;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(yes) : "r"(bar), "l"(token) : "memory");
  return yes;
}
__device__ bool ended_parity(unsigned bar, unsigned parity) {
  unsigned yes;
#if __CUDA_ARCH__ >= 900
  asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(yes) : "r"(bar), "r"(parity) : "memory");
#else
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(yes) : "r"(bar), "r"(parity) : "memory");
#endif
  return yes;
}
extern "C" __global__ void exchanged(const float* in, float* out, int rounds) {
  __shared__ float tile[256];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) begin(SHARED(&bar), blockDim.x);
  __syncthreads();
  for (int k = 0; k < rounds; ++k) {
    tile[threadIdx.x] = in[k * 256 + threadIdx.x];
    unsigned long long token = arrive(SHARED(&bar));
    while (!ended(SHARED(&bar), token)) { }
    out[k * 256 + threadIdx.x] = tile[255 - threadIdx.x];      // turned
    token = arrive(SHARED(&bar));
    while (!ended(SHARED(&bar), token)) { }
  }
}
extern "C" __global__ void copied(const float4* in, float4* out) {
  __shared__ float4 tile[128];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) begin(SHARED(&bar), 128);
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(SHARED(tile + threadIdx.x)), "l"(in + threadIdx.x));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(SHARED(&bar)));
  while (!ended_parity(SHARED(&bar), 0)) { }
  out[threadIdx.x] = tile[127 - threadIdx.x];
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(SHARED(tile + threadIdx.x)),
               "l"(in + threadIdx.x + 128));
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" :: "r"(SHARED(&bar)));
  arrive(SHARED(&bar));
  while (!ended_parity(SHARED(&bar), 1)) { }
  out[threadIdx.x + 128] = tile[127 - threadIdx.x];
}
extern "C" __global__ void handed(float* out) {
  __shared__ float value;
  __shared__ unsigned long long full;
  if (threadIdx.x == 0) begin(SHARED(&full), 1);
  __syncthreads();
  if (threadIdx.x < 32) {
    while (!ended_parity(SHARED(&full), 0)) { }
    out[threadIdx.x] = value;                              // once handed over
  } else if (threadIdx.x == 32) {
    value = out[32];
    arrive(SHARED(&full));
  }
}
extern "C" __global__ void forgotten(float* out) {
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) begin(SHARED(&bar), 33);
  __syncthreads();
  arrive(SHARED(&bar));
  while (!ended_parity(SHARED(&bar), 0)) { }
  out[threadIdx.x] = 1;
}
"""

BULK = r"""
#define SHARED(p) ((unsigned)__cvta_generic_to_shared(p))
__device__ void begin(unsigned bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), "r"(count) : "memory");
}
__device__ void wait(unsigned bar, unsigned parity) {
  unsigned yes = 0;
  while (!yes)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(bar), "r"(parity) : "memory");
}
__device__ void expect(unsigned bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(bytes) : "memory");
}
__device__ void fetch(void* to, const void* from, int bytes, unsigned bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :: "r"(SHARED(to)), "l"(from), "r"(bytes), "r"(bar) : "memory");
}
extern "C" __global__ void piped(const float* in, float* out, int rounds) {
  __shared__ __align__(128) float tile[2][1024];
  __shared__ unsigned long long full[2], empty[2];
  if (threadIdx.x == 0)
    for (int s = 0; s < 2; ++s) { begin(SHARED(&full[s]), 1); begin(SHARED(&empty[s]), 128); }
  __syncthreads();
  if (threadIdx.x >= 128) {
    if (threadIdx.x == 128)
      for (int k = 0; k < rounds; ++k) {
        wait(SHARED(&empty[k % 2]), (k / 2 & 1) ^ 1);
        expect(SHARED(&full[k % 2]), 4096);
        fetch(tile[k % 2], in + k * 1024, 4096, SHARED(&full[k % 2]));
      }
  } else
    for (int k = 0; k < rounds; ++k) {
      wait(SHARED(&full[k % 2]), k / 2 & 1);
      for (int i = threadIdx.x; i < 1024; i += 128) out[k * 1024 + i] = tile[k % 2][i] * 2;   // consumed
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(SHARED(&empty[k % 2])) : "memory");
    }
}
extern "C" __global__ void returned(const float* in, float* out) {
  __shared__ __align__(128) float tile[512];
  for (int i = threadIdx.x; i < 512; i += 64) tile[i] = in[i] + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 2048;"
                 :: "l"(out), "r"(SHARED(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
extern "C" __global__ void beyond(const float* in, float* out) {
  __shared__ __align__(128) float tile[512];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    begin(SHARED(&bar), 1);
    expect(SHARED(&bar), 2048);
    fetch(tile, in, 2048, SHARED(&bar));                     // 1,024 bytes too many
  }
  __syncthreads();
  wait(SHARED(&bar), 0);
  out[threadIdx.x] = tile[threadIdx.x];
}
extern "C" __global__ void tiled(const void* map, float* out, int late) {
  __shared__ __align__(128) int tile[512];
  __shared__ unsigned long long bar;
  if (threadIdx.x == 0) {
    begin(SHARED(&bar), 1);
    if (!late) expect(SHARED(&bar), 2048);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %2}], [%3];"
                 :: "r"(SHARED(tile)), "l"(map), "r"(0), "r"(SHARED(&bar)) : "memory");
    if (late) expect(SHARED(&bar), 2048);
  }
  __syncthreads();
  wait(SHARED(&bar), 0);
  out[threadIdx.x] = 1;                                    // after the tile
  out[tile[threadIdx.x] & 31] = 2;                         // placed by the tile
}
"""


def _sites(done: Run, source: str, mark: str, operation: str) -> list[Site]:
    found = [site for site in done.sites_at(find_line(source, mark)) if site.access.operation == operation]
    assert found
    return found


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_block_meets_at_its_own_barrier(target: str) -> None:
    done = run(SOURCE, "exchanged<<<2, 256>>>(f32[1024]=arange, f32[1024], 4)", target=target)
    expected = np.arange(1024, dtype=np.float32).reshape(4, 256)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(done.output(1, np.float32), expected)
    assert done.execution.limitations == ()
    (store,) = _sites(done, SOURCE, "// turned", "store")
    assert (store.executed, store.certainty) == (2 * 8 * 4, Certainty.EXACT)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_copies_arrive_at_barriers(target: str) -> None:
    done = run(SOURCE, "copied<<<1, 128>>>(f32[1024]=arange, f32[1024])", target=target)
    expected = np.arange(1024, dtype=np.float32).reshape(2, 128, 4)[:, ::-1].reshape(-1)
    np.testing.assert_array_equal(done.output(1, np.float32), expected)
    assert done.execution.limitations == ()


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_one_warp_waits_for_what_another_hands_over(target: str) -> None:
    done = run(SOURCE, "handed<<<3, 64>>>(f32[64]=arange)", target=target)
    np.testing.assert_array_equal(done.output(0, np.float32)[:32], np.full(32, 32, np.float32))
    assert done.execution.limitations == ()
    (store,) = _sites(done, SOURCE, "// once handed over", "store")
    assert (store.executed, store.certainty) == (3, Certainty.EXACT)


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_barrier_that_never_ends_is_said(target: str) -> None:
    done = run(SOURCE, "forgotten<<<1, 32>>>(f32[32])", target=target)
    (hang,) = done.execution.hangs
    assert (hang.waiting, hang.is_certain) == (Waiting.LOOP if target == "sm_80" else Waiting.MBARRIER, True)
    assert "the launch hangs" in hang.message
    assert ("for an mbarrier whose phase does not end" in hang.message) == (target != "sm_80")
    assert done.execution.limitations == ()
    assert not done.output(0, np.float32).any()


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
def test_bulk_copies_pipelined_by_one_thread(target: str) -> None:
    done = run(BULK, "piped<<<2, 160>>>(f32[8192]=arange, f32[8192], 7)", target=target)
    expected = np.where(np.arange(8192) < 7168, 2 * np.arange(8192), 0).astype(np.float32)
    np.testing.assert_array_equal(done.output(1, np.float32), expected)
    stores = _sites(done, BULK, "// consumed", "store")
    assert {store.certainty for store in stores} == {Certainty.EXACT}
    assert sum(store.lanes for store in stores) == 2 * 7 * 1024
    assert done.execution.limitations == ()
    bulk = done.execution.bulk
    assert (sum(each.copies for each in bulk), sum(each.asked_bytes for each in bulk)) == (14, 14 * 4096)
    assert sum(each.sectors for each in bulk) == sum(each.sectors_ideal for each in bulk) == 1792
    assert {(each.row_bytes, each.certainty) for each in bulk} == {(4096, Certainty.EXACT)}
    # Two stages of 4 KiB in turn.
    assert len({place for each in bulk for place in each.landings}) == 2


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
def test_bulk_copy_back(target: str) -> None:
    done = run(BULK, "returned<<<1, 64>>>(f32[512]=arange, f32[512])", target=target)
    np.testing.assert_array_equal(done.output(1, np.float32), np.arange(1, 513, dtype=np.float32))


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
def test_bulk_copy_out_of_bounds(target: str) -> None:
    done = run(BULK, "beyond<<<1, 32>>>(f32[256]=arange, f32[32])", target=target)
    (fault,) = done.execution.faults
    assert (fault.kind, fault.occurrences) == (FaultKind.OUT_OF_BOUNDS, 1024 // 16)
    location = done.bound.kernel.instructions[fault.instruction].location
    assert location is not None
    assert find_line(BULK, "// 1,024 bytes too many") in {location.line, *(each.line for each in location.inlined_at)}
    np.testing.assert_array_equal(done.output(1, np.float32), np.arange(32, dtype=np.float32))


@pytest.mark.parametrize("target", ["sm_90", "sm_120"])
@pytest.mark.parametrize("late", [0, 1])
def test_tile_of_a_tensor_map_is_unknown_and_waited_for(target: str, late: int) -> None:
    done = run(BULK, f"tiled<<<1, 32>>>(f32[64], f32[32], {late})", target=target)
    (after,) = _sites(done, BULK, "// after the tile", "store")
    assert (after.executed, after.unknown_because) == (1, None)
    (placed,) = _sites(done, BULK, "// placed by the tile", "store")
    assert placed.unknown_because is not None
    assert "what a tensor map names is not known" in placed.unknown_because
    assert not any("hangs" in limitation.because for limitation in done.execution.limitations)
    assert done.execution.hangs == ()


STRANGE = (
    "SYNCS.SOMETHING R2, R4",
    "SYNCS.SOMETHING R2, [R4], R6",
    "SYNCS.ARRIVE.TRANS64.A1T0 R2, [R4]",
    "SYNCS.PHASECHK.TRANS64 P0",
    "ARRIVES.LDGSTSBAR.64",
    "UBLKCP.S.G [UR4]",
    "UBLKCP.S.G",
    "UBLKRED.G.S.ADD.F32.RN [UR4], [UR6]",
    "UTMALDG.2D",
    "UTMASTG",
    "UTCBAR",
    "STAS R2",
)


@pytest.mark.parametrize("text", STRANGE)
def test_forms_that_nobody_has_seen_are_told_and_passed(text: str) -> None:
    code = f"""
      LDC.64 R8, c[0x0][0x210]
      S2R R10, SR_LANEID
      IMAD.WIDE.U32 R8, R10, 0x4, R8
      {text}
      STG.E desc[UR4][R8.64], R10
      EXIT
    """
    done = run_assembly(code, "strange<<<1, 32>>>(i32[32])")
    np.testing.assert_array_equal(done.output(0), np.arange(32))
    said = {limitation.instruction for limitation in done.execution.limitations}
    assert 3 in said or text.startswith(("SYNCS.ARRIVE", "UTCBAR"))


def _start(count: int, *, transactions: bool) -> int:
    """The word that compiled code makes for a barrier that `count` threads arrive at."""
    if transactions:
        field = (1 << 20) - count
        return field << 43 | field << 1
    return (1 << 31) - count << 32 | (1 << 30) - count


class _Barrier:
    """A barrier, step by step, as PTX describes it."""

    def __init__(self, count: int) -> None:
        self.expected = self.pending = count
        self.under_way = self.phase = 0

    def arrive(self, arrivals: int, amount: int, leaving: int) -> None:
        self.under_way += amount
        self.expected -= leaving
        self.pending -= arrivals
        if self.pending == 0 and self.under_way == 0:
            self.phase ^= 1
            self.pending = self.expected


_NAMES = st.sampled_from(["arrive", "expect", "complete", "both", "drop"])
_STEPS = st.lists(st.tuples(_NAMES, st.integers(1, 64)), max_size=40)


@given(count=st.integers(1, 5), steps=_STEPS, transactions=st.booleans(), together=st.booleans())
def test_barriers_are_what_they_are_step_by_step(
    count: int, steps: list[tuple[str, int]], *, transactions: bool, together: bool
) -> None:
    model = _Barrier(count)
    rows: list[tuple[int, int, int]] = []
    parities: list[int] = []
    for name, amount in steps:
        row = {
            "arrive": (1, 0, 0),
            "expect": (0, amount, 0),
            "complete": (0, -min(amount, max(model.under_way, 0)), 0),
            "both": (1, amount, 0),
            "drop": (1, 0, 1),
        }[name]
        useless = row == (0, 0, 0) or (not transactions and row[1]) or (row[2] and model.expected == 1)
        # To arrive where nobody is awaited any more is undefined.
        if useless or (row[0] and model.pending == 0):
            continue
        parities.append(model.phase)
        rows.append(row)
        model.arrive(*row)
    layout = WITH_TRANSACTIONS if transactions else WITHOUT_TRANSACTIONS
    memory = np.array([7, _start(count, transactions=transactions)], np.uint64)
    given_rows = np.array(rows, np.int64).reshape(-1, 3)
    seen = np.empty(len(rows), np.uint64)
    cells = np.ones(len(rows), np.int64)
    if together and not given_rows[:, 1].any() and len(rows) <= count:
        if rows:
            seen = arrive_in_turn(memory, cells, Arrivals(*given_rows.T), layout)
    else:
        for at in range(len(rows)):
            seen[at : at + 1] = arrive_in_turn(memory, cells[:1], Arrivals(*given_rows[at : at + 1].T), layout)
    assert [int(word) >> 63 for word in seen] == parities
    assert int(memory[1]) >> 63 == model.phase
    assert int(memory[0]) == 7
    nothing = np.zeros(1, np.int64)
    np.testing.assert_array_equal(advance(memory[1:], Arrivals(nothing, nothing, nothing), layout), memory[1:])


NOT_COMPLETING = r"""
extern "C" __global__ void in_part(unsigned long long* out) {
  __shared__ unsigned long long word;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&word), yes = 0;
  unsigned long long token;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(bar), "r"(96));
  __syncthreads();
  if (threadIdx.x < 16)
    asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(2));
  else
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(bar));
  out[threadIdx.x] = token >> 63;
  __syncthreads();
  if (threadIdx.x < 16) {
    asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(token) : "r"(bar));
    out[64 + threadIdx.x] = word >> 63;
  }
  while (!yes)
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(yes) : "r"(bar), "l"(token));
  out[128 + threadIdx.x] = 1;
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_arrivals_that_do_not_complete_a_phase_count_towards_it(target: str) -> None:
    """16 threads arrive twice at once, 48 once, and the 16 once more: 96 arrivals end the phase, none fewer does."""
    done = run(NOT_COMPLETING, "in_part<<<1, 64>>>(u64[192])", target=target)
    assert done.execution.limitations == ()
    words = done.output(0, np.uint64)
    np.testing.assert_array_equal(words[:64], 0)
    np.testing.assert_array_equal(words[128:], 1)
