"""Turns how a launch fills its device into a few lines of the terminal report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.model.concurrency import Bound
from sectorwise.model.roofline import Level
from sectorwise.report.figures import write_bytes
from sectorwise.report.page import Role, fold, paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.data import (
        CliffsUse,
        ConcurrencyUse,
        KernelAnalysis,
        RooflineUse,
        TimeUse,
        TrafficUse,
        WavesUse,
    )
    from sectorwise.analysis.instructions import RingUse
    from sectorwise.report.page import Page

_LIMITERS: Final = {"shared": "shared memory", "blocks": "the number of blocks"}
HELD_UP: Final = {
    "latency": "waiting for data",
    "dram": "DRAM",
    "l2": "the L2",
    "issue": "issuing",
    "blocks": "starting blocks",
    "copies": "waiting for bulk copies",
    "atomics": "atomics",
    "l1": "L1 and shared memory",
    "stores": "separate lines of stores",
    "special": "special functions and conversions",
    "int": "integer arithmetic",
    "multiply": "integer multiplication",
    "fp32": "fp32 arithmetic",
    "fp64": "fp64 arithmetic",
    "memory": "issuing memory instructions",
}
"""What `time.bound` names, in words."""
_OBSTACLES: Final = {
    "latency": "waiting for data",
    "issue": "issuing so many instructions",
    "arithmetic": "arithmetic",
    "passes": "passes of L1 and shared memory",
    "last_wave": "SMs idle in the last wave",
    "blocks": "starting blocks",
    "atomics": "atomics on one address",
    "lone_fetches": "fetches of lone 64-byte blocks",
}
WORTH_COMPARING_PCT: Final = 5
_LEVELS: Final = {Level.DRAM: "DRAM", Level.L2: "L2", Level.L1: "L1 and shared", Level.ISSUE: "issue"}


def write_concurrency(kernel: KernelAnalysis, sm_count: int, page: Page) -> Iterator[str]:
    """Occupancy and its cliffs, waves, bytes in flight, and the least time at each level of the roofline."""
    lines = [*_write_occupancy(kernel), _write_waves(kernel.waves, sm_count)]
    if kernel.concurrency is not None:
        lines.append(_write_in_flight(kernel.concurrency, follows_caches=kernel.traffic is not None))
        if kernel.concurrency.assumed:
            lines.append(f"    assumed: {'; '.join(kernel.concurrency.assumed)}")
    if kernel.copy_ring is not None:
        lines.append(_write_ring(kernel.copy_ring))
    if kernel.traffic is not None:
        lines.append(_write_traffic(kernel.traffic))
    if kernel.time is not None:
        lines.extend(_write_time(kernel.time))
    lines.extend(_write_roofline(kernel.roofline))
    for line in lines:
        for text in fold(page, line.removeprefix("!")):
            yield paint(page, Role.FAIR, text) if line.startswith("!") else text


def _write_occupancy(kernel: KernelAnalysis) -> Iterator[str]:
    held = kernel.occupancy
    limiter = _LIMITERS.get(held.limiter, held.limiter)
    yield f"  occupancy {held.theoretical_pct:.4g} %: {_count_blocks(held.blocks_per_sm)} an SM, limited by {limiter}"
    if "blocks_per_sm" in held.assumed:
        yield "    assumed: clusters fit like single blocks; how many do only the driver knows"
    if cliffs := _name_cliffs(held.cliffs, held.limiter):
        yield f"    {cliffs}"


def _name_cliffs(cliffs: CliffsUse, limiter: str) -> str:
    """The way up where one resource limits, and the nearest ways down."""
    parts = []
    for name, unit, cliff in (
        ("registers", "registers", cliffs.registers),
        ("shared", "B shared", cliffs.shared),
    ):
        if cliff.gain is not None and name == limiter:
            parts.append(f"{cliff.gain.blocks_per_sm} blocks up to {cliff.gain.last:,} {unit}")
        if cliff.loss is not None:
            blocks = _count_blocks(cliff.loss.blocks_per_sm) if cliff.loss.blocks_per_sm else "none"
            parts.append(f"{blocks} from {cliff.loss.first:,} {unit} on")
    return f"would be {', '.join(parts)}" if parts else ""


def _count_blocks(blocks: int) -> str:
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def _write_waves(waves: WavesUse, sm_count: int) -> str:
    room = waves.blocks_per_wave // sm_count * sm_count
    if waves.rounds == 1:
        idle = waves.idle_sms_last_wave
        uneven = f"{waves.fewest_blocks_an_sm} or {waves.most_blocks_an_sm} blocks an SM"
        where = f"{idle} of {sm_count} SMs idle" if idle else uneven
        if waves.most_blocks_an_sm == waves.fewest_blocks_an_sm:
            where = f"{_count_blocks(waves.most_blocks_an_sm)} on every SM"
        mark = "!" if idle else ""
        return f"{mark}  waves {waves.waves:.2f}: {waves.blocks_last_wave:,} of {room:,} places taken, {where}"
    idle = waves.idle_sms_last_wave
    tail = f", {idle} of {sm_count} SMs idle" if idle else ""
    mark = "!" if waves.slowdown_if_latency_bound > 1.2 else ""
    return f"{mark}  waves {waves.waves:.2f}: the last is {waves.last_wave_pct:.3g} % full{tail}"


def _write_in_flight(found: ConcurrencyUse, *, follows_caches: bool) -> str:
    """Where caches were not followed, every sector is taken to come from DRAM: then no load of DRAM is claimed."""
    mark = "!" if found.bound is Bound.LATENCY and found.memory_busy < 0.7 else ""
    kept, needed = found.in_flight_bytes_per_sm / 1000, found.needed_bytes_per_sm / 1000
    match found.bound:
        case Bound.ISSUE:
            pace = ", schedulers busy"
        case _ if follows_caches:
            pace = f", DRAM {100 * found.memory_busy:.0f} % busy"
        case _:
            pace = " if none hits"
    return (
        f"{mark}  in flight {kept:.3g} KB an SM ({needed:.3g} KB fill DRAM): "
        f"loads {found.load_gbs / 1000:.2g} TB/s{pace}"
    )


def _write_ring(ring: RingUse) -> str:
    """How much bulk loads can have in flight, marked where it is less than fills DRAM."""
    kept, needed = ring.in_flight_bytes_per_sm / 1000, ring.needed_bytes_per_sm / 1000
    mark = "!" if ring.passes > 1 and kept < needed else ""
    stages = "one stage" if ring.stages == 1 else f"{ring.stages} stages"
    passes = "once" if ring.passes == 1 else f"{ring.passes:.3g} times over"
    return (
        f"{mark}  bulk loads land in {stages}, {write_bytes(ring.window_bytes)} a block, {passes}: "
        f"{kept:.3g} KB an SM in flight at most ({needed:.3g} KB fill DRAM)"
    )


def _write_traffic(found: TrafficUse) -> str:
    hits, reads = 32 * found.l1_hit_sectors, 32 * found.l2_sectors_read_from_sm
    warm = {"warm": ", L2 warm", "chain": ", L2 as earlier launches left it"}.get(found.cache, "")
    return (
        f"  from L1 {write_amount(hits)}, from L2 {write_amount(reads)}, DRAM read "
        f"{write_amount(found.dram_bytes_read)}, written {write_amount(found.dram_bytes_write)} "
        f"({found.certainty}{warm})"
    )


_JUDGED_NS: Final = 20_000
"""Shorter launches were not judged (docs/model-errors.md): what is said of the error is that of longer ones."""


def _write_time(found: TimeUse) -> Iterator[str]:
    guess = ", assumed" if found.assumed else ""
    held_up = HELD_UP.get(found.bound, found.bound)
    short = ", of launches above 20 us" if found.estimate_ns < _JUDGED_NS else ""
    error = f"median error {100 * found.error.median:.0f} %{short}{guess}"
    yield f"  about {write_time(found.estimate_ns)} ({error}): {held_up}"
    causes = [f"{_OBSTACLES[cause.obstacle]} {write_time(cause.ns)}" for cause in found.causes]
    reached = 100 * found.ceiling_ns / found.estimate_ns
    if reached > WORTH_COMPARING_PCT:
        least = write_time(found.ceiling_ns)
        yield f"    DRAM at its fastest would take {least} for these bytes, {reached:.0f} % of that"
    if causes:
        yield f"    it would take less without {', '.join(causes)}"


def write_amount(count_bytes: float) -> str:
    """`0 B`, `12.3 KB`, `2.04 GB`: three digits, powers of ten."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count_bytes >= 0.9995 * size:
            return f"{count_bytes / size:.3g} {unit}"
    return f"{count_bytes:.0f} B"


def _write_roofline(found: RooflineUse) -> Iterator[str]:
    times = [
        f"{_LEVELS[level.level]} {write_time(level.least_ns)}" for level in found.levels if level.least_ns is not None
    ]
    if found.operations:
        times.append(f"{found.data_type} {write_time(found.compute_ns)}")
    yield "  time at least: " + " · ".join(times)
    if assumed := [level.assumed for level in found.levels if level.assumed and level.least_ns is not None]:
        yield f"    assumed: {'; '.join(assumed)}"
    if not found.operations:
        return
    level = next((each for each in found.levels if each.level == found.bound), None)
    if level is not None and level.intensity is not None:
        unit = "warp instruction" if level.level is Level.ISSUE else "byte"
        yield (
            f"  roofline: {level.intensity:.3g} {found.data_type} operations a {unit} at "
            f"{_LEVELS[level.level]}, ridge {level.ridge:.3g}"
        )


def write_time(ns: float) -> str:
    """`812 ns`, `12.3 us`, `1.20 ms`: three digits."""
    if ns < 999.5:
        return f"{ns:.3g} ns"
    return f"{ns / 1e3:.3g} us" if ns < 999_500 else f"{ns / 1e6:.3g} ms"
