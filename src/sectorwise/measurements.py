"""Turns what was measured on a device into frozen data: latencies, bandwidths, memory and cache behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sectorwise.provenance import Source


@dataclass(frozen=True, slots=True)
class Latency:
    """Idle latencies of one measurement, in cycles of `clock_mhz` (None: not locked), or in ns; None: not measured.

    `l2_cycles` is to the near half of the L2, `l2_far_cycles` to the other; `mall_cycles` to AMD's memory-side cache.
    """

    source: Source
    measured_on: str | None = None
    clock_mhz: int | None = None
    l1_cycles: float | None = None
    shared_cycles: float | None = None
    l2_cycles: float | None = None
    l2_cycles_range: tuple[float, float] | None = None
    l2_far_cycles: float | None = None
    l2_far_cycles_range: tuple[float, float] | None = None
    mall_cycles: float | None = None
    dram_cycles: float | None = None
    dram_cycles_range: tuple[float, float] | None = None
    l1_ns: float | None = None
    l2_ns: float | None = None


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A DRAM bandwidth that a kernel reached, GB/s of bytes read and written; `operation` read, copy, init or triad."""

    operation: str
    gbs: float
    source: Source
    measured_on: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryTiming:
    """How long requests to DRAM take, measured by a warp that chases pointers; cycles are of `clock_mhz`.

    `latency_cycles` are quantiles, at `probabilities`, of idle requests of one 128-byte line; each further line of a
    request adds `further_line_cycles`. `queue_service_ns` is the service time of the queue whose mean wait is what
    load adds to the latency (of a queue with fixed service times); neighbouring bytes within `queue_span_bytes` wait
    in one queue. Beside writes reads wait longer: by `write_wait_ns`, times the part of DRAM's time that these take.
    """

    source: Source
    clock_mhz: int
    probabilities: tuple[float, ...]
    latency_cycles: tuple[float, ...]
    further_line_cycles: float
    queue_span_bytes: int
    queue_service_ns: float
    write_wait_ns: float


@dataclass(frozen=True, slots=True)
class CacheBehaviour:
    """How the caches of a device behave, as far as counters tell; a part of it describes no circuit but fits them.

    `sm_groups` are sizes of groups of SMs, in the order in which they get blocks; their requests for one line within
    `merge_window_cycles` of each other travel to the L2 together, `merge_most` at most, and those for a line that comes
    from DRAM within `merge_coming_cycles`; blocks of one SM are apart by `merge_skew_cycles` in the mean. The caches
    have `l1_ways` and `l2_ways` lines a set; in the L2 up to `l2_proven_ways` of them, used again, outlive those that
    were used once, and `l2_dirty_share` of it at most differs from DRAM; it has sectors in part, of which only some
    words were stored, in at most `l2_partial_lines`. `dirty_before_bytes` lie dirty in the L2 when a profiled launch
    begins.
    """

    source: Source
    sm_groups: tuple[int, ...]
    l1_ways: int
    l2_ways: int
    l2_proven_ways: int
    l2_dirty_share: float
    l2_partial_lines: int
    merge_most: int
    merge_window_cycles: float
    merge_skew_cycles: float
    merge_coming_cycles: float
    dirty_before_bytes: float


@dataclass(frozen=True, slots=True)
class PaceBehaviour:
    """What takes time on a device beside moving data and issuing instructions.

    `launch_ns` passes before the first block begins and after the last ends. Blocks begin one every `block_start_ns`
    on the whole device; between a block and the one that takes its place lie `block_turnaround_ns`. An SM sends one
    line of a store to the L2 every `store_line_cycles`, and the L2 takes `l2_store_lines_per_ns` from all. DRAM gives
    blocks of 64 bytes that lie alone at `lone_read_gbs`. The L2 works on one address once every `same_address_ns`
    (`same_address_float_ns`), lane by lane, one of its slices on a whole sector of atomics once every
    `atomic_sector_ns`, all of them on `atomic_sectors_per_ns`, and on `l2_lone_per_ns` requests of one sector of a
    line.
    """

    source: Source
    launch_ns: float
    block_start_ns: float
    block_turnaround_ns: float
    store_line_cycles: float
    l2_store_lines_per_ns: float
    lone_read_gbs: float
    same_address_ns: float
    same_address_float_ns: float
    atomic_sector_ns: float
    atomic_sectors_per_ns: float
    l2_lone_per_ns: float
