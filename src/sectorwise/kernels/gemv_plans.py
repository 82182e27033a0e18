"""Turns the arrays of a matrix-vector product, for one to many vectors, into the launch that computes it best."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.int4_plans import GROUP, TILE, plan_integers, takes_integers
from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, divide_up
from sectorwise.kernels.product import Product
from sectorwise.kernels.ring_plans import choose_ring, plan_ring

if TYPE_CHECKING:
    from sectorwise.kernels.arrays import DeviceArray
    from sectorwise.kernels.plan import Argument

C_TYPES: Final = {"bf16": "bf16", "f16": "f16", "f32": "float", "i8": "signed char", "e4m3": "e4m3", "u4": "nibble"}
"""Names of element types in the sources; u4 are the packed ones."""

VECTOR_BYTES: Final = 16
LOADS: Final = 4
"""Loads of 16 bytes that a lane has in flight: 64 bytes, so 512 threads of an SM are enough for 32 KiB."""

_TENSOR_BATCH: Final = 3
"""From so many inputs on a product costs tensor cores less than a float multiply-add each costs."""

_MOST_DEPTH: Final = 1 << 30
"""Kernels count along the depth in 32 bits."""

_MOST_STEP_BYTES: Final = VECTOR_BYTES << 31
"""From row to row of W kernels for tensor cores count pieces of 16 bytes, in 32 bits and forwards."""

_SHARE_X: Final = 16
"""With so many rows an SM, two of them share each load of x."""


def describe_product(
    x: DeviceArray, weights: DeviceArray, out: DeviceArray, scales: DeviceArray | None = None, *, ready: bool = False
) -> Product:
    """The product of arrays whose shapes fit; x and out may have one axis less.

    Packed weights are of bytes [tiles, groups, 16, 64], and scales say how many rows there are.
    """
    x_strides, y_strides = ((0, *array.strides)[-2:] for array in (x, out))
    batch, depth = (1, *x.shape)[-2:]
    packed = weights.dtype == "u4"
    rows, w = weights.shape[0], (weights.strides[0], weights.strides[1])
    if packed and scales is not None:
        rows, w = scales.shape[1], (weights.shape[1] * (GROUP // 2), 1)
    return Product(
        kind=x.dtype,
        weights=weights.dtype,
        batch=batch,
        rows=rows,
        depth=depth,
        x=(x_strides[0], x_strides[1]),
        w=w,
        y=(y_strides[0], y_strides[1]),
        x_address=x.operand.address,
        w_address=weights.operand.address,
        scales=scales is not None,
        scale_step=0 if scales is None or (not packed and scales.shape == (1,)) else scales.strides[0],
        ready=ready,
        scales_address=0 if scales is None else scales.operand.address,
    )


def plan_product(product: Product, multiprocessors: int, capability: tuple[int, int]) -> KernelPlan | None:
    """The launch of a product on a GPU of so many SMs and that compute capability, None where there is nothing to do.

    Operands are called x, weights, scales and y.
    """
    if product.rows == 0 or product.batch == 0:
        return None
    if not 0 < product.depth < _MOST_DEPTH:
        return _plan_any(product)
    if product.weights == "u4" and _fits_tensor_cores(product) and takes_integers(product, capability):
        return plan_integers(product, multiprocessors)
    form = choose_ring(product, multiprocessors, capability) if _fits_tensor_cores(product) else None
    if form is not None:
        return plan_ring(product, multiprocessors, form)
    if product.weights != product.kind:
        return _plan_tensor(product, multiprocessors) if _fits_tensor_cores(product) else _plan_any(product)
    if product.w[1] == product.x[1] == 1:
        if product.batch >= _TENSOR_BATCH and product.kind != "f32" and _fits_tensor_cores(product):
            return _plan_tensor(product, multiprocessors)
        return _plan_rows(product, multiprocessors)
    if product.w[0] == 1:
        return _plan_columns(product, multiprocessors)
    return _plan_any(product)


def plan_packing(rows: int, depth: int, strides: tuple[int, int]) -> KernelPlan | None:
    """The launch that packs weights of a byte each, `from`, strides in bytes, as `to`, [tiles, groups, 16, 64]."""
    tiles, groups = divide_up(rows, TILE), divide_up(depth, GROUP)
    if tiles * groups == 0:
        return None
    arguments: tuple[Argument, ...] = (
        *(Pointer("from"), Pointer("to")),
        *(Number(number) for number in (rows, depth, *strides, groups)),
    )
    return KernelPlan("gemv_any.cu", "pack_int4", (tiles * groups, 1, 1), (256, 1, 1), arguments)


def _item_bytes(dtype: str) -> int:
    return {"f32": 4, "bf16": 2, "f16": 2}.get(dtype, 1)


def _x_begins(product: Product) -> tuple[int, ...]:
    """Where rows of x begin, in bytes."""
    item = _item_bytes(product.kind)
    return product.x_address, product.x[0] * item if product.batch > 1 else 0


def _is_aligned(product: Product) -> bool:
    """Whether every row of W and x begins at a multiple of 16 bytes."""
    step = product.w[0] * _item_bytes(product.weights) if product.rows > 1 else 0
    return gcd(VECTOR_BYTES, product.w_address, step, *_x_begins(product)) == VECTOR_BYTES


def _fits_tensor_cores(product: Product) -> bool:
    """Whether 16 bytes of W and eight elements of x are always whole."""
    if product.x[1] != 1 or product.w[1] != 1 or not _is_aligned(product):
        return False
    if product.rows > 1 and not 0 <= product.w[0] * _item_bytes(product.weights) < _MOST_STEP_BYTES:
        return False
    return product.depth % (8 if product.weights == "u4" else VECTOR_BYTES // _item_bytes(product.weights)) == 0


def _plan_tensor(product: Product, multiprocessors: int) -> KernelPlan:
    format_name, count = {
        "bf16": ("Plain", 8),
        "f16": ("Plain", 8),
        "i8": ("Int8", 16),
        "e4m3": ("E4m3", 16),
        "u4": ("Int4", 32),
    }[product.weights]
    batch = next(count for count in (1, 8, 16) if count >= min(product.batch, 16))
    slices = divide_up(product.depth, 16 * count)
    tiles, stages, warps, blocks = _choose_form(product, batch, multiprocessors)
    while warps > 1 and warps >= 2 * slices:
        warps //= 2
    stages = min(stages, divide_up(slices, warps))
    scales: Argument = Pointer("scales") if product.scales else Number(0)
    row_step = product.w[0] * _item_bytes(product.weights) // VECTOR_BYTES
    arguments = (
        *(Pointer("weights"), Pointer("x"), scales, Pointer("y")),
        *(Number(product.rows), Number(product.depth, 4), Number(row_step, 4), Number(product.x[0])),
        Number(product.scale_step),
        *(Numbers(product.y), Number(product.batch, 4), Number(product.ready, 4)),
    )
    kernel = f"gemv_tensor<{format_name}, {C_TYPES[product.kind]}, {batch}, {tiles}, {stages}, {warps}, {blocks}>"
    grid = (divide_up(product.rows, 16 * tiles), divide_up(product.batch, batch), 1)
    return KernelPlan(
        "gemv_tensor.cu",
        kernel,
        grid,
        (32 * warps, 1, 1),
        arguments,
        (4096 * tiles + (32 * count if batch == 1 else 0)) * stages * warps,
        overlaps=True,
    )


def _choose_form(product: Product, batch: int, multiprocessors: int) -> tuple[int, int, int, int]:
    """Tiles of 16 rows a block, stages, warps, and blocks an SM, as they were fastest on an H200 with 132 SMs.

    Where there are few blocks all of a row is asked for at once. With more inputs x is more of what comes from L2: with
    16 of them two tiles share it.
    """
    blocks = divide_up(product.rows, 16)
    few, bytes_each = blocks <= 2 * multiprocessors, _item_bytes(product.weights)
    match batch:
        case 1 if few:
            return (1, 4, 4, 2) if product.weights == "e4m3" else (1, 2, 8, 2)
        case 1:
            return 1, 2, 4, 4
        case _ if blocks <= multiprocessors:
            return 1, 1, 16, 1
        case 8:
            return (1, 1, 8, 2) if few and bytes_each == 1 else (1, 1, 16, 2)
        case _ if few:
            return (1, 1, 8, 2) if bytes_each == 1 else (1, 2, 8, 2)
        case _:
            return 2, 1, 8, 2


def _plan_rows(product: Product, multiprocessors: int) -> KernelPlan:
    item = _item_bytes(product.kind)
    width = VECTOR_BYTES if _is_aligned(product) else item
    batch = next(count for count in (1, 2, 4) if count >= min(product.batch, 4))
    share = 2 if batch == 4 and product.rows >= _SHARE_X * multiprocessors else 1
    loads = LOADS // 2
    threads = 256
    while threads > 32 and threads * loads * width // 2 >= product.depth * item:
        threads //= 2
    arguments = (
        *(Pointer("weights"), Pointer("x"), Pointer("y")),
        *(Number(product.rows), Number(product.depth, 4), Number(product.w[0]), Number(product.x[0])),
        *(Numbers(product.y), Number(product.batch, 4), Number(product.ready, 4)),
    )
    kernel = f"gemv_rows<{C_TYPES[product.kind]}, {width}, {batch}, {share}, {loads}>"
    grid = (divide_up(product.rows, share), divide_up(product.batch, batch), 1)
    return KernelPlan("gemv.cu", kernel, grid, (threads, 1, 1), arguments, overlaps=True)


def _plan_columns(product: Product, multiprocessors: int) -> KernelPlan:
    """W by columns: as few lanes side by side as leave a block for each SM, but no less than a sector of 32 bytes."""
    item = _item_bytes(product.kind)
    whole = gcd(VECTOR_BYTES, product.w_address, product.w[1] * item, product.rows * item) == VECTOR_BYTES
    width = VECTOR_BYTES if whole else item
    batch = next(count for count in (1, 2, 4) if count >= min(product.batch, 4))
    per_lane = width // item
    across = 8 if whole else 32
    while whole and across > 2 and divide_up(product.rows, across * per_lane) < multiprocessors:
        across //= 2
    warps = 16 if batch < 4 and divide_up(product.rows, across * per_lane) <= 2 * multiprocessors else 8
    arguments = (
        *(Pointer("weights"), Pointer("x"), Pointer("y")),
        *(Number(product.rows), Number(product.depth, 4), Number(product.w[1]), Number(product.x[0])),
        Number(product.x[1]),
        *(Numbers(product.y), Number(product.batch, 4)),
    )
    kernel = f"gemv_columns<{C_TYPES[product.kind]}, {width}, {batch}, {across}, {LOADS}, {warps}>"
    grid = (divide_up(product.rows, across * per_lane), divide_up(product.batch, batch), 1)
    return KernelPlan("gemv.cu", kernel, grid, (32 * warps, 1, 1), arguments)


def _plan_any(product: Product) -> KernelPlan:
    scales: Argument = Pointer("scales") if product.scales else Number(0)
    group = GROUP if product.weights == "u4" else 0
    arguments = (
        *(Pointer("weights"), Pointer("x"), scales, Pointer("y")),
        *(Number(number) for number in (product.rows, product.depth, *product.w)),
        *(Number(number) for number in (product.x[0], product.x[1], product.scale_step)),
        *(Numbers(product.y), Number(product.batch, 4), Number(group, 4)),
    )
    kernel = f"gemv_any<{C_TYPES[product.weights]}, {C_TYPES[product.kind]}>"
    return KernelPlan("gemv_any.cu", kernel, (divide_up(product.rows, 8), 1, 1), (256, 1, 1), arguments)
