"""Products by blocks that stay, executed, against products in float64; and which of them for which shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.kernels.gemv_plans import describe_product, plan_product
from sectorwise.kernels.plan import TensorMap
from sectorwise.kernels.product import Product
from sectorwise.kernels.ring_plans import RingForm, choose_ring, plan_ring
from tests.kernels.engine import compile_kernels, run_plan
from tests.kernels.test_gemv import STORED, compare, draw, hold, read

if TYPE_CHECKING:
    from sectorwise.kernels.plan import KernelPlan

Array = npt.NDArray[Any]
H200 = 132, (9, 0)
NAN = {"bf16": 0x7FC0, "f16": 0x7E00, "e4m3": 0x7F, "i8": 77}
ALONE, TWO = RingForm(1, 2, 1, 1, 2, early=2), RingForm(2, 1, 2, 2, 2, early=1)
WIDE, FEW = RingForm(2, 3, 1, 2, 1, 16), RingForm(1, 3, 1, 2, 2, early=1)


def surround(values: Array, kind: str, left: int, right: int) -> Array:
    """A view of rows with NaN, or something, to both sides and a row of it above and below."""
    rows, columns = values.shape
    bits = {"bf16": np.uint16, "f16": np.uint16}.get(kind, values.dtype)
    memory = np.full((rows + 2, left + columns + right), NAN[kind], bits).view(values.dtype)
    memory[1:-1, left : left + columns] = values
    return memory[1:-1, left : left + columns]


def multiply_in_form(
    x: Array, weights: Array, kinds: tuple[str, str], form: RingForm, multiprocessors: int, scales: Array | None = None
) -> Array:
    """Execute y = x W^T in a form; beside the result nothing is written."""
    kind, weights_kind = kinds
    room = np.full((x.shape[0] + 1, weights.shape[0] + 3), 77, STORED[kind])
    y = room[:-1, :-3]
    memories, offsets, arrays = {}, {}, {}
    for name, view, dtype in (("x", x, kind), ("weights", weights, weights_kind), ("y", y, kind)):
        memories[name] = view if view.base is None else view.base
        arrays[name], offsets[name] = hold(name, view, memories[name], dtype)
    scale = None
    if scales is not None:
        scale, offsets["scales"] = hold("scales", scales, scales, "f32")
        memories["scales"] = scales
    product = describe_product(arrays["x"], arrays["weights"], arrays["y"], scale, ready=True)
    plan = plan_ring(product, multiprocessors, form)
    left = run_plan(plan, memories, offsets)["y"].view(STORED[kind]).reshape(room.shape)
    assert np.all(left[-1] == 77)
    assert np.all(left[:, -3:] == 77)
    return read(left[:-1, :-3], kind)


@pytest.mark.parametrize(
    ("kinds", "batch", "rows", "depth", "form", "multiprocessors"),
    [
        (("bf16", "i8"), 1, 83, 1040, ALONE, 2),
        (("bf16", "e4m3"), 3, 37, 1552, ALONE, 132),
        (("f16", "i8"), 8, 5, 2048, ALONE, 132),
        (("f16", "e4m3"), 1, 83, 1040, ALONE, 2),
        (("bf16", "i8"), 11, 83, 1552, TWO, 4),
        (("bf16", "e4m3"), 16, 53, 2032, TWO, 2),
        (("bf16", "bf16"), 9, 53, 1000, TWO, 4),
        (("bf16", "bf16"), 9, 53, 4104, WIDE, 4),
        (("f16", "f16"), 1, 83, 3016, FEW, 4),
    ],
)
def test_products_are_those_of_float64(
    kinds: tuple[str, str], batch: int, rows: int, depth: int, form: RingForm, multiprocessors: int
) -> None:
    kind, weights_kind = kinds
    x = surround(draw((batch, depth), kind, 1), kind, 8, 16)
    weights = surround(draw((rows, depth), weights_kind, 2), weights_kind, 16, 32)
    scales = None if kind == weights_kind else draw((rows,), "f32", 3)
    result = multiply_in_form(x, weights, kinds, form, multiprocessors, scales)
    factors = 1 if scales is None else scales[:, None].astype(np.float64)
    compare(result, read(x, kind), read(weights, weights_kind) * factors, kind)


def widen_range(x: Array) -> Array:
    """Numbers of bfloat16 whose exponents are anything from 2^-37 to 2^32: no power of two makes all of them f16."""
    exponents = np.random.default_rng(5).integers(90, 160, x.shape).astype(np.uint16)
    return (x & np.uint16(0x807F)) | exponents << np.uint16(7)


@pytest.mark.parametrize("weights_kind", ["i8", "e4m3"])
def test_inputs_of_any_range_are_as_exact(weights_kind: str) -> None:
    x, weights = draw((8, 1024), "bf16", 1), draw((20, 1024), weights_kind, 2)
    x[1] = widen_range(x[1])
    x[2, ::3] = 0
    x[3] = 0
    # What is largest meets nothing: the sums are those of the others, which are 2^100 times smaller.
    x[0, 7], weights[:, 7] = 0x7100, 0
    # All of a warp are the smallest there are.
    x[4:, 128:256] = draw((4, 128), "bf16", 3) & 0x803F
    result = multiply_in_form(x, weights, ("bf16", weights_kind), ALONE, 2)
    compare(result, read(x, "bf16"), read(weights, weights_kind), "bf16")


def test_what_is_no_number_stays_in_its_row_and_input() -> None:
    x, weights = draw((3, 1024), "bf16", 1), draw((20, 1024), "e4m3", 2)
    weights[3, 1000], x[1, 5] = NAN["e4m3"], 0x7F80
    result = multiply_in_form(x, weights, ("bf16", "e4m3"), ALONE, 2)
    assert np.all(np.isnan(result[:, 3]))
    assert not np.any(np.isfinite(result[1]))
    kept, others = [0, 2], [row for row in range(20) if row != 3]
    compare(result[np.ix_(kept, others)], read(x[kept], "bf16"), read(weights[others], "e4m3"), "bf16")


def describe(weights: str, rows: int, depth: int, batch: int) -> Product:
    """A product of contiguous arrays."""
    return Product(
        "bf16", weights, batch, rows, depth, (depth, 1), (depth, 1), (rows, 1), 512, 1 << 20, weights != "bf16", 1
    )


def plan_of(weights: str, rows: int, depth: int, batch: int) -> KernelPlan:
    """The plan of such a product on an H200."""
    plan = plan_product(describe(weights, rows, depth, batch), *H200)
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("weights", "rows", "depth", "batch", "kernel", "blocks"),
    [
        ("e4m3", 4096, 4096, 1, "gemv_ring<E4m3, bf16, 1, 2, 2, 2, 2>", 132),
        ("i8", 14336, 4096, 8, "gemv_ring<Int8, bf16, 1, 2, 2, 2, 2>", 132),
        ("i8", 14336, 4096, 16, "gemv_ring<Int8, bf16, 2, 2, 2, 2, 2>", 132),
        ("e4m3", 28672, 8192, 4, "gemv_ring<E4m3, bf16, 1, 4, 1, 2, 2>", 132),
        ("e4m3", 28672, 8192, 9, "gemv_ring<E4m3, bf16, 2, 4, 1, 2, 1>", 132),
        ("i8", 4096, 1024, 1, "gemv_ring<Int8, bf16, 1, 1, 4, 1, 2>", 132),
        ("i8", 1000, 2048, 1, "gemv_ring<Int8, bf16, 1, 1, 4, 2, 2>", 126),
        ("i8", 4096, 2048, 1, "gemv_ring<Int8, bf16, 1, 2, 2, 1, 2>", 132),
        ("bf16", 4096, 4096, 16, "gemv_ring<Plain, bf16, 2, 4, 1, 2, 2>", 132),
        ("bf16", 14336, 4096, 1, "gemv_ring<Plain, bf16, 1, 4, 1, 2, 2>", 132),
        ("bf16", 1024, 4096, 8, "gemv_ring<Plain, bf16, 1, 4, 1, 2, 2>", 128),
        ("bf16", 4096, 512, 3, "gemv_ring<Plain, bf16, 1, 1, 4, 1, 2>", 132),
    ],
)
def test_which_form_for_which_shape(weights: str, rows: int, depth: int, batch: int, kernel: str, blocks: int) -> None:
    plan = plan_of(weights, rows, depth, batch)
    assert (plan.kernel, plan.grid, plan.block) == (kernel, (blocks, 1, 1), (256, 1, 1))
    assert plan.overlaps
    assert 2 * (plan.dynamic_shared_bytes + 2048) <= 228 << 10


def test_sixteen_warps_keep_x_of_twice_the_depth() -> None:
    assert choose_ring(describe("bf16", 57344, 7168, 16), *H200) is None
    plan = plan_of("bf16", 28672, 8192, 16)
    assert (plan.source, plan.kernel) == ("gemv_ring_wide.cu", "gemv_ring<Plain, bf16, 2, 4, 1, 2, 1>")
    assert (plan.grid, plan.block) == ((132, 1, 1), (512, 1, 1))
    assert plan.dynamic_shared_bytes == 16 * (4 * 2048 + 2 * 2048)
    (kernel,) = compile_kernels(plan.source, (plan.kernel,)).values()
    assert kernel.resources.local_bytes_per_thread == 0


@pytest.mark.parametrize(("rows", "rings"), [(1024, False), (5120, True), (12672, True), (12688, False)])
def test_sixteen_warps_with_few_inputs_have_several_tiles_and_not_many(rows: int, rings: bool) -> None:  # noqa: FBT001
    form = RingForm(1, 4, 1, 2, 1, 16)
    assert choose_ring(describe("bf16", rows, 8192, 8), *H200) == (form if rings else None)


@pytest.mark.parametrize(
    ("weights", "rows", "depth", "early"),
    [("e4m3", 8448, 4096, 0), ("e4m3", 8464, 4096, 1), ("i8", 28672, 1024, 2), ("bf16", 14336, 4096, 1)],
)
def test_where_there_are_many_tiles_more_comes_early(weights: str, rows: int, depth: int, early: int) -> None:
    form = choose_ring(describe(weights, rows, depth, 1), *H200)
    assert form is not None
    assert form.early == early


@pytest.mark.parametrize(
    ("weights", "depth", "batch"),
    [("e4m3", 1008, 1), ("e4m3", 8208, 1), ("bf16", 504, 8), ("bf16", 8208, 16), ("f32", 4096, 16), ("u4", 4096, 1)],
)
def test_what_fits_no_registers_goes_otherwise(weights: str, depth: int, batch: int) -> None:
    assert choose_ring(describe(weights, 4096, depth, batch), *H200) is None


def test_older_gpus_and_rows_that_overlap_go_otherwise() -> None:
    product = describe("i8", 4096, 4096, 1)
    assert choose_ring(product, 132, (8, 9)) is None
    assert choose_ring(product, 132, (10, 0)) == RingForm(1, 2, 2, 2, 2)
    for step in (0, -4096, 2048):
        turned = Product("bf16", "i8", 1, 4096, 4096, (4096, 1), (step, 1), (4096, 1), 512, 1 << 20)
        assert choose_ring(turned, *H200) is None


def test_boxes_are_of_16_rows_and_128_bytes() -> None:
    (map_of_bytes,) = (each for each in plan_of("i8", 4096, 4096, 1).arguments if isinstance(each, TensorMap))
    assert map_of_bytes == TensorMap("weights", "u8", (4096, 4096, 1), (4096, 4096 * 4096), (128, 16))
    (map_of_pairs,) = (each for each in plan_of("bf16", 4096, 4096, 16).arguments if isinstance(each, TensorMap))
    assert map_of_pairs == TensorMap("weights", "bf16", (4096, 4096, 1), (8192, 8192 * 4096), (64, 16))


def test_nothing_is_spilled() -> None:
    shapes = (("i8", 4096, 1), ("e4m3", 8192, 1), ("e4m3", 4096, 16), ("i8", 8192, 16), ("bf16", 4096, 16))
    names = tuple(plan_of(weights, 4096, depth, batch).kernel for weights, depth, batch in shapes)
    kernels = compile_kernels("gemv_ring.cu", names)
    assert {kernel.resources.local_bytes_per_thread for kernel in kernels.values()} == {0}
