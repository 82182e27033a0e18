"""Turns a weight's shape, type and storage into plans of y = W x: which threads load what, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from sectorwise.advise.plan import L2_KEEPS, Plan
from sectorwise.advise.steps import WARP_LANES, Step, barrier, load, shared, store, work
from sectorwise.device import DeviceSpec, require_capability
from sectorwise.model.occupancy import occupancy
from sectorwise.model.traffic import DEFAULT_FETCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from sectorwise.advise.dtypes import Dtype

    Lanes = npt.NDArray[np.int64]

VECTOR_BYTES: Final = 16
X_BYTES: Final = 4
Y_BYTES: Final = 4
BLOCK_WARPS: Final = 8

UNROLL_NARROW, UNROLL_WIDE = 16, 4
"""How often compilers unroll these loops (NVRTC and nvcc 13.0) for one vector: as seen in the measured kernels
`t_gemv_tpc_14336` and `t_gemv_wpr_28672`."""

BURST_NARROW, BURST_WIDE, BURST_COLUMNS = 8, 1, 2
"""How many of a pass's loads of the weight they issue before they wait for the first of them, as seen in the same
kernels and in `m_columns_8`: six scoreboards and few registers part the 16 in two, each vector of a row is waited for
before the next, and two of a column are asked for at once where K is split."""

_PLAIN_REGISTERS: Final = 22
"""Beside sums, and weights and x on their way: with it an SM holds as many of the measured kernels of 16-byte loads
as it did."""

_MOST_REGISTERS: Final = 255
_FEW_VECTORS: Final = 2


@dataclass(frozen=True, slots=True)
class Weight:
    """A weight of N outputs and K inputs, how it is stored, and how many vectors it is multiplied with."""

    n: int
    k: int
    dtype: Dtype
    layout: str
    batch: int

    @property
    def size_bytes(self) -> float:
        """Bytes of the whole weight."""
        return self.n * self.k * self.dtype.bits / 8

    @property
    def row_bytes(self) -> int:
        """Bytes of the K weights of one output."""
        return self.k * self.dtype.bits // 8

    @property
    def narrow_bytes(self) -> int:
        """Bytes of the narrowest load: one element, or two that share a byte."""
        return max(1, self.dtype.bits // 8)

    @property
    def vector_elements(self) -> int:
        """Elements of a 16-byte load."""
        return 8 * VECTOR_BYTES // self.dtype.bits


@dataclass(frozen=True, slots=True)
class Share:
    """How a batch is served: so many vectors `at_once`, in so many `rounds` that each read the weight."""

    at_once: int
    rounds: int
    registers: int


@dataclass(frozen=True, slots=True)
class Way:
    """A plan and its load of the weight: how far apart lanes are, bytes a load, instructions that reduce, and when.

    `together` is how many loads of the weight a thread has on their way at once; ways of one `kind` differ in how much.
    """

    plan: Plan
    source: Step
    lane_stride_bytes: int
    load_bytes: int
    reduction_instructions: int
    condition: str
    together: int
    kind: str
    share: Share


def unroll_loop(width: int, at_once: int) -> float:
    """How often a loop over so many vectors at once is unrolled, as seen in `m_row_scalar_*` and `m_row_vector_*`."""
    if width == VECTOR_BYTES:
        return max(1.0, UNROLL_WIDE / at_once)
    return float(UNROLL_NARROW) if at_once <= _FEW_VECTORS else max(1.0, UNROLL_NARROW / at_once)


def find_burst(width: int, at_once: int, *, columns_split: bool = False) -> int:
    """How many loads of the weight are issued before the first is waited for, as seen in the same kernels.

    From four vectors on the loads of x need the scoreboards, and weights are waited for one by one.
    """
    if width == VECTOR_BYTES:
        return BURST_COLUMNS if columns_split else BURST_WIDE
    return BURST_NARROW // at_once if at_once <= _FEW_VECTORS else 1


def share_batch(weight: Weight, outputs: int, fixed: int, most: int = 4096) -> Share:
    """As many vectors at once, a power of two, as the sums of `outputs` leave room beside `fixed` registers."""
    room = min(most, max(1, (_MOST_REGISTERS - _PLAIN_REGISTERS - fixed) // outputs))
    at_once = weight.batch if weight.batch <= room else 1 << int(math.log2(room))
    return Share(at_once, -(-weight.batch // at_once), count_registers(fixed + outputs * at_once))


def count_registers(beside: int) -> int:
    """Registers of a thread that holds so many sums, weights and x."""
    return min(_MOST_REGISTERS, _PLAIN_REGISTERS + beside)


def list_row_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [N, K]: lanes along K, with a reduction, or a thread a row."""
    whole = WARP_LANES * VECTOR_BYTES
    plans = []
    if weight.row_bytes < whole:
        rows = 1 << int(math.log2(whole / weight.row_bytes))
        plans.append(_plan_lanes_along_k(weight, device, f"{rows} rows a warp", rows=rows))
    plans.append(_plan_lanes_along_k(weight, device, "a warp a row, 16-byte loads"))
    name = f"a warp a row, {weight.narrow_bytes}-byte loads"
    plans.append(_plan_lanes_along_k(weight, device, name, width=weight.narrow_bytes))
    # Splitting K pays where there are fewer warps than the device holds.
    room = device.sm_count * require_capability(device).max_warps_per_sm
    plans += [
        _plan_lanes_along_k(weight, device, f"a warp {rows} rows at once", together=rows)
        for rows in (4, 8)
        if weight.row_bytes >= whole and weight.n % rows == 0 and weight.n >= rows * room / 4
    ]
    plans += [
        _plan_lanes_along_k(weight, device, f"{parts} warps a row (split K)", parts=parts)
        for parts in (2, 4, 8)
        if weight.n * parts <= 2 * room and weight.row_bytes >= whole * parts
    ]
    plans.append(_plan_thread_a_row(weight, device))
    return plans


