"""Products of matrices, executed, against products in float64 of the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.errors import ArgumentError
from sectorwise.kernels.arrays import DeviceArray
from sectorwise.kernels.batches import Batch
from sectorwise.kernels.matmul_plans import plan_matmul
from sectorwise.kernels.plan import Operand
from tests.kernels.engine import run_plan
from tests.kernels.test_gemv import STORED, compare, draw, hold, read

Array = npt.NDArray[Any]


def multiply(a: Array, b: Array, kind: str, multiprocessors: int, out: Array | None = None) -> tuple[str, Array]:
    """Execute the product; the kernel, and its result."""
    c = np.full((a.shape[0], b.shape[1]), 77, STORED[kind]) if out is None else out
    memories, offsets, arrays = {}, {}, []
    for name, view in (("a", a), ("b", b), ("c", c)):
        memories[name] = view if view.base is None else view.base
        array, offsets[name] = hold(name, view, memories[name], kind)
        arrays.append(array)
    plan = plan_matmul(Batch(arrays[0], arrays[1], arrays[2]), multiprocessors, (8, 0))
    before = memories["c"].copy()
    left = run_plan(plan, memories, offsets)["c"].view(STORED[kind]).reshape(before.shape)
    result = np.ndarray(c.shape, STORED[kind], left, offsets["c"], c.strides)
    np.ndarray(c.shape, STORED[kind], before, offsets["c"], c.strides)[...] = result
    np.testing.assert_array_equal(left, before)
    return plan.kernel, read(result, kind)


@pytest.mark.parametrize(
    ("kind", "sizes", "turned", "multiprocessors", "kernel"),
    [
        ("bf16", (72, 136, 80), (False, False), 132, "matmul_tensor<bf16, 64, true, true>"),
        ("f16", (40, 24, 264), (True, True), 132, "matmul_tensor<f16, 64, false, false>"),
        ("bf16", (130, 136, 72), (False, True), 2, "matmul_tensor<bf16, 128, true, false>"),
        ("bf16", (48, 40, 1), (True, False), 132, "matmul_tensor<bf16, 64, false, true>"),
        ("bf16", (17, 33, 19), (False, False), 132, "matmul_any<bf16>"),
        ("bf16", (1, 1, 1), (False, False), 132, "gemv_rows<bf16, 16, 1, 1, 2>"),
        ("bf16", (5, 40, 520), (False, True), 132, "gemv_tensor<Plain, bf16, 8, 1, 1, 8, 1>"),
        ("f16", (40, 1, 264), (False, False), 132, "gemv_rows<f16, 16, 1, 1, 2>"),
        ("bf16", (5, 40, 19), (False, False), 132, "matmul_any<bf16>"),
        ("bf16", (8, 8, 0), (False, False), 132, "matmul_any<bf16>"),
    ],
)
def test_products(
    kind: str, sizes: tuple[int, int, int], turned: tuple[bool, bool], multiprocessors: int, kernel: str
) -> None:
    m, n, k = sizes
    a = draw((k, m), kind, 1).T if turned[0] else draw((m, k), kind, 1)
    b = draw((n, k), kind, 2).T if turned[1] else draw((k, n), kind, 2)
    ran, result = multiply(a, b, kind, multiprocessors)
    assert ran == kernel
    compare(result, read(a, kind), read(b, kind).T, kind)


def test_views_with_gaps_into_a_view_with_gaps() -> None:
    a, b, c = draw((80, 120), "bf16", 1), draw((96, 96), "bf16", 2), np.zeros((90, 150), np.uint16)
    ran, result = multiply(a[3:73, 8:88], b[:80, 16:88], "bf16", 132, c[5:75, 3:147:2])
    assert ran == "matmul_tensor<bf16, 64, true, true>"
    compare(result, read(a[3:73, 8:88], "bf16"), read(b[:80, 16:88], "bf16").T, "bf16")


@pytest.mark.parametrize(("columns", "kernel"), [(40, "matmul_tensor<bf16, 64, true, true>"), (19, "matmul_any<bf16>")])
def test_batches(columns: int, kernel: str) -> None:
    a, b, c = draw((3, 24, 72), "bf16", 1), draw((72, columns), "bf16", 2), np.zeros((3, 48, columns), np.uint16)
    memories, offsets, arrays = {"a": a, "b": b, "c": c}, {}, []
    for name, view in (("a", a[0]), ("b", b), ("c", c[0, ::2])):
        array, offsets[name] = hold(name, view, memories[name], "bf16")
        arrays.append(array)
    batch = Batch(arrays[0], arrays[1], arrays[2], 3, (24 * 72, 0, 48 * columns))
    plan = plan_matmul(batch, 132, (8, 0))
    assert plan.kernel == kernel
    left = run_plan(plan, memories, offsets)["c"].view(np.uint16).reshape(c.shape)
    assert not left[:, 1::2].any()
    for number in range(3):
        compare(read(left[number, ::2], "bf16"), read(a[number], "bf16"), read(b, "bf16").T, "bf16")


def test_which_tile_for_which_shape() -> None:
    def lay(name: str, rows: int, columns: int) -> DeviceArray:
        return DeviceArray(name, Operand(0, (rows, columns), (2 * columns, 2), 2), "bf16", 0, read_only=False)

    def plan(m: int, n: int, k: int) -> tuple[str, int, int]:
        found = plan_matmul(Batch(lay("a", m, k), lay("b", k, n), lay("c", m, n)), 132, (8, 0))
        return found.kernel, found.grid[0], found.dynamic_shared_bytes

    assert plan(4096, 4096, 4096) == ("matmul_tensor<bf16, 128, true, true>", 1024, 96 << 10)
    assert plan(48, 4096, 4096) == ("matmul_tensor<bf16, 64, true, true>", 32, 72 << 10)
    with pytest.raises(ArgumentError, match=r"fewer than 2\*\*30 rows"):
        plan(1 << 30, 8, 8)
