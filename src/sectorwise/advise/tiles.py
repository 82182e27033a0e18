"""Turns a matrix product into ranked tiles, with what holds each up and why the next larger loses."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass, replace
from itertools import product as combine
from typing import TYPE_CHECKING, Final

from sectorwise.advise.ranking import EQUAL
from sectorwise.advise.tabulate import make_dataframe, make_records, write_size, write_table, write_time
from sectorwise.advise.tile import TileCost, find_excess, judge
from sectorwise.advise.tile_shapes import Product, Tile, make_product, make_tile
from sectorwise.advise.untiled import judge_untiled
from sectorwise.device import require_capability
from sectorwise.errors import ArgumentError, SectorwiseError
from sectorwise.findings import show

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from sectorwise.advise.plan import Cost

_SIDES: Final = (16, 32, 64, 128, 256)
_DEPTHS_BYTES: Final = (64, 128)
"""Bytes of a slice's row: DRAM fetches 64, and 128 are a line and the widest swizzle."""

_STAGES: Final = (2, 3, 4, 5)
_SPLITS: Final = (1, 2, 4, 8)
_CLUSTER: Final = 2
"""Blocks that share B: groups of SMs are whole pairs everywhere; of four blocks fewer run at a time."""

_MOST_CLUSTER: Final = 8
"""Blocks of a cluster that every device with clusters takes (CUDA programming guide, thread block clusters)."""

_CLUSTERS_FROM: Final = (9, 0)
"""The compute capability with clusters, and copies to all of their blocks."""

_LANE_TILES: Final = ((4, 4), (8, 4), (8, 8))
_SHOWN: Final = 8
_EVEN: Final = 0.97
"""Of the rounds that are begun: where waves are fuller, there is nothing to share out."""


@dataclass(frozen=True, slots=True)
class TilePlan:
    """Tiles of a product, the fastest first, one for each block size.

    `larger` are the winner's next larger ones, `untiled` is what the product costs without tiles.
    """

    title: str
    candidates: tuple[TileCost, ...]
    larger: tuple[tuple[TileCost, str], ...]
    notes: tuple[str, ...]
    assumed: tuple[str, ...]
    untiled: tuple[Cost, ...] = ()

    @property
    def winner(self) -> TileCost:
        """The fastest."""
        return self.candidates[0]

    def _write_untiled(self, cost: Cost) -> str:
        times = cost.time_ns / (self.winner.time_ns or cost.time_ns)
        sectors = f"{cost.sectors_per_request:.3g} sectors a request"
        slow = f"{write_time(cost.time_ns)}, {times:.3g} times the time, held up by {cost.bound}"
        return f"  {cost.name}: {sectors}, {slow}"

    def to_records(self) -> list[dict[str, object]]:
        """A record for each candidate."""
        return make_records(self.candidates)

    def to_dataframe(self) -> Any:  # noqa: ANN401 - as `make_dataframe`
        """A pandas DataFrame, a line for each candidate."""
        return make_dataframe(self.candidates)

    def _repr_html_(self) -> str:
        return str(show("write_advice", self))

    def __str__(self) -> str:
        """A table of at most 80 columns, and what follows from it."""
        rows = [_write_row(each) for each in self.candidates[:_SHOWN]]
        head = [*textwrap.wrap(self.title, 80), "", *write_table(_HEADS, rows, gap=" "), ""]
        lines = []
        for level in self.winner.boundaries:
            verdict = "above" if level.intensity >= level.ridge else "below"
            ridge = f"{verdict} the ridge of {level.ridge:.4g}"
            lines.append(f"  {level.level}: {level.intensity:.4g} operations a byte, {ridge}")
        lines += [f"  {each.name} loses: {reason}" for each, reason in self.larger]
        lines += [self._write_untiled(each) for each in self.untiled]
        for blocks in sorted({each.tile.cluster for each in self.candidates[:_SHOWN]} - {1}):
            size = "two" if blocks == 2 else str(blocks)
            lines.append(
                f"  c{blocks}: clusters of {size} blocks, one below the other, that fetch B together (multicast)"
            )
        if any(each.tile.streams for each in self.candidates[:_SHOWN]):
            lines.append("  sk: stream-K, as many blocks as fit at once, each an equal part of all slices")
        if len(self.candidates) > 1:
            lines.append(
                f"  ranked by time; within {100 * (EQUAL - 1):.0f} % of the fastest, first what asks least of the L2"
            )
        lines += [f"  {note}" for note in self.notes]
        lines += [f"  assumed: {text}" for text in self.assumed]
        return "\n".join(
            [*head, *(part for line in lines for part in textwrap.wrap(line, 80, subsequent_indent=" " * 6))]
        )


