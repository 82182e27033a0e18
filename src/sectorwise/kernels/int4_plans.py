"""Turns products of 4-bit weights with one or two inputs into launches of blocks that stay, and take x as integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.kernels.plan import KernelPlan, Number, Numbers, Pointer, divide_up

if TYPE_CHECKING:
    from sectorwise.kernels.plan import Argument
    from sectorwise.kernels.product import Product

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
_WARP_GROUPS: Final = 4
"""Groups of x that a warp keeps at ease, eight registers each, so that eight warps do for a depth of 4,096."""

_MOST_GROUPS: Final = 8
"""Groups of x that a warp can keep."""

_PIECE: Final = 4
"""Groups that a warp copies together, 4 KiB: those of 2 KiB took up to a fifth longer on an H200."""

_RING_BYTES: Final = 132 << 10
"""Weights and scales that a block has on their way where an SM has place for one: 64 KiB and 192 KiB were slower."""

_HALF_BYTES: Final = 112 << 10
"""Shared memory of a block, with barriers, where an SM is to have place for those of two launches."""

_MOST_STAGES: Final = 12
"""More pieces than these hide nothing more."""

_SUMS_BYTES: Final = 4 * TILE * 16
"""What a warp puts aside of 16 tiles."""

_SPLIT_BYTES: Final = 1088
"""Where a warp splits x."""


@dataclass(frozen=True, slots=True)
class Int4Form:
    """Groups of x that a warp keeps, groups that it copies together, stages of its ring, warps, and blocks an SM.

    `once` says that a warp keeps all of its x; `apart_bytes` are beside its ring, for splitting x and for sums.
    """

    groups: int
    piece: int
    stages: int
    warps: int
    blocks: int
    once: bool
    apart_bytes: int


def takes_integers(product: Product, capability: tuple[int, int]) -> bool:
    """Whether a product of packed weights, which fits tensor cores, can go this way.

    Its copies want compute capability 9.0, and scales come in pairs of rows.
    """
    groups = divide_up(product.depth, GROUP)
    step = product.scale_step if groups > 1 else 0
    pairs = product.rows % 2 == 0 and step % 2 == 0 and product.scales_address % 4 == 0
    counted = (product.rows + TILE) * groups * 4 < _MOST and 0 <= step < _MOST // groups
    return capability >= _CAPABILITY and pairs and counted and product.batch <= _MOST_INPUTS


def choose_form(depth: int, inputs: int, tiles: int) -> Int4Form:
    """How warps share the depth where a block has so many tiles: as few times through them as registers allow, evenly.

    Where all of a block's weights are asked for at once, the next launch is to have place beside it.
    """
    groups = divide_up(depth, GROUP)
    warps = _WARPS if groups <= _WARPS * _WARP_GROUPS else 2 * _WARPS
    while warps > 1 and warps // 2 >= groups:
        warps //= 2
    passes = divide_up(groups, warps * _MOST_GROUPS)
    each = divide_up(groups, warps * passes)
    pieces = divide_up(each, _PIECE)
    piece = divide_up(each, pieces)
    split_bytes, sums_bytes = _SPLIT_BYTES, inputs * _SUMS_BYTES
    apart_bytes = max(split_bytes, sums_bytes) if passes == 1 else split_bytes + sums_bytes
    ring_bytes = _HALF_BYTES - warps * apart_bytes
    at_once = warps <= _WARPS and tiles * groups * _GROUP_BYTES <= ring_bytes
    stages = (ring_bytes if at_once else _RING_BYTES) // (warps * piece * _GROUP_BYTES)
    return Int4Form(
        groups=piece * pieces,
        piece=piece,
        stages=min(stages, _MOST_STAGES),
        warps=warps,
        blocks=2 if at_once else 1,
        once=passes == 1,
        apart_bytes=apart_bytes,
    )


def plan_integers(product: Product, multiprocessors: int) -> KernelPlan:
    """The launch: a block an SM, or one a tile where there are fewer."""
    tiles, step = divide_up(product.rows, TILE), product.scale_step if product.depth > GROUP else 0
    blocks = min(multiprocessors, tiles)
    form = choose_form(product.depth, product.batch, divide_up(tiles, blocks))
    arguments: tuple[Argument, ...] = (
        *(Pointer("weights"), Pointer("x"), Pointer("scales"), Pointer("y")),
        *(Number(product.rows, 4), Number(product.depth, 4), Number(product.x[0])),
        *(Number(step, 4), Numbers(product.y), Number(tiles // blocks, 4), Number(tiles % blocks, 4)),
        Number(product.ready, 4),
    )
    sizes = (product.batch, form.groups, form.piece, form.stages, form.warps, form.blocks, str(form.once).lower())
    return KernelPlan(
        "gemv_int4.cu",
        f"gemv_int4<{product.kind}, {', '.join(map(str, sizes))}>",
        (blocks, 1, 1),
        (32 * form.warps, 1, 1),
        arguments,
        form.warps * (form.stages * form.piece * _GROUP_BYTES + form.apart_bytes),
        overlaps=True,
    )