def list_column_ways(weight: Weight, device: DeviceSpec) -> list[Way]:
    """Mappings of a weight [K, N]: lanes along N, each thread walking down K, perhaps with K split over warps."""
    plans = [_plan_lanes_along_n(weight, device, "a thread a column", weight.narrow_bytes, 1)]
    a_lane = weight.vector_elements
    plans.append(_plan_lanes_along_n(weight, device, f"a thread {a_lane} columns", VECTOR_BYTES, 1))
    for parts in (8, 32):
        if weight.k >= 4 * parts:
            name = f"a thread {a_lane} columns, K/{parts}"
            plans.append(_plan_lanes_along_n(weight, device, name, VECTOR_BYTES, parts))
    return plans


def _plan_lanes_along_k(
    weight: Weight,
    device: DeviceSpec,
    name: str,
    *,
    width: int = VECTOR_BYTES,
    rows: int = 1,
    parts: int = 1,
    together: int = 1,
) -> Way:
    """Lanes side by side in a row of K, and a shuffle reduction.

    `rows` rows share a warp's load, or `parts` warps a row, or a warp takes `together` rows at once and each x once.
    """
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    lanes_a_row = WARP_LANES // rows
    active_lanes = min(lanes_a_row, max(1, weight.row_bytes // width))
    inside = np.minimum(lane % lanes_a_row, active_lanes - 1)
    warp = np.arange(8, dtype=np.int64)[:, None]
    offsets = (warp * rows + lane // lanes_a_row) * weight.row_bytes + inside * width
    source = load("w", offsets, width)
    elements = 8 * width / weight.dtype.bits
    passes = max(1.0, weight.row_bytes / (lanes_a_row * width * parts))
    fixed = round(4 * together + 8) if width == VECTOR_BYTES else 2 * BURST_NARROW
    share = share_batch(weight, together, fixed)
    unroll = max(1.0, min(passes, unroll_loop(width, share.at_once)) / together)
    burst = find_burst(width, share.at_once)
    loop = _loop(weight, share, source, inside * elements * X_BYTES, (unroll, burst), device, together=together)
    shuffles = max(1, round(math.log2(active_lanes))) if active_lanes > 1 else 0
    reduction = 2 * shuffles * share.at_once * together
    once = [work("index", 20), work("reduce", reduction, pipe="memory", waits=True)]
    if parts > 1:
        once += [
            shared("partial", lane * 0 + np.arange(1)[:, None] * 4, 4, operation="store", times=share.at_once),
            barrier(),
            shared("partials", lane % min(parts, BLOCK_WARPS) * 4, 4, times=share.at_once),
        ]
    once.append(store("y", np.zeros((1, WARP_LANES), dtype=np.int64), Y_BYTES, times=share.at_once * together))
    warps = -(-weight.n * parts // (rows * together))
    grid = -(-warps // BLOCK_WARPS), WARP_LANES * BLOCK_WARPS
    plan = finish_plan(weight, share, name, grid, (loop, once), passes / unroll, device)
    stride = width if lanes_a_row > 1 else weight.row_bytes
    least = WARP_LANES * width * 8 // weight.dtype.bits // rows * parts
    need = f"K is at least {least:,} elements; shorter ones leave lanes idle"
    if parts > 1 or rows > 1:
        need = (
            f"N is small: {weight.n:,} rows alone fill no device" if parts > 1 else f"K is at most {least:,} elements"
        )
    asked = together * burst
    kind = "a warp a row" if width == VECTOR_BYTES else "a warp a row, narrow"
    kind = "rows a warp" if rows > 1 else "split K" if parts > 1 else "rows together" if together > 1 else kind
    return Way(plan, source, stride, width, reduction, need, asked, kind, share)


def plan_rows_of_blocks(weight: Weight, device: DeviceSpec, name: str, blocks: int) -> Way:
    """So many blocks a row, each of which shares its part of K among its warps; what they found is not added yet."""
    way = _plan_lanes_along_k(weight, device, name, parts=blocks * BLOCK_WARPS)
    # The warps of a block add first: its own sum is the one thing that leaves it.
    return replace(way, plan=replace(way.plan, once=tuple(step for step in way.plan.once if step.name != "y")))


def _plan_thread_a_row(weight: Weight, device: DeviceSpec) -> Way:
    """Each lane walks along a row of its own: every lane in a sector of its own, used by the passes that follow."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    width = weight.narrow_bytes
    plain = load("w", lane * weight.row_bytes, width)
    blocks = -(-weight.n // 128)
    # A lane's sector lives on while its other elements are read, if L1 holds those of all resident lanes; DRAM brings
    # the next one too, which the L2 has then.
    fetched = device.dram_fetch_bytes or DEFAULT_FETCH_BYTES
    threads_per_sm = min(2048, 128 * -(-blocks // device.sm_count))
    l1_bytes = occupancy(128, 32, device=device).l1_bytes
    fits = threads_per_sm * 32 <= l1_bytes
    source = replace(plain, dram_share=width / fetched, l2_share=width / 32 - width / fetched) if fits else plain
    passes = weight.row_bytes / width
    share = share_batch(weight, 1, 2 * BURST_NARROW)
    unroll = min(passes, unroll_loop(width, share.at_once))
    burst = find_burst(width, share.at_once)
    loop = _loop(weight, share, source, lane * 0, (unroll, burst), device)
    once = (work("index", 16), store("y", lane * Y_BYTES, Y_BYTES, times=share.at_once))
    plan = finish_plan(weight, share, "a thread a row", (blocks, 128), (loop, once), passes / unroll, device)
    if not fits:
        plan = replace(plan, dram_read_bytes=plan.dram_read_bytes * 32 / width)
    live = threads_per_sm * 32
    condition = f"{live:,} B of live sectors an SM {'fit' if fits else 'do not fit'} L1's {l1_bytes:,} B"
    return Way(plan, plain, weight.row_bytes, width, 0, condition, burst, "a thread a row", share)


def _plan_lanes_along_n(weight: Weight, device: DeviceSpec, name: str, width: int, parts: int) -> Way:
    """Lanes side by side in a row of N, each thread walking down K: coalesced, and no reduction in the warp."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    source = load("w", lane * width, width)
    columns = max(1, 8 * width // weight.dtype.bits)
    passes = weight.k / parts
    fixed = 5 * BURST_COLUMNS if width == VECTOR_BYTES else 2 * BURST_NARROW
    share = share_batch(weight, columns, fixed)
    unroll = min(passes, unroll_loop(width, share.at_once))
    burst = find_burst(width, share.at_once, columns_split=parts > 1)
    loop = _loop(weight, share, source, lane * 0, (unroll, burst), device, along_n=True)
    warps_a_block = parts if parts > 1 else 4
    groups = -(-weight.n // (columns * WARP_LANES))
    blocks = groups if parts > 1 else -(-groups // warps_a_block)
    once, reduction = gather_parts(columns * share.at_once, parts)
    once.append(store("y", lane * Y_BYTES * columns, Y_BYTES, times=columns * share.at_once))
    grid = blocks, WARP_LANES * warps_a_block
    plan = finish_plan(weight, share, name, grid, (loop, once), passes / unroll, device)
    plan = replace(plan, shared_bytes=parts * columns * WARP_LANES * 4 if parts > 1 else 0)
    kind = "a thread a column" if width < VECTOR_BYTES else "columns, split K" if parts > 1 else "columns"
    need = "N fills the device, or K is split over enough warps"
    return Way(plan, source, width, width, reduction, need, burst, kind, share)


def gather_parts(sums: int, parts: int) -> tuple[list[Step], int]:
    """What adds the sums of `parts` warps of a block through shared memory, and how many instructions that is."""
    lane = np.arange(WARP_LANES, dtype=np.int64)[None, :]
    steps = [work("index", 16)]
    if parts == 1:
        return steps, 0
    steps += [
        shared("partial", lane * 4, 4, operation="store", times=sums),
        barrier(),
        shared("partials", lane * 4, 4, times=max(1, sums // parts) * parts),
    ]
    return steps, 2 * sums


def _loop(
    weight: Weight,
    share: Share,
    source: Step,
    x_offsets: Lanes | npt.NDArray[np.float64],
    shape: tuple[float, int],
    device: DeviceSpec,
    *,
    along_n: bool = False,
    together: int = 1,
) -> list[Step]:
    """One pass, burst by burst: the weight's loads, those of x, then decoding and multiplying.

    The `shape` is how often the loop is unrolled, and how many loads of the weight a burst has.
    """
    dtype, batch = weight.dtype, share.at_once
    unroll, most = shape
    elements = 8 * source.width_bytes / dtype.bits
    # Along K each element has an x of its own; along N all elements of a lane share one.
    x_elements = 1.0 if along_n else elements
    x_width = 16 if x_elements >= 4 else 4
    offsets = (np.asarray(x_offsets).astype(np.int64) // x_width) * x_width
    x_loads = max(1.0, x_elements * X_BYTES / x_width) * batch
    bursts = max(1, round(unroll / most))
    vectors = unroll / bursts
    burst = [
        replace(source, times=vectors * together),
        load_x(weight, share, offsets.reshape(-1, WARP_LANES)[:1], x_width, vectors * x_loads, device),
        work("decode", vectors * together * elements * dtype.decode_instructions, waits=True),
        work("multiply", vectors * together * elements * batch, pipe="fp32"),
    ]
    return [*burst * bursts, work("loop", 4 + unroll)]


def load_x(
    weight: Weight, share: Share, offsets: Lanes, width: int, times: float, device: DeviceSpec, warps: int = BLOCK_WARPS
) -> Step:
    """Loads of x, which L1 holds where it is small; else one of the `warps` that go through K together fetches it."""
    held = share.at_once * weight.k * X_BYTES <= occupancy(256, 40, device=device).l1_bytes
    return load("x", offsets, width, times=times, dram_share=0.0, l2_share=0.02 if held else 1 / warps)


def finish_plan(
    weight: Weight,
    share: Share,
    name: str,
    grid: tuple[int, int],
    steps: tuple[Sequence[Step], Sequence[Step]],
    passes: float,
    device: DeviceSpec,
) -> Plan:
    """The plan of a grid (blocks, threads a block) that goes through steps (of the loop, once) once a round."""
    rounds = share.rounds
    stays = weight.size_bytes <= L2_KEEPS * device.l2_bytes
    loop = [_read_again(step, rounds) if step.name == "w" and stays else step for step in steps[0]]
    return Plan(
        name,
        max(1, grid[0]),
        grid[1],
        loop=tuple(loop),
        once=tuple(replace(step, times=step.times * rounds) for step in steps[1]),
        passes=passes * rounds,
        registers=share.registers,
        dram_read_bytes=weight.size_bytes * (1 if stays else rounds) + weight.batch * weight.k * X_BYTES,
        dram_write_bytes=float(weight.batch * weight.n * Y_BYTES),
    )


def _read_again(step: Step, rounds: int) -> Step:
    """Loads of which the first of so many rounds comes from where they came from, the others from the L2."""
    from_l2 = step.l2_share + step.dram_share * (1 - 1 / rounds)
    return replace(step, dram_share=step.dram_share / rounds, l2_share=from_l2)
