"""Turns a product with weights of eight bits into a launch of blocks that stay, for GPUs that copy by tensor maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, TensorMap, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.gemv_plans import Product
    from sectorwise.kernels.plan import Argument

LINE: Final = 128
"""Bytes of a row in a box, and so weights of a row."""

TILE: Final = 16
"""Rows of a box."""

SUMS: Final = 2048
"""Sums of several tiles, and all warps of a cluster, that a block has to add at once; a thread makes one of them."""

_FORMATS: Final = {"i8": ("Int8", "u8", 1), "e4m3": ("E4m3", "u8", 1), "bf16": ("Plain", "bf16", 2), "f16": ("Plain", "f16", 2)}


@dataclass(frozen=True, slots=True)
class RingForm:
    """Warps a block, tiles that are on their way, blocks of a cluster, and blocks that an SM has room for."""

    warps: int
    ahead: int
    cluster: int
    blocks: int


def plan_ring(product: Product, multiprocessors: int, form: RingForm) -> KernelPlan:
    """The launch of a product in a form: a block an SM, or fewer where there are fewer tiles."""
    name, kind, item = _FORMATS[product.weights]
    line = LINE // item
    columns = 1 if product.batch <= 8 else 2
    boxes = divide_up(product.depth, line * form.warps * form.cluster)
    clusters = min(multiprocessors // form.cluster, divide_up(product.rows, TILE))
    scales: Argument = Pointer("scales") if product.scales else Number(0)
    extents = product.depth, product.rows
    arguments: tuple[Argument, ...] = (
        TensorMap("weights", kind, extents, item * (product.w[0] if product.rows > 1 else product.depth), (line, TILE)),
        *(Pointer("x"), scales, Pointer("y")),
        *(Number(product.rows, 4), Number(product.depth, 4), Number(product.x[0]), Number(product.scale_step)),
        *(Numbers(product.y), Number(product.batch, 4), Number(product.ready, 4)),
    )
    sizes = (columns, boxes, form.ahead, form.warps, form.cluster, form.blocks)
    return KernelPlan(
        "gemv_ring.cu",
        f"gemv_ring<{name}, {product.kind}, {', '.join(map(str, sizes))}>",
        (clusters * form.cluster, divide_up(product.batch, 8 * columns), 1),
        (32 * form.warps, 1, 1),
        arguments,
        LINE * TILE * boxes * form.ahead * form.warps + 8 * min(SUMS, 32 * form.warps * form.warps * form.cluster),
        overlaps=True,
    )


def choose_ring(product: Product, multiprocessors: int, capability: tuple[int, int]) -> RingForm | None:
    """The form of a product whose rows lie at multiples of 16 bytes, None where this is not the kernel for it."""
    if capability < (9, 0) or product.weights not in {"i8", "e4m3"} or product.depth < LINE * 8:
        return None
    columns = 1 if product.batch <= 8 else 2
    cluster = 1 if product.depth <= LINE * 8 else 2
    boxes = divide_up(product.depth, LINE * 8 * cluster)
    if boxes > 4:
        return None
    return RingForm(8, 4 // boxes, cluster, 2 if boxes * columns <= 4 else 1)