_LEAST: Final = 0.01
_FOUR_DIGITS: Final = 999.5
_HEADS: Final = ("BMxBNxBKxstages", "shared", "regs", "SM", "waves", "last", "flight", "DRAM", "time", "bound")


def plan_tiles(m: int, n: int, k: int, dtype: str = "fp16", *, device: str = "h200") -> TilePlan:
    """Tiles for C [m, n] = A [m, k] B [k, n], the fastest first; raises `ArgumentError` where nothing fits.

    >>> plan = plan_tiles(4096, 4096, 4096, device="h100-sxm")
    >>> {each.name for each in plan.candidates[:3]} & {"128x256x64x3", "256x128x64x3"} != set()
    True
    """
    product = make_product(m, n, k, dtype, device)
    found: dict[tuple[int, int], TileCost] = {}
    for cost in _try_all(product):
        size = (cost.tile.bm, cost.tile.bn)
        if size not in found or _key(cost) < _key(found[size]):
            found[size] = cost
    if not found:
        raise ArgumentError(f"no tile of {dtype} fits {product.device.name}")
    ordered = _order([*found.values(), *_stream(product, found.values()), *_cluster(product, found.values())])
    return TilePlan(
        title=f"C [{m:,}, {n:,}] = A [{m:,}, {k:,}] B [{k:,}, {n:,}], {product.dtype.name}, on {product.device.id}",
        candidates=ordered,
        larger=tuple(_judge_larger(product, ordered[0])),
        notes=_conclude(product, ordered[0]),
        assumed=_assume(product),
        untiled=judge_untiled(product),
    )


def judge_tile(  # noqa: PLR0913 - the options of the command
    m: int,
    n: int,
    k: int,
    sizes: tuple[int, int, int, int],
    dtype: str = "fp16",
    *,
    device: str = "h200",
    warp: tuple[int, int] | None = None,
    thread: tuple[int, int] | None = None,
    cluster: int = 1,
) -> TilePlan:
    """What one tile (BM, BN, BK, stages) costs, and whether the next larger would be better.

    Of a `cluster` blocks that lie one below the other fetch B together. Raises `ArgumentError` where the tile fits no
    SM, with each limit that it exceeds and by how much, and for clusters that the device or the product does not have.

    >>> judge_tile(8192, 8192, 8192, (128, 128, 64, 3), device="h100-sxm").winner.shared_bytes
    98304
    """
    product = make_product(m, n, k, dtype, device)
    _require_fit(product, sizes, find_excess(product, sizes))
    if cluster < 1:
        raise ArgumentError(f"cluster is {cluster}; it must be at least 1")
    if thread is not None and product.uses_tensor_cores:
        raise ArgumentError(
            f"thread is {thread[0]}x{thread[1]}, the tile of a lane: {product.dtype.name} on {product.device.id} is "
            "multiplied by tensor cores, whose tile is that of a warp"
        )
    tile = replace(make_tile(product, sizes, warp=warp, thread=thread), cluster=cluster)
    _require_clusters(product, tile)
    cost = judge(product, tile)
    _require_fit(product, sizes, cost.excess)
    return TilePlan(
        title=f"{tile.name} of C [{m:,}, {n:,}], K = {k:,}, {product.dtype.name}, on {product.device.id}",
        candidates=(cost,),
        larger=tuple(_judge_larger(product, cost)),
        notes=_conclude(product, cost),
        assumed=_assume(product),
    )


def _require_fit(product: Product, sizes: tuple[int, int, int, int], excess: tuple[str, ...]) -> None:
    if excess:
        bm, bn, bk, stages = sizes
        slices = product.slice_bytes(bm, bn, bk) * stages
        rest = "" if any("slices" in text for text in excess) else f"; its slices take {slices:,} B"
        raise ArgumentError(
            f"a tile of {bm}x{bn}x{bk}x{stages} fits no SM of {product.device.name} ({product.device.id}): "
            f"{'; '.join(excess)}{rest}"
        )


