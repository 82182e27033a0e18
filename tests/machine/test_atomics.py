from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
