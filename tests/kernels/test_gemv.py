"""Matrix-vector products, executed, against products in float64 of the same numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest

from sectorwise.kernels.arrays import DeviceArray
from sectorwise.kernels.gemv_plans import describe_product, plan_packing, plan_product
from sectorwise.kernels.product import Product
from tests.kernels.engine import place, run_plan
from tests.kernels.test_movement import distance

if TYPE_CHECKING:
    from sectorwise.kernels.plan import KernelPlan

Array = npt.NDArray[Any]
SMS, HOPPER = 132, (9, 0)
STORED = {"bf16": np.uint16, "f16": np.float16, "f32": np.float32, "i8": np.int8, "e4m3": np.uint8, "u4": np.uint8}
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-23}


def store(values: Array, kind: str) -> Array:
    """Numbers in a type's storage, rounded by being cut: what counts is what `read` makes of them."""
    if kind == "bf16":
        return (values.astype(np.float32).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return values.astype(STORED[kind])


def read(stored: Array, kind: str) -> npt.NDArray[np.float64]:
    """The numbers that are stored."""
    if kind == "bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if kind == "e4m3":
        exponent, fraction = (stored >> 3 & 15).astype(np.int64), (stored & 7).astype(np.float64)
        small = np.ldexp(fraction / 8, -6)
        size = np.where(exponent == 0, small, np.ldexp(1 + fraction / 8, exponent - 7))
        return np.where(stored >> 7 == 1, -size, size)
    return stored.astype(np.float64)


def draw(shape: tuple[int, ...], kind: str, seed: int) -> Array:
    """Random numbers of a type, stored."""
    random = np.random.default_rng(seed)
    if kind == "i8":
        return random.integers(-128, 128, shape).astype(np.int8)
    if kind == "e4m3":
        return (random.integers(0, 127, shape) + 128 * random.integers(0, 2, shape)).astype(np.uint8)
    return store(random.standard_normal(shape), kind)


def hold(name: str, view: Array, memory: Array, kind: str) -> tuple[DeviceArray, int]:
    """A view of memory as an array of a device, and its distance from the beginning."""
    away = distance(view, memory)
    return DeviceArray(name, place(view, 512 + away), kind, 0, read_only=False), away


def multiply(
    x: Array,
    weights: Array,
    kind: str,
    weights_kind: str,
    scales: Array | None = None,
    y: Array | None = None,
    *,
    ready: bool = False,
    form: tuple[int, int, int] | None = None,
) -> tuple[str, Array, Array]:
    """Execute y = x W^T; the kernel, its result and what float64 gives, both rounded to nothing."""
    rows = weights.shape[0] if weights_kind != "u4" or scales is None else scales.shape[1]
    out = np.full((*x.shape[:-1], rows), 77, STORED[kind]) if y is None else y
    memories, offsets, arrays = {}, {}, {}
    for name, view, dtype in (("x", x, kind), ("weights", weights, weights_kind), ("y", out, kind)):
        memory = view if view.base is None else view.base
        arrays[name], offsets[name] = hold(name, view, memory, dtype)
        memories[name] = memory
    scale = None
    if scales is not None:
        scale, offsets["scales"] = hold("scales", scales, scales, "f32" if scales.dtype == np.float32 else kind)
        memories["scales"] = scales
    product = describe_product(arrays["x"], arrays["weights"], arrays["y"], scale, ready=ready)
    plan = plan_product(product, SMS, HOPPER if form is None else (8, 0))
    assert plan is not None
    if form is not None:
        plan = reshape(plan, rows, form)
    left = run_plan(plan, memories, offsets)["y"].view(STORED[kind]).reshape(memories["y"].shape)
    result = np.ndarray(out.shape, STORED[kind], left, offsets["y"], out.strides)
    return plan.kernel, read(result, kind), read(x, kind)


def reshape(plan: KernelPlan, rows: int, form: tuple[int, int, int]) -> KernelPlan:
    """A product on tensor cores by other tiles of 16 rows, stages and warps."""
    tiles, stages, warps = form
    kernel, *given = plan.kernel.split(", ")
    stage_bytes = plan.dynamic_shared_bytes // (int(given[3]) * int(given[4])) + 4096 * (tiles - int(given[2]))
    return replace(
        plan,
        kernel=", ".join((kernel, *given[:2], *map(str, form), "1>")),
        grid=(-(-rows // (16 * tiles)), *plan.grid[1:]),
        block=(32 * warps, 1, 1),
        dynamic_shared_bytes=stage_bytes * stages * warps,
    )


def compare(result: Array, x: Array, weights: Array, kind: str) -> None:
    """Equal up to what adding floats in any order, and rounding the sum once, may cost."""
    expected = x @ weights.T
    size = np.abs(x) @ np.abs(weights).T
    allowed = ROUNDING[kind] * np.abs(expected) + 2.0**-20 * size
    assert np.all(np.abs(result - expected) <= allowed), np.max(np.abs(result - expected) / (allowed + 1e-30))


@pytest.mark.parametrize(
    ("kind", "batch", "rows", "depth", "kernel"),
    [
        ("bf16", None, 5, 4104, "gemv_rows<bf16, 16, 1, 1, 2>"),
        ("bf16", None, 2115, 136, "gemv_rows<bf16, 16, 1, 1, 2>"),
        ("f16", 2, 9, 504, "gemv_rows<f16, 16, 2, 1, 2>"),
        ("f32", 3, 7, 1028, "gemv_rows<float, 16, 4, 1, 2>"),
        ("bf16", None, 3, 257, "gemv_rows<bf16, 2, 1, 1, 2>"),
        ("bf16", 5, 3, 1, "gemv_rows<bf16, 2, 4, 1, 2>"),
        ("f32", None, 1, 100, "gemv_rows<float, 16, 1, 1, 2>"),
        ("bf16", 4, 20, 504, "gemv_tensor<Plain, bf16, 8, "),
        ("f16", 3, 37, 520, "gemv_ring<Plain, f16, 1, 1, 4, 2, 2>"),
        ("f16", 16, 13, 264, "gemv_tensor<Plain, f16, 16, "),
        ("bf16", 19, 8, 96, "gemv_tensor<Plain, bf16, 16, "),
    ],
)
def test_weights_by_rows(kind: str, batch: int | None, rows: int, depth: int, kernel: str) -> None:
    x, weights = draw((depth,) if batch is None else (batch, depth), kind, 1), draw((rows, depth), kind, 2)
    ran, result, given = multiply(x, weights, kind, kind)
    assert ran.startswith(kernel)
    compare(result, given, read(weights, kind), kind)


@pytest.mark.parametrize(
    ("kind", "batch", "rows", "depth", "kernel"),
    [
        ("bf16", None, 72, 70, "gemv_columns<bf16, 16, 1, 2, 4, 16>"),
        ("f32", 3, 20, 33, "gemv_columns<float, 16, 4, 2, 4, 8>"),
        ("f16", 2, 35, 41, "gemv_columns<f16, 2, 2, 32, 4, 16>"),
    ],
)
def test_weights_by_columns(kind: str, batch: int | None, rows: int, depth: int, kernel: str) -> None:
    x, weights = draw((depth,) if batch is None else (batch, depth), kind, 1), draw((depth, rows), kind, 2)
    ran, result, given = multiply(x, weights.T, kind, kind)
    assert ran == kernel
    compare(result, given, read(weights.T, kind), kind)


@pytest.mark.parametrize(("batch", "depth"), [(1, 4104), (3, 520)])
def test_weights_that_are_ready_give_the_same_bits(batch: int, depth: int) -> None:
    x, weights = draw((batch, depth), "bf16", 1), draw((19, depth), "bf16", 2)
    waited, begun = (multiply(x, weights, "bf16", "bf16", ready=ready)[1] for ready in (False, True))
    np.testing.assert_array_equal(waited, begun)
    compare(begun, read(x, "bf16"), read(weights, "bf16"), "bf16")


@pytest.mark.parametrize("form", [(2, 2, 2), (1, 3, 2)])
def test_tiles_and_stages_give_the_same_products(form: tuple[int, int, int]) -> None:
    x, weights = draw((9, 1096), "bf16", 1), draw((37, 1096), "bf16", 2)
    _, result, given = multiply(x, weights, "bf16", "bf16", form=form)
    compare(result, given, read(weights, "bf16"), "bf16")
    values = np.random.default_rng(1).integers(-8, 8, (37, 1096)).astype(np.int8)
    scales = draw((9, 37), "bf16", 2)
    _, result, given = multiply(x[:1], pack(values), "bf16", "u4", scales, form=form)
    compare(result, given, apply_scales(values, scales, "bf16"), "bf16")


@pytest.mark.parametrize(("batch", "weights_kind"), [(4, "bf16"), (16, "bf16"), (1, "i8"), (4, "i8")])
def test_rows_of_weights_from_the_last_to_the_first(batch: int, weights_kind: str) -> None:
    x, weights = draw((batch, 256), "bf16", 1), draw((40, 256), weights_kind, 2)
    scales = None if weights_kind == "bf16" else np.full(40, 0.5, np.float32)
    _, result, given = multiply(x, weights[::-1], "bf16", weights_kind, scales)
    compare(result, given, read(weights[::-1], weights_kind) * (1 if scales is None else 0.5), "bf16")


def test_views_with_gaps_and_any_strides() -> None:
    x, weights, y = draw((6, 200), "bf16", 1), draw((40, 304), "bf16", 2), np.zeros((7, 90), np.uint16)
    kernel, result, given = multiply(x[::2, 8:136], weights[3:33, 16:144], "bf16", "bf16", y=y[:6:2, 1:61:2])
    assert kernel.startswith("gemv_tensor<Plain, bf16, 8, ")
    compare(result, given, read(weights[3:33, 16:144], "bf16"), "bf16")
    kernel, result, given = multiply(x[0, ::2], weights[:, 100:300:2], "bf16", "bf16")
    assert kernel == "gemv_any<bf16, bf16>"
    compare(result, given, read(weights[:, 100:300:2], "bf16"), "bf16")


@pytest.mark.parametrize("kind", ["bf16", "f16"])
@pytest.mark.parametrize("weights_kind", ["i8", "e4m3"])
def test_weights_of_eight_bits(kind: str, weights_kind: str) -> None:
    x, weights, scales = draw((3, 208), kind, 1), draw((11, 208), weights_kind, 2), draw((11,), "f32", 3)
    kernel, result, given = multiply(x, weights, kind, weights_kind, scales)
    assert kernel.startswith(f"gemv_tensor<{'Int8' if weights_kind == 'i8' else 'E4m3'}, {kind}, 8, ")
    compare(result, given, read(weights, weights_kind) * scales[:, None].astype(np.float64), kind)


@pytest.mark.parametrize("weights_kind", ["i8", "e4m3"])
def test_weights_of_eight_bits_of_odd_depth(weights_kind: str) -> None:
    x, weights, scales = draw((2, 37), "f16", 1), draw((9, 37), weights_kind, 2), draw((1,), "f32", 3)
    kernel, result, given = multiply(x, weights, "f16", weights_kind, scales)
    assert kernel.startswith("gemv_any<")
    compare(result, given, read(weights, weights_kind) * np.float64(scales[0]), "f16")


def pack(values: Array) -> Array:
    """The kernel's packing of weights [rows, depth]."""
    rows, depth = values.shape
    to = np.zeros((-(-rows // 16), -(-depth // 128), 16, 64), np.uint8)
    plan = plan_packing(rows, depth, (values.strides[0], values.strides[1]))
    assert plan is not None
    return run_plan(plan, {"from": values, "to": to})["to"].reshape(to.shape)


def unpack(packed: Array, rows: int, depth: int) -> Array:
    """Weights [rows, depth] by the format's definition, one after the other."""
    values = np.zeros((packed.shape[0] * 16, packed.shape[1] * 128), np.int64)
    n = np.arange(values.shape[0])
    for k in range(values.shape[1]):
        p, t, e = k % 128 // 32, k % 32 // 8, k % 8
        byte = packed[n // 16, k // 128, n % 16, 16 * t + 4 * p + e // 4 + 2 * (e % 2)].astype(np.int64)
        values[:, k] = (byte >> e // 2 % 2 * 4 & 15) - 8
    assert np.all(values[rows:] == 0)
    assert np.all(values[:, depth:] == 0)
    return values[:rows, :depth]


def test_packing_keeps_every_weight_and_clips() -> None:
    values = np.random.default_rng(1).integers(-8, 8, (5, 200)).astype(np.int8)
    np.testing.assert_array_equal(unpack(pack(values), 5, 200), values)
    values[2, 7:9] = 100, -100
    assert unpack(pack(values), 5, 200)[2, 7:9].tolist() == [7, -8]
    tall = np.random.default_rng(2).integers(-8, 8, (33, 130)).astype(np.int8)
    np.testing.assert_array_equal(unpack(pack(tall), 33, 130), tall)


@pytest.mark.parametrize(
    ("kind", "batch", "rows", "depth", "kernel"),
    [
        ("bf16", 1, 19, 256, "gemv_tensor<Int4, bf16, 1, "),
        ("f16", 9, 18, 1000, "gemv_tensor<Int4, f16, 16, "),
        ("bf16", 2, 19, 133, "gemv_any<nibble, bf16>"),
        ("bf16", 1, 18, 1000, "gemv_int4<bf16, 1, 1, 1, 12, 8, 2, true>"),
        ("f16", 2, 34, 264, "gemv_int4<f16, 2, 1, 1, 12, 4, 2, true>"),
        ("bf16", 2, 2, 16392, "gemv_int4<bf16, 2, 6, 3, 2, 16, 1, false>"),
    ],
)
def test_weights_of_four_bits(kind: str, batch: int, rows: int, depth: int, kernel: str) -> None:
    values, scales, x = draw_packed(kind, batch, rows, depth)
    ran, result, given = multiply(x, pack(values), kind, "u4", scales)
    assert ran.startswith(kernel)
    compare(result, given, apply_scales(values, scales, kind), kind)


def draw_packed(kind: str, batch: int, rows: int, depth: int) -> tuple[Array, Array, Array]:
    """Random weights of four bits, scales, and inputs."""
    values = np.random.default_rng(1).integers(-8, 8, (rows, depth)).astype(np.int8)
    return values, draw((-(-depth // 128), rows), kind, 2), draw((batch, depth), kind, 3)


def apply_scales(values: Array, scales: Array, kind: str) -> Array:
    """What weights of four bits stand for."""
    return values * np.repeat(read(scales, kind).T, 128, axis=1)[:, : values.shape[1]]


@pytest.mark.parametrize("passes", [1, 2])
def test_rounds_of_tiles_are_gone_through_for_each_part_of_the_depth(passes: int) -> None:
    values, scales, x = draw_packed("bf16", 1, 300, 136)
    product = replace(packed_product(300, 136, 1), w_address=512, scales_address=512)
    plan = plan_product(product, 1, HOPPER)
    assert plan is not None
    if passes > 1:
        kernel, shared_bytes = "gemv_int4<bf16, 1, 1, 1, 3, 1, 2, false>", 3 * (1024 + 32) + 1088 + 1024
        plan = replace(plan, kernel=kernel, block=(32, 1, 1), dynamic_shared_bytes=shared_bytes)
    memories = {"weights": pack(values), "x": x, "scales": scales, "y": np.zeros((1, 300), np.uint16)}
    result = run_plan(plan, memories)["y"].view(np.uint16).reshape(1, 300)
    compare(read(result, "bf16"), read(x, "bf16"), apply_scales(values, scales, "bf16"), "bf16")


@pytest.mark.parametrize(("kind", "power"), [("bf16", 120), ("bf16", -120), ("bf16", -131), ("f16", 14), ("f16", -23)])
def test_inputs_of_any_size_are_taken_as_integers(kind: str, power: int) -> None:
    values, scales, x = draw_packed(kind, 1, 4, 264)
    x = store(np.ldexp(np.clip(read(x, kind), -1.9, 1.9), power), kind)
    x[0, 5:40] = store(np.ldexp(read(x[0, 5:40], kind), -20), kind)
    scales = store(np.ldexp(read(scales, kind), -power // 2), kind)
    _, result, given = multiply(x, pack(values), kind, "u4", scales)
    expected = given @ apply_scales(values, scales, kind).T
    assert np.all(np.isfinite(result))
    compare(result, given, apply_scales(values, scales, kind), kind)
    assert np.count_nonzero(expected) > 0


def test_an_input_of_zeros_and_one_that_is_no_number() -> None:
    values, scales, x = draw_packed("bf16", 2, 4, 264)
    x[0] = 0
    x[1, 7] = 0x7FC0
    _, result, _ = multiply(x, pack(values), "bf16", "u4", scales)
    assert result[0].tolist() == [0, 0, 0, 0]
    assert np.all(np.isnan(result[1]))


def product(rows: int, depth: int, batch: int, kind: str = "bf16", weights: str = "bf16") -> Product:
    """A product of contiguous arrays."""
    return Product(kind, weights, batch, rows, depth, (depth, 1), (depth, 1), (rows, 1), 512, 1 << 20)


@pytest.mark.parametrize(
    ("rows", "depth", "batch", "kernel", "grid", "threads"),
    [
        (4096, 14336, 1, "gemv_rows<bf16, 16, 1, 1, 2>", 4096, 256),
        (28672, 8192, 1, "gemv_rows<bf16, 16, 1, 1, 2>", 28672, 256),
        (4096, 504, 1, "gemv_rows<bf16, 16, 1, 1, 2>", 4096, 32),
        (1024, 8192, 8, "gemv_tensor<Plain, bf16, 8, 1, 1, 16, 1>", 64, 512),
        (4096, 14336, 8, "gemv_tensor<Plain, bf16, 8, 1, 1, 16, 2>", 256, 512),
        (8192, 8208, 16, "gemv_tensor<Plain, bf16, 16, 2, 1, 8, 2>", 256, 256),
        (28672, 8208, 16, "gemv_tensor<Plain, bf16, 16, 2, 1, 8, 2>", 896, 256),
    ],
)
def test_which_kernel_for_which_shape(rows: int, depth: int, batch: int, kernel: str, grid: int, threads: int) -> None:
    plan = plan_product(product(rows, depth, batch), SMS, HOPPER)
    assert plan is not None
    assert (plan.kernel, plan.grid, plan.block) == (kernel, (grid, 1, 1), (threads, 1, 1))


@pytest.mark.parametrize(
    ("weights", "rows", "batch", "form", "shared_bytes"),
    [
        ("u4", 4097, 1, "1, 1, 8, 2", 8 * (4096 + 1024)),
        ("u4", 14337, 1, "1, 2, 4, 4", 8 * (4096 + 1024)),
        ("e4m3", 4096, 1, "1, 4, 4, 2", 16 * (4096 + 512)),
        ("i8", 4096, 1, "1, 2, 8, 2", 16 * (4096 + 512)),
        ("i8", 14336, 1, "1, 2, 4, 4", 8 * (4096 + 512)),
        ("i8", 4096, 4, "1, 1, 8, 2", 8 * 4096),
        ("e4m3", 28672, 16, "2, 1, 8, 2", 16 * 4096),
    ],
)
def test_which_form_for_weights_of_few_bits(weights: str, rows: int, batch: int, form: str, shared_bytes: int) -> None:
    row = 2048 if weights == "u4" else 4096
    given = Product("bf16", weights, batch, rows, 4096, (4096, 1), (row, 1), (rows, 1), 512, 1 << 20, scales=True)
    plan = plan_product(given, SMS, (8, 9))
    assert plan is not None
    assert plan.overlaps
    assert plan.kernel.partition("bf16, ")[2] == f"{next(count for count in (1, 8, 16) if count >= batch)}, {form}>"
    assert plan.dynamic_shared_bytes == shared_bytes


@pytest.mark.parametrize(
    ("rows", "depth", "batch", "kernel", "grid", "shared_bytes"),
    [
        (4096, 4096, 1, "gemv_int4<bf16, 1, 4, 4, 3, 8, 2, true>", 132, 8 * (3 * 4224 + 1088)),
        (1000, 4096, 2, "gemv_int4<bf16, 2, 4, 4, 2, 8, 2, true>", 63, 8 * (2 * 4224 + 2048)),
        (8192, 8192, 1, "gemv_int4<bf16, 1, 4, 4, 2, 16, 1, true>", 132, 16 * (2 * 4224 + 1088)),
        (14336, 4096, 1, "gemv_int4<bf16, 1, 4, 4, 4, 8, 1, true>", 132, 8 * (4 * 4224 + 1088)),
        (4096, 14336, 1, "gemv_int4<bf16, 1, 8, 4, 2, 16, 1, true>", 132, 16 * (2 * 4224 + 1088)),
        (8192, 28672, 1, "gemv_int4<bf16, 1, 8, 4, 2, 16, 1, false>", 132, 16 * (2 * 4224 + 2112)),
        (4096, 4096, 3, "gemv_tensor<Int4, bf16, 8, 1, 1, 8, 2>", 256, 8 * 4096),
    ],
)
def test_which_form_for_four_bits(rows: int, depth: int, batch: int, kernel: str, grid: int, shared_bytes: int) -> None:
    given = packed_product(rows, depth, batch)
    plan = plan_product(given, SMS, HOPPER)
    assert plan is not None
    assert (plan.kernel, plan.grid, plan.dynamic_shared_bytes) == (kernel, (grid, 1, 1), shared_bytes)
    assert plan.dynamic_shared_bytes + 8 * 16 * 12 + 1024 <= 228 << 10
    assert plan.overlaps


def packed_product(rows: int, depth: int, batch: int) -> Product:
    """A product of packed weights and contiguous arrays."""
    row_bytes = -(-depth // 128) * 64
    strides = ((depth, 1), (row_bytes, 1), (rows, 1))
    return Product("bf16", "u4", batch, rows, depth, *strides, 512, 1 << 20, scales=True, scale_step=rows)


@pytest.mark.parametrize(
    ("rows", "step", "address"),
    [(4097, 4098, 0), (4096, 4099, 0), (4096, 4096, 2), (4096, -4096, 0), (1 << 27, 1 << 27, 0)],
)
def test_scales_that_are_no_pairs_and_sizes_beyond_32_bits_go_another_way(rows: int, step: int, address: int) -> None:
    given = replace(packed_product(rows, 4096, 1), scale_step=step, scales_address=address)
    plan = plan_product(given, SMS, HOPPER)
    assert plan is not None
    assert plan.kernel.startswith("gemv_tensor<Int4, bf16, 1, ")


def test_older_gpus_have_no_bulk_copies() -> None:
    plan = plan_product(packed_product(4096, 4096, 1), 108, (8, 0))
    assert plan is not None
    assert plan.kernel.startswith("gemv_tensor<Int4, bf16, 1, ")


def test_nothing_is_launched_for_nothing() -> None:
    assert plan_product(product(0, 8, 1), SMS, HOPPER) is None
    assert plan_product(product(8, 8, 0), SMS, HOPPER) is None
    plan = plan_product(product(8, 0, 1), SMS, HOPPER)
    assert plan is not None
    assert plan.kernel == "gemv_any<bf16, bf16>"