def _require_clusters(product: Product, tile: Tile) -> None:
    """Clusters need a device that has them, matrix instructions that read shared memory, and whole columns of them."""
    if tile.cluster == 1:
        return
    device, rows = product.device, -(-product.m // tile.bm)
    if not _has_clusters(product):
        raise ArgumentError(
            f"a cluster of {tile.cluster}: {product.dtype.name} on {device.name} ({device.id}, compute capability "
            f"{device.architecture}) has none; tensor cores of 9.0 and above have"
        )
    if tile.cluster > _MOST_CLUSTER or rows % tile.cluster:
        raise ArgumentError(
            f"a cluster of {tile.cluster}: it has at most {_MOST_CLUSTER} blocks, and {rows:,} rows of tiles must be "
            "whole clusters"
        )


def _has_clusters(product: Product) -> bool:
    return product.uses_tensor_cores and (product.device.compute_capability or (0, 0)) >= _CLUSTERS_FROM


def _try_all(product: Product) -> list[TileCost]:
    depths = [round(depth / product.a_bytes) for depth in _DEPTHS_BYTES]
    if not product.uses_tensor_cores:
        depths = [8, 16, 32]
    costs = []
    for bm, bn, bk in combine(_SIDES, _SIDES, depths):
        least = _SIDES[0] if product.uses_tensor_cores else _SIDES[1]
        wastes = ((bm, product.m, least), (bn, product.n, least), (bk, product.k, min(depths)))
        if any(size >= 2 * extent and size > smallest for size, extent, smallest in wastes):
            continue
        few = -(-product.m // bm) * -(-product.n // bn) < product.device.sm_count
        # Each of the blocks that share K has a slice of it.
        splits = [split for split in _SPLITS if split == 1 or (few and split * bk < product.k + bk)]
        for stages, split in combine(_STAGES if product.uses_tensor_cores else (1, 2), splits):
            lanes: tuple[tuple[int, int] | None, ...] = (None,) if product.uses_tensor_cores else _LANE_TILES
            for thread in lanes:
                cost = _try(product, (bm, bn, bk, stages), split, thread)
                if cost is not None and cost.time_ns is not None:
                    costs.append(cost)
    return costs


def _try(
    product: Product, sizes: tuple[int, int, int, int], split: int, thread: tuple[int, int] | None
) -> TileCost | None:
    try:
        return judge(product, make_tile(product, sizes, thread=thread, split=split))
    except SectorwiseError:
        return None


def _stream(product: Product, costs: Iterable[TileCost]) -> list[TileCost]:
    """The same tiles by as many blocks as fit at once, which share all slices out evenly, where they were uneven."""
    uneven = [cost.tile for cost in costs if cost.tile.split > 1 or cost.waves < math.ceil(cost.waves) * _EVEN]
    streams = (judge(product, replace(tile, split=1, streams=True)) for tile in uneven)
    return [cost for cost in streams if cost.time_ns is not None]


def _cluster(product: Product, costs: Iterable[TileCost]) -> list[TileCost]:
    """The same tiles by clusters that share B, where the device has them and rows of tiles are even in number."""
    if not _has_clusters(product):
        return []
    tiles = (cost.tile for cost in costs if cost.tile.split == 1)
    pairs = [replace(tile, cluster=_CLUSTER) for tile in tiles if -(-product.m // tile.bm) % _CLUSTER == 0]
    return [cost for cost in (judge(product, tile) for tile in pairs) if cost.time_ns is not None]


def _order(costs: list[TileCost]) -> tuple[TileCost, ...]:
    """By time; of those within 5 % of the fastest, which no model tells apart, first what asks least of the L2."""
    best = min(cost.time_ns or math.inf for cost in costs)
    equal = [cost for cost in costs if (cost.time_ns or math.inf) <= EQUAL * best]
    rest = [cost for cost in costs if cost not in equal]
    equal.sort(key=lambda cost: (-cost.boundary("l2").intensity, *_key(cost)))
    return (*equal, *sorted(rest, key=_key))


def _key(cost: TileCost) -> tuple[float, int, int]:
    """By time, a percent being no difference, then the one that takes least of the SM."""
    return (round(cost.time_ns or math.inf, -2), cost.shared_bytes, cost.tile.bm)


def _judge_larger(product: Product, winner: TileCost) -> list[tuple[TileCost, str]]:
    tile, found = winner.tile, []
    for bm, bn in ((2 * tile.bm, tile.bn), (tile.bm, 2 * tile.bn), (2 * tile.bm, 2 * tile.bn)):
        try:
            larger = make_tile(product, (bm, bn, tile.bk, tile.stages), thread=tile.thread, split=tile.split)
            cost = judge(product, replace(larger, cluster=tile.cluster))
        except SectorwiseError:
            continue
        if cost.time_ns is None or cost.time_ns > (winner.time_ns or 0):
            found.append((cost, _explain(winner, cost)))
    return found


def _explain(winner: TileCost, larger: TileCost) -> str:
    if larger.excess:
        return "; ".join(larger.excess)
    if larger.waves < 1 and larger.blocks < winner.blocks:
        return f"{larger.blocks:,} blocks leave SMs idle: {100 * larger.waves:.3g} % of a wave"
    if larger.last_wave_pct < winner.last_wave_pct - 2:
        return f"its last wave is {larger.last_wave_pct:.3g} % full, {winner.last_wave_pct:.3g} before"
    if larger.blocks_per_sm < winner.blocks_per_sm:
        return f"{larger.blocks_per_sm} instead of {winner.blocks_per_sm} blocks an SM, limited by {larger.limiter}"
    level = larger.boundary("l2")
    if level.intensity > level.ridge:
        return f"{winner.boundary('l2').intensity:.4g} operations a byte were above the L2's ridge already"
    times = f"{larger.time_ns / winner.time_ns:.3g} times the time, " if larger.time_ns and winner.time_ns else ""
    return f"{times}held up by {larger.bound}"


def _conclude(product: Product, winner: TileCost) -> tuple[str, ...]:
    peak = product.operations_per_ns
    ridge = peak / product.device.memory_bandwidth_gbs
    whole = round(ridge * (product.a_bytes + product.b_bytes) / 2)
    slices = product.slice_bytes(whole, whole, 64)
    registers = 4 * require_capability(product.device).regs_per_sm
    warp, sm = winner.tile.warp, winner.accumulator_bytes
    reached = f"{winner.tflops:.4g} of {peak / 1000:.4g} TFLOP/s"
    notes = [
        f"{reached}; {winner.tile.threads} threads, warp tile {warp[0]}x{warp[1]}, an accumulator of {sm:,} B",
        f"a square tile at the DRAM ridge ({ridge:.4g} operations a byte by the datasheet) is T = {whole}",
        *_judge_whole(whole, registers, slices, product.sum_bytes),
    ]
    if product.a_bytes != product.b_bytes:
        notes.append("weights of 4 bits are decoded to the halves of A on their way into registers")
    return tuple(notes)


def _judge_whole(side: int, registers_bytes: int, slices_bytes: float, sum_bytes: int) -> tuple[str, str]:
    """Whether the tile at the DRAM ridge would fit an SM, and why not."""
    accumulator = side * side * sum_bytes
    held = f"the accumulator of T = {side} takes {write_size(accumulator)}; an SM's registers are"
    if accumulator > registers_bytes:
        verdict = "so it does not fit"
        rest = "blocks that share the L2 reach that ridge instead"
    else:
        verdict = "so it fits"
        rest = "a larger tile gains nothing at DRAM"
    return (
        f"{held} {write_size(registers_bytes)}, {verdict}",
        f"its slices of depth 64 take {write_size(slices_bytes)}; {rest}",
    )


def _assume(product: Product) -> tuple[str, ...]:
    ceilings = (ceiling.assumed for ceiling in product.roofline.ceilings)
    return tuple(text for text in ceilings if text is not None)


def _write_row(cost: TileCost) -> tuple[str, ...]:
    return (
        cost.name,
        write_size(cost.shared_bytes),
        str(cost.registers),
        str(cost.blocks_per_sm),
        _write_part(cost.waves),
        f"{_write_part(cost.last_wave_pct)} %",
        write_size(cost.bytes_in_flight),
        write_size(cost.dram_bytes),
        write_time(cost.time_ns or 0.0),
        cost.bound,
    )


def _write_part(value: float) -> str:
    """At most five characters up to 9,999: `0.12`, `15.5`, `2,430`, `<0.01`."""
    if value < _LEAST:
        return f"<{_LEAST}"
    if value < 1:
        return f"{value:.2g}"
    return f"{value:.3g}" if value < _FOUR_DIGITS else f"{value:,.0f}"
