"""Turns a matrix product into the cost of computing it without tiles: a thread an element of C, lanes either way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.plan import Plan, estimate
from sectorwise.advise.steps import SECTOR_BYTES, WARP_LANES, load, store, work
from sectorwise.advise.tile import count_dram_bytes
from sectorwise.advise.tile_shapes import Tile
from sectorwise.device import require_capability

if TYPE_CHECKING:
    from sectorwise.advise.plan import Cost
    from sectorwise.advise.steps import Step
    from sectorwise.advise.tile_shapes import Product

ALONG_ROWS: Final = "no tile, lanes along rows of C"
DOWN_COLUMNS: Final = "no tile, lanes down columns of C"

_ROWS: Final = 8
"""Warps of a block, each with a row or a column of its own."""

_UNROLL: Final = 16
_BURST: Final = 8
"""Loads of A, and of B, before the first wait, as in the measured `t_mm_naive`."""

_REGISTERS: Final = 32


def judge_untiled(product: Product) -> tuple[Cost, Cost]:
    """Lanes along the rows of C, and down its columns, so that each lane has a row of A."""
    return _judge(product, ALONG_ROWS, down=False), _judge(product, DOWN_COLUMNS, down=True)


def _multiply(product: Product, times: float) -> Step:
    """Multiply-adds by the lanes: of double precision if the type is, else of single precision."""
    lanes = require_capability(product.device).fp64_lanes
    if product.dtype.name != "fp64" or lanes is None:
        return work("multiply", times, pipe="fp32")
    return work("multiply", times, pipe="fp64", pipe_cycles=WARP_LANES / lanes)


def _judge(product: Product, name: str, *, down: bool) -> Cost:
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    a_width, b_width = max(1, round(product.a_bytes)), max(1, round(product.b_bytes))
    pitch = max(1, round(product.k * product.a_bytes))
    a_places = lane * pitch if down else lane * 0
    b_places = lane * 0 if down else lane * b_width
    # A sector of A serves the k that follow, one of B the warps of the block: as the hits of the measured kernels.
    passes = product.k / min(_UNROLL, product.k)
    times = min(_BURST, product.k)
    burst = (
        load("a", a_places, a_width, times=times, dram_share=0.0, l2_share=a_width / SECTOR_BYTES),
        load("b", b_places, b_width, times=times, dram_share=0.0, l2_share=1 / _ROWS),
        work("index", times * 1.5),
        work("decode", 2 * times * product.dtype.decode_instructions, waits=True),
        _multiply(product, times),
    )
    bursts = 2 if product.k >= _UNROLL else 1
    result = round(product.sum_bytes)
    c_places = lane * max(1, product.n) * result if down else lane * result
    sizes = (WARP_LANES, _ROWS) if down else (_ROWS, WARP_LANES)
    blocks = -(-product.m // sizes[0]) * -(-product.n // sizes[1])
    tile = Tile(*sizes, 1, 1, _ROWS * WARP_LANES, (1, WARP_LANES), group_rows=1)
    moved = count_dram_bytes(product, tile)
    written = float(product.m * product.n * result)
    plan = Plan(
        name,
        blocks,
        _ROWS * WARP_LANES,
        loop=burst * bursts,
        once=(work("index", 20), store("c", c_places, result)),
        passes=passes,
        registers=_REGISTERS,
        dram_read_bytes=max(0.0, moved - written),
        dram_write_bytes=written,
    )
    return estimate(plan, product.device)
