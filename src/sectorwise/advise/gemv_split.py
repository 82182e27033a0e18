"""Turns a weight with few outputs into plans that split K over blocks, and add what these have found."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.gemv_plans import BLOCK_WARPS, VECTOR_BYTES, Y_BYTES, Way, Weight, plan_rows_of_blocks
from sectorwise.advise.steps import WARP_LANES, Step, load, store, work
from sectorwise.device import DeviceSpec, require_capability

if TYPE_CHECKING:
    from collections.abc import Sequence

_WAVES: Final = 1
"""Blocks are split into no more than the device holds at once: more of them only add more sums."""

_FENCE: Final = 2
"""Instructions that make a block's sum visible to all before it counts itself (`__threadfence`, an atomic)."""


def list_split_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [N, K] in which K is split over so many blocks a row that the device is full, or a quarter.

    Their sums are added by the last block of a row (each leaves its sum, counts itself, and who comes last reads all of
    them), or by atomics on a y that another launch has cleared.
    """
    capability = require_capability(device)
    room = device.sm_count * capability.max_warps_per_sm // BLOCK_WARPS * _WAVES
    whole = WARP_LANES * VECTOR_BYTES * BLOCK_WARPS
    most = min(room // weight.n, weight.row_bytes // whole)
    if most < 2:
        return []
    largest = 1 << int(math.log2(most))
    ways = []
    for parts in dict.fromkeys((largest, max(2, largest // 4))):
        base = _read_x_once(weight, plan_rows_of_blocks(weight, device, f"{parts} blocks a row", parts))
        ways += [_add_last(weight, base, parts), _add_by_atomics(weight, base, parts)]
    return ways


def _read_x_once(weight: Weight, way: Way) -> Way:
    """Each block reads a part of x of its own: DRAM gives it to one row's, and those of the others wait with it."""
    others = 1 - 1 / weight.n
    loop = tuple(
        replace(step, dram_share=1 - others, l2_share=others, waiting_share=others) if step.name == "x" else step
        for step in way.plan.loop
    )
    return replace(way, plan=replace(way.plan, loop=loop))


def _add_last(weight: Weight, base: Way, parts: int) -> Way:
    """Each block stores its sums and counts itself; the last one of a row adds them up, in a fixed order."""
    batch = base.share.at_once
    reads = -(-parts // WARP_LANES) * batch
    steps = [
        _store_sums(batch),
        *_wait_for_l2("fence", _FENCE),
        *_wait_for_l2("count", 1),
        *_wait_for_l2("sums", reads),
        work("reduce", 10 * batch, pipe="memory", waits=True),
        _store_sums(batch),
    ]
    return _finish(weight, base, steps, f"{base.plan.name}, last adds")


def _add_by_atomics(weight: Weight, base: Way, parts: int) -> Way:
    """Each block adds its sums to y, which a launch before has cleared; in which order, nobody knows."""
    way = _finish(weight, base, [_store_sums(base.share.at_once)], f"{base.plan.name}, atomics")
    return replace(way, plan=replace(way.plan, same_address=parts * way.share.rounds, launches_beside=1))


def _finish(weight: Weight, base: Way, steps: Sequence[Step], name: str) -> Way:
    rounds = base.share.rounds
    more = tuple(replace(step, times=step.times * rounds) for step in steps)
    need = f"N is small: {weight.n:,} rows of {BLOCK_WARPS} warps each alone fill no device"
    plan = replace(base.plan, name=name, once=(*base.plan.once, *more))
    return replace(base, plan=plan, condition=need, kind="split K over blocks")


def _store_sums(times: int) -> Step:
    return store("sum", np.zeros((1, WARP_LANES), dtype=np.int64), Y_BYTES, times=times, dram_share=0.0)


def _wait_for_l2(name: str, times: int) -> tuple[Step, Step]:
    """Words that the L2 has, and the wait for them."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    return (
        load(name, lane * Y_BYTES, Y_BYTES, times=times, dram_share=0.0, l2_share=1.0),
        work(f"{name} there", 1, waits=True),
    )
