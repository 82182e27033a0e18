"""What reductions of tiles and whole ranges leave in memory, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.machine.bulk_sums import can_reduce
from sectorwise.machine.execution import Certainty
from tests.machine.launching import run

ROWS = 3
"""Blocks, all of which reduce into one place."""

OPERATIONS = (
    *("add.u32", "add.s32", "add.u64", "add.f32", "add.f64", "add.noftz.f16", "add.noftz.bf16"),
    *("min.u32", "max.s32", "min.u64", "max.s64", "inc.u32", "dec.u32", "and.b32", "or.b32", "xor.b64"),
    *("min.f16", "max.bf16"),
)
TYPES = {
    "u32": np.uint32, "s32": np.int32, "u64": np.uint64, "s64": np.int64, "b32": np.uint32, "b64": np.uint64,
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": np.uint16,
}  # fmt: skip
KERNEL = """
extern "C" __global__ void {name}(const void* in, void* out) {{
  __shared__ __align__(128) unsigned held[64];
  held[threadIdx.x] = ((const unsigned*)in)[blockIdx.x * 64 + threadIdx.x];
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%0], [%1], 256;"
                 " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                 ::"l"(out), "r"((unsigned)__cvta_generic_to_shared(held)) : "memory");
}}
"""
SOURCE = "".join(KERNEL.format(name=name.replace(".", "_"), operation=name) for name in OPERATIONS)
TILES = """
struct __align__(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void add_tile(const __grid_constant__ TensorMap map, unsigned* out, int column) {
  __shared__ __align__(128) unsigned held[64];
  held[threadIdx.x] = 0x3c003c00u;
  asm volatile("fence.proxy.async.shared::cta;");
  __syncthreads();
  if (threadIdx.x == 0)
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], [%1];"
                 " cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
                 ::"l"(&map), "r"((unsigned)__cvta_generic_to_shared(held)), "r"(column), "r"(1) : "memory");
}
"""

Numbers = npt.NDArray[Any]


def widen(halves: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32)


def narrow(singles: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """To the nearest bfloat16, by the distance to both neighbours; the even one where they are as near."""
    low = (singles.view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    high = (low + np.uint16(1)).astype(np.uint16)
    below, above = (np.abs(widen(each).astype(np.float64) - singles) for each in (low, high))
    up = (above < below) | ((above == below) & (low & np.uint16(1) == 1))
    return np.where(up, high, low).astype(np.uint16)


def update(name: str, held: Numbers, given: Numbers) -> Numbers:
    operation, _, kind = name.partition(".")
    if kind.endswith("bf16"):
        return narrow(update(f"{operation}.f32", widen(held), widen(given)))
    one: Numbers
    match operation:
        case "inc":
            one = np.where(held >= given, 0, held + 1)
        case "dec":
            one = np.where((held == 0) | (held > given), given, held - 1)
        case _:
            plain = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}
            one = plain.get(operation, np.bitwise_xor)(held, given)
    return one.astype(held.dtype)


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_block_updates_what_the_others_left(name: str) -> None:
    kind = name.rpartition(".")[2]
    width = np.dtype(TYPES[kind]).itemsize
    # Floats from 0 to 1; of whole numbers every second is negative.
    below = {"f16": 0x3C00, "bf16": 0x3F80, "f32": 0x3F800000, "f64": 0x3FF0000000000000}.get(
        kind, (1 << 8 * width) - 1
    )
    count = 256 // width
    given, before = (f"u{8 * width}[{many}]=uniform({seed}, {below})" for many, seed in ((ROWS * count, 1), (count, 2)))
    done = run(SOURCE, f"{name.replace('.', '_')}<<<{ROWS}, 64>>>({given}, {before})")
    wanted: Numbers = done.given(1).view(TYPES[kind])
    for part in done.given(0).view(TYPES[kind]).reshape(ROWS, count):
        wanted = update(name, wanted, part)
    np.testing.assert_array_equal(done.output(1, np.uint32), wanted.view(np.uint32))
    assert (done.execution.limitations, done.execution.faults) == ((), ())
    (copies,) = done.execution.bulk
    assert (copies.copies, copies.sectors, copies.certainty) == (ROWS, 8 * ROWS, Certainty.EXACT)


@pytest.mark.parametrize(("kind", "wanted"), [("f16", 0x4200), ("u16", None), ("u32", 3 * 0x3C003C00)])
def test_tiles_are_summed_by_the_type_of_their_map(kind: str, wanted: int | None) -> None:
    """Rows of 16 bytes of two tiles of a tensor; ones of half precision make three."""
    width = int(kind[1:]) // 8
    tensor = f"tensor_map({kind}[4, {64 // width}], box=({16 // width}, 2))"
    done = run(TILES, f"add_tile<<<3, 64>>>({tensor}, u32[1], {16 // width})")
    if wanted is None:
        (said,) = done.execution.limitations
        assert "its sums are counted, not computed" in said.because
        assert said.of_values
        assert not can_reduce(done.bound.kernel.instructions[said.instruction], kind)
        return
    assert done.execution.limitations == ()
    left = done.output(0, f"u{width}").reshape(4, -1)
    assert set(left[1:3, 16 // width : 32 // width].ravel().tolist()) == {wanted}
    left[1:3, 16 // width : 32 // width] = 0
    assert not left.any()
