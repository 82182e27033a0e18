"""Turns products of 4-bit weights with one or two inputs into launches of blocks that stay, and take x as integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.gemv_plans import Product
    from sectorwise.kernels.plan import Argument

GROUP: Final = 128
"""Weights of a row that share a scale."""

TILE: Final = 16
"""Rows that packed weights have together."""

_GROUP_BYTES: Final = TILE * (GROUP // 2 + 2)
"""Weights and scales of a tile and group."""

_CAPABILITY: Final = (9, 0)
_MOST_INPUTS: Final = 2
"""Four columns of eight are one input."""

_MOST: Final = 1 << 31
"""Pieces of 16 bytes of W, and scales, are counted in 32 bits."""

_WARPS: Final = 8
_MOST_GROUPS: Final = 8
"""Groups of x that a warp keeps, eight registers each."""

_PIECE: Final = 4
"""Groups that a warp fetches together, 4 KiB."""

_RING_BYTES: Final = 64 << 10
"""Weights that a block has on their way: three blocks fit an SM, so that later launches fetch while one ends."""

_SUMS_BYTES: Final = 4 * TILE * 16
"""What a warp puts aside of 16 tiles."""

_SPLIT_BYTES: Final = 1088
"""Where a warp splits x."""


@dataclass(frozen=True, slots=True)
class Int4Form:
    """Groups of x that a warp keeps, groups that it copies together, stages of its ring, warps, and blocks an SM."""

    groups: int
    piece: int
    stages: int
    warps: int
    blocks: int


def takes_integers(product: Product, capability: tuple[int, int]) -> bool:
    """Whether a product of packed weights, which fits tensor cores, can go this way.

    Its copies want compute capability 9.0, and scales come in pairs of rows.
    """
    groups = divide_up(product.depth, GROUP)
    step = product.scale_step if groups > 1 else 0
    pairs = product.rows % 2 == 0 and step % 2 == 0 and product.scales_address % 4 == 0
    counted = (product.rows + TILE) * groups * 4 < _MOST and 0 <= step < _MOST // groups
    return capability >= _CAPABILITY and pairs and counted and product.batch <= _MOST_INPUTS


def choose_form(depth: int) -> Int4Form:
    """How the warps share the depth: as few times through all tiles as registers allow, and evenly."""
    groups = divide_up(depth, GROUP)
    warps = _WARPS
    while warps > 1 and warps // 2 >= groups:
        warps //= 2
    each = divide_up(groups, warps * divide_up(groups, warps * _MOST_GROUPS))
    pieces = divide_up(each, _PIECE)
    piece = divide_up(each, pieces)
    stages = max(2, _RING_BYTES // (warps * piece * TILE * GROUP // 2))
    return Int4Form(piece * pieces, piece, stages, warps, 3 if piece * pieces <= _PIECE else 2)


def plan_integers(product: Product, multiprocessors: int) -> KernelPlan:
    """The launch: a block an SM, or one a tile where there are fewer."""
    form, inputs = choose_form(product.depth), product.batch
    tiles, step = divide_up(product.rows, TILE), product.scale_step if product.depth > GROUP else 0
    blocks = min(multiprocessors, tiles)
    once = divide_up(product.depth, GROUP) <= form.warps * form.groups
    put_aside = inputs * _SUMS_BYTES
    apart = max(put_aside, _SPLIT_BYTES) if once else put_aside + _SPLIT_BYTES
    arguments: tuple[Argument, ...] = (
        *(Pointer("weights"), Pointer("x"), Pointer("scales"), Pointer("y")),
        *(Number(product.rows, 4), Number(product.depth, 4), Number(product.x[0])),
        *(Number(step, 4), Numbers(product.y), Number(tiles // blocks, 4), Number(tiles % blocks, 4)),
        Number(product.ready, 4),
    )
    sizes = (inputs, form.groups, form.piece, form.stages, form.warps, form.blocks, str(once).lower())
    return KernelPlan(
        "gemv_int4.cu",
        f"gemv_int4<{product.kind}, {', '.join(map(str, sizes))}>",
        (blocks, 1, 1),
        (32 * form.warps, 1, 1),
        arguments,
        form.warps * (form.stages * form.piece * _GROUP_BYTES + apart),
        overlaps=True,
    )
