from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sectorwise.counting.request import Operation
from sectorwise.machine.atomics import apply_atomic
from sectorwise.machine.storage import Piece, make_storage
from tests.machine.launching import run

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Values = npt.NDArray[Any]

_UPDATES: dict[str, Callable[[Values, Values], Values]] = {
    "ADD": lambda old, given: old + given,
    "AND": lambda old, given: old & given,
    "OR": lambda old, given: old | given,
    "XOR": lambda old, given: old ^ given,
    "EXCH": lambda old, given: given + old * old.dtype.type(0),
    "MIN": np.minimum,
    "MAX": np.maximum,
    "INC": lambda old, given: np.where(old >= given, old.dtype.type(0), old + old.dtype.type(1)),
    "CAS": lambda old, given: np.where(old == given, given + old.dtype.type(1), old),
}


def _signed(update: Callable[[Values, Values], Values]) -> Callable[[Values, Values], Values]:
    def run_signed(old: Values, operand: Values) -> Values:
        kind: Any = np.int32 if old.dtype.itemsize == 4 else np.int64
        return update(old.view(kind), operand.view(kind)).view(old.dtype)

    return run_signed


@given(
    st.sampled_from([*_UPDATES, "MIN.S", "MAX.S"]),
    st.sampled_from([4, 8]),
    st.integers(1, 5),
    st.sampled_from([1, 3, 64]),
    st.sampled_from([0.7, 1.0]),
    st.integers(0, 1 << 30),
)
def test_lanes_see_each_other_in_order(name: str, size: int, warps: int, cells: int, share: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    kind: Any = np.uint32 if size == 4 else np.uint64
    content: Values = random.integers(0, 9, cells).astype(kind)
    if name.endswith(".S"):
        content -= kind(4)
    index = random.integers(0, cells, (warps, 32)) * size
    operand: Values = random.integers(0, 9, (warps, 32)).astype(kind) - kind(4 if name.endswith(".S") else 0)
    active = random.random((warps, 32)) < share if share < 1 else None
    base = name.removesuffix(".S")
    update = _signed(_UPDATES[base]) if name.endswith(".S") else _UPDATES[base]
    modifiers = (base, f"S{8 * size}") if name.endswith(".S") else (base,)
    storage = make_storage(content.view(np.uint8).copy())
    seen = apply_atomic(
        (Piece(storage, index.astype(np.int64), None),),
        active,
        lambda old: update(old, operand),
        size,
        modifiers,
        warps,
    )
    expected = content.copy()
    for warp in range(warps):
        for lane in range(32):
            if active is None or active[warp, lane]:
                cell = index[warp, lane] // size
                old = expected[cell : cell + 1].copy()
                assert seen[warp, lane] == old[0]
                expected[cell] = update(old, operand[warp, lane : lane + 1])[0]
    np.testing.assert_array_equal(storage.octets[: content.nbytes].view(kind), expected)


SOURCE = r"""
extern "C" __global__ void tickets(unsigned* counter, unsigned* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter + (threadIdx.x & 1), 3u);
}
extern "C" __global__ void wide(unsigned long long* cells, const int* in, int* low) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(cells, (unsigned long long)in[i] << 20);
  atomicMax(cells + 1, (unsigned long long)in[i] << 30);
  atomicMin(low, -in[i]);
  atomicXor(low + 1, in[i]);
  atomicInc((unsigned*)low + 2, 9u);
  atomicDec((unsigned*)low + 3, 6u);
  atomicExch(low + 4, in[i]);
}
extern "C" __global__ void floats(float* sum, double* wide_sum, const float* in) {
  __shared__ float partial;
  if (threadIdx.x == 0) partial = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&partial, in[i]);
  atomicAdd(wide_sum, (double)in[i]);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum, partial);
}
"""


def test_every_lane_draws_a_ticket_of_its_own() -> None:
    done = run(SOURCE, "tickets<<<5, 96>>>(u32[2], u32[480])")
    drawn = done.output(1, np.uint32).reshape(-1, 2)
    for side in range(2):
        assert sorted(drawn[:, side].tolist()) == list(range(0, 720, 3))
    assert done.output(0, np.uint32).tolist() == [720, 720]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_every_operation_on_words_and_longs(target: str) -> None:
    done = run(SOURCE, "wide<<<3, 64>>>(u64[2], i32[192]=perm(3), i32[5])", target=target)
    values = done.given(1).astype(np.int64)
    assert done.output(0, np.uint64).tolist() == [int(values.sum()) << 20, 191 << 30]
    low = done.output(2)
    assert low[0] == -191
    assert low[1] == int(np.bitwise_xor.reduce(values))
    assert low[2] == 192 % 10
    # From 0 down: 6, 5, ..., 0, and over again.
    assert low[3] == (7 - 192 % 7) % 7
    assert low[4] == values[-1]


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120"])
def test_float_sums_through_compare_and_swap_loops(target: str) -> None:
    done = run(SOURCE, "floats<<<3, 64>>>(f32[1], f64[1], f32[192]=uniform(3))", target=target)
    values = done.given(2).astype(np.float64)
    np.testing.assert_allclose(done.output(0, np.float32)[0], values.sum(), rtol=1e-6)
    np.testing.assert_allclose(done.output(1, np.float64)[0], values.sum(), rtol=1e-14)


_VECTORS = r"""
#include <cuda_fp16.h>
extern "C" __global__ void pairs(float* out) {
  float t = threadIdx.x;
  atomicAdd((float2*)out + threadIdx.x, make_float2(t, -t));
}
extern "C" __global__ void fours(float* out, const float* in) {
  atomicAdd((float4*)out + threadIdx.x / 4, ((const float4*)in)[threadIdx.x]);
}
extern "C" __global__ void returned(float* out, float* seen) {
  ((float4*)seen)[threadIdx.x] = atomicAdd((float4*)out + threadIdx.x, make_float4(1, 2, 3, 4));
}
extern "C" __global__ void halves(unsigned* out) {
  asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" :: "l"(out + 4 * threadIdx.x), "r"(0x3c004000));
}
extern "C" __global__ void least(unsigned* out) {
  asm volatile("red.global.min.noftz.v2.f16x2 [%0], {%1, %1};" :: "l"(out + 2 * threadIdx.x), "r"(0x3c004000));
}
"""


def test_vector_sums_move_all_of_their_words() -> None:
    pairs = run(_VECTORS, "pairs<<<1,32>>>(f32[64]=arange)")
    site = pairs.execution.sites[0]
    assert (site.access.width_bytes, site.sectors, site.sectors_ideal, site.tag_requests) == (8, 8, 8, 2)
    lanes = np.arange(32)
    assert (pairs.output(0, np.float32).reshape(32, 2) == np.stack([3 * lanes, lanes + 1], axis=1)).all()

    fours = run(_VECTORS, "fours<<<2,32>>>(f32[32], f32[128]=arange)")
    site = next(site for site in fours.execution.sites if site.access.operation is Operation.REDUCTION)
    # Eight distinct places of 16 bytes for each warp: 4 sectors, while the lanes' 512 bytes would need 16.
    assert (site.access.width_bytes, site.sectors, site.sectors_ideal, site.tag_requests) == (16, 8, 8, 2)
    expected = 2 * np.arange(128, dtype=np.float32).reshape(8, 4, 4).sum(axis=1)
    assert (fours.output(0, np.float32).reshape(8, 4) == expected).all()


def test_vector_sums_give_back_what_was_there() -> None:
    returned = run(_VECTORS, "returned<<<1,32>>>(f32[128]=arange, f32[128])")
    assert (returned.output(1, np.float32) == np.arange(128)).all()
    assert (returned.output(0, np.float32).reshape(32, 4) == np.arange(128).reshape(32, 4) + np.arange(1, 5)).all()


def test_vector_sums_of_halves() -> None:
    halves = run(_VECTORS, "halves<<<1,32>>>(u32[128])")
    site = halves.execution.sites[0]
    assert (site.access.width_bytes, site.sectors, site.sectors_ideal) == (16, 16, 16)
    assert (halves.output(0, np.float16).reshape(128, 2) == [2.0, 1.0]).all()


def test_least_of_vectors_is_said_to_be_unknown() -> None:
    least = run(_VECTORS, "least<<<1,32>>>(u32[64])")
    site = least.execution.sites[0]
    assert site.unknown_because is not None
    assert "only sums of floats are known" in site.unknown_because


EXCHANGED = r"""
extern "C" __global__ void exchanged(unsigned long long* first, unsigned long long* out) {
  __shared__ unsigned long long own[64];
  own[threadIdx.x] = threadIdx.x + 100;
  unsigned long long* place = threadIdx.x % 3 ? first + threadIdx.x : own + threadIdx.x;
  out[threadIdx.x] = atomicExch(place, 7ull << 40 | threadIdx.x);
  out[threadIdx.x + 64] = own[threadIdx.x];
}
"""


_WIDE = r"""
extern "C" __global__ void passed_on(ulonglong2* place, const ulonglong2* in, ulonglong2* out) {
  ulonglong2 v = in[threadIdx.x], old;
  asm volatile("{ .reg .b128 a, b;\n mov.b128 a, {%3, %4};\n "
               "atom.global.exch.b128 b, [%2], a;\n mov.b128 {%0, %1}, b; }"
               : "=l"(old.x), "=l"(old.y) : "l"(place + (threadIdx.x & 3)), "l"(v.x), "l"(v.y) : "memory");
  out[threadIdx.x] = old;
}
"""


def test_exchanges_of_128_bits_pass_whole_values_on() -> None:
    done = run(_WIDE, "passed_on<<<1, 32>>>(u64[8], u64[64]=arange, u64[64])")
    (site,) = [site for site in done.execution.sites if site.access.operation is Operation.ATOMIC]
    assert (site.unknown_because, site.sectors, site.tag_requests) == (None, 2, 1)
    given, found = done.given(1).view(np.uint64).reshape(32, 2), done.output(2, np.uint64).reshape(32, 2)
    np.testing.assert_array_equal(found, np.concatenate([np.zeros((4, 2), np.uint64), given[:-4]]))
    np.testing.assert_array_equal(done.output(0, np.uint64).reshape(4, 2), given[-4:])


def test_generic_exchanges_of_64_bits_are_done_in_shared_memory_too() -> None:
    """Found by the fuzzer on an H200: other updates of 64 bits leave such lanes to the code behind them."""
    done = run(EXCHANGED, "exchanged<<<1, 64>>>(u64[64]=arange, u64[128])")
    lane = np.arange(64, dtype=np.uint64)
    found = done.output(1, np.uint64)
    np.testing.assert_array_equal(found[:64], np.where(lane % 3, lane, lane + 100))
    np.testing.assert_array_equal(found[64:], np.where(lane % 3, lane + 100, np.uint64(7 << 40) | lane))
    behind = {each.index for each in done.bound.kernel.instructions if each.opcode in ("LD", "ST")}
    assert behind.isdisjoint(site.instruction for site in done.execution.sites)
