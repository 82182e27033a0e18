"""Turns a product whose part of x stays in registers into a launch of blocks that stay, on GPUs that copy in boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, TensorMap, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.plan import Argument
    from sectorwise.kernels.product import Product

_LINE_BYTES: Final = 128
"""Of a row in a box; boxes of more cannot be swizzled so that all banks are met."""

_BOX_ROWS: Final = 16
_WARPS: Final = 8
_SUMS_BYTES: Final = 2 << 10
"""Of a warp, and so of the source: two times 256 sums, for each block of a cluster."""

_BOX_BYTES: Final = _BOX_ROWS * _LINE_BYTES

_BOXES_AHEAD: Final = 4
"""Of a warp: 64 KiB a block keep DRAM busy, and two launches find room beside each other on an SM, with room for L1."""

_MANY_TILES: Final = 8
"""Of a block. With fewer, nothing comes to L2 early beyond what there is room for, and never more than half of that, or
64 KiB: it queues before DRAM with what the launch ahead still waits for."""

_MOST_TILES: Final = 12
"""Of blocks of 16 warps for up to eight inputs: with more tiles than that each, or a single one, others are faster."""

_VECTOR_BYTES: Final = 16
_HELD: Final = 64
"""Registers of a lane that x may take; with twice as many an SM has room for one block."""

_CAPABILITY: Final = (9, 0)
"""From this compute capability on there are tensor maps, clusters and programmatic dependent launches."""

_MOST_ROWS: Final = 1 << 30
_MOST_STEP_BYTES: Final = 1 << 40
"""Rows are counted in 32 bits; steps of a tensor map are less than that (CUDA driver API, cuTensorMapEncodeTiled)."""


@dataclass(frozen=True, slots=True)
class RingForm:
    """How a product is shared out.

    Blocks of a cluster and their warps share the depth, a warp has `boxes` of it, for `columns` times eight inputs;
    `ahead` tiles are on their way to shared memory, and `early` more to L2 when a launch begins; an SM is to have room
    for `blocks` of so many `warps`.
    """

    columns: int
    boxes: int
    ahead: int
    cluster: int
    blocks: int
    warps: int = _WARPS
    early: int = 0


def choose_ring(product: Product, multiprocessors: int, capability: tuple[int, int]) -> RingForm | None:
    """The form of a product whose rows lie at multiples of 16 bytes, None where this is not the kernel for it.

    It is where x of a warp fits into its registers.
    """
    if capability < _CAPABILITY or product.weights not in _FORMATS or product.rows > _MOST_ROWS:
        return None
    form, columns = _FORMATS[product.weights], 1 if product.batch <= 8 else 2
    if product.rows > 1 and not product.depth <= product.w[0] < _MOST_STEP_BYTES // (product.rows * form.item_bytes):
        return None
    across = _WARPS * _LINE_BYTES // form.item_bytes
    if product.depth < across:
        return None
    # Two blocks share the depth, so that each has half of x, but where a warp has few boxes and all SMs have tiles.
    alone, tiles = divide_up(product.depth, across), divide_up(product.rows, _BOX_ROWS)
    cluster = 1 if alone == 1 or (alone == 2 and tiles > multiprocessors) else 2
    boxes, warps = divide_up(product.depth, across * cluster), _WARPS
    if form.item_bytes > 1 and boxes > _BOXES_AHEAD and product.depth % (2 * across * cluster) == 0:
        # An SM has room for one block of these. Where some have a box less it took a third longer than without.
        boxes, warps = boxes // 2, 2 * _WARPS
        if columns == 1 and not multiprocessors < cluster * tiles <= _MOST_TILES * multiprocessors:
            return None
    held = boxes * columns * _VECTOR_BYTES // form.item_bytes
    if boxes > _BOXES_AHEAD or held > 2 * _HELD:
        return None
    blocks = 2 if held <= _HELD and warps == _WARPS else 1
    ahead, clusters = _BOXES_AHEAD // boxes, min(max(1, multiprocessors // cluster), tiles)
    early = divide_up(ahead, 2) if warps == _WARPS and tiles > _MANY_TILES * clusters else 0
    return RingForm(columns, boxes, ahead, cluster, blocks, warps, early)


def plan_ring(product: Product, multiprocessors: int, form: RingForm) -> KernelPlan:
    """The launch of a product in a form: a block an SM, or fewer where there are fewer tiles."""
    weights = _FORMATS[product.weights]
    line = _LINE_BYTES // weights.item_bytes
    clusters = min(max(1, multiprocessors // form.cluster), divide_up(product.rows, _BOX_ROWS))
    row_bytes = weights.item_bytes * (product.w[0] if product.rows > 1 else product.depth)
    scales: Argument = Pointer("scales") if product.scales else Number(0)
    arguments: tuple[Argument, ...] = (
        TensorMap(
            "weights",
            weights.kind,
            (product.depth, product.rows, 1),
            (row_bytes, row_bytes * product.rows),
            (line, _BOX_ROWS),
        ),
        *(Pointer("x"), scales, Pointer("y")),
        *(Number(product.rows, 4), Number(product.depth, 4), Number(product.x[0]), Number(product.scale_step)),
        *(Numbers(product.y), Number(product.batch, 4), Number(product.ready, 4), Number(form.early, 4)),
    )
    sizes = ", ".join(map(str, (form.columns, form.boxes, form.ahead, form.cluster, form.blocks)))
    return KernelPlan(
        "gemv_ring.cu" if form.warps == _WARPS else "gemv_ring_wide.cu",
        f"gemv_ring<{weights.name}, {product.kind}, {sizes}>",
        (clusters * form.cluster, divide_up(product.batch, 8 * form.columns), 1),
        (32 * form.warps, 1, 1),
        arguments,
        form.warps * (form.boxes * form.ahead * _BOX_BYTES + form.cluster * _SUMS_BYTES),
        overlaps=True,
    )


@dataclass(frozen=True, slots=True)
class _Format:
    """Weights of a type: their name in the source, the kind of tensor maps of them, and bytes of one."""

    name: str
    kind: str
    item_bytes: int


_FORMATS: Final = {
    "i8": _Format("Int8", "u8", 1),
    "e4m3": _Format("E4m3", "u8", 1),
    "bf16": _Format("Plain", "bf16", 2),
    "f16": _Format("Plain", "f16", 2),
}
