"""Turns an execution into what people and programs read: plain frozen data in the shape of the JSON document.

Every number that could not be known is None, never zero. Fields marked with `_KEPT_HERE` serve Python and the terminal
report and are left out of the document.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sectorwise.findings import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sectorwise.analysis.instructions import BulkCopyUse, HangReport, InstructionUse, Output, PatternUse, RingUse
    from sectorwise.binary.ir import Location
    from sectorwise.binding import BoundLaunch
    from sectorwise.counting.request import Operation, Space
    from sectorwise.findings import Evidence, Remedy, Severity
    from sectorwise.machine.execution import Certainty, FaultKind, Sampling
    from sectorwise.model.cliffs import Step
    from sectorwise.model.concurrency import Bound
    from sectorwise.model.occupancy import Limiter
    from sectorwise.model.roofline import Level
    from sectorwise.model.totals import Totals

SCHEMA: Final = "sectorwise.analysis/1"
"""Name and version of the JSON document; the number grows when a reader of the old one would misread the new one."""

_KEPT_HERE: Final[Mapping[str, Any]] = {"document": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """What made the document: this package, and the compiler of the kernel (None where a cubin was given)."""

    name: str
    version: str
    compiler: str | None


@dataclass(frozen=True, slots=True)
class Device:
    """The device that the launches were bound to, and the compile target of the code that ran."""

    id: str
    name: str
    compute_capability: str
    target: str


@dataclass(frozen=True, slots=True)
class Launch:
    """Shape of a launch; `text` is how reports write it, arguments apart."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared_bytes: int


@dataclass(frozen=True, slots=True)
class ResourceUse:
    """What a block needs, from the cubin's tables."""

    registers_per_thread: int
    static_shared_bytes: int
    local_bytes_per_thread: int


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the launch and of the kernel the numbers stand for.

    `blocks_executed` ran, or do by proof what one that ran did. `sites` are the memory instructions listed,
    `sites_unknown` those with an unknown address, `sites_not_issued` those of the code with which no lane accessed any.
    """

    blocks_total: int
    blocks_executed: int
    certainty: Certainty
    sites: int
    sites_unknown: int
    sites_not_issued: int
    sampled: Sampling | None = None


@dataclass(frozen=True, slots=True)
class CliffUse:
    """Where one resource alone would let one more block fit an SM, and where one would fall out; None: nowhere."""

    gain: Step | None
    loss: Step | None


@dataclass(frozen=True, slots=True)
class CliffsUse:
    """Cliffs over registers a thread and over bytes of shared memory a block."""

    registers: CliffUse
    shared: CliffUse


@dataclass(frozen=True, slots=True)
class OccupancyUse:
    """Blocks that an SM holds at once, by each resource alone (None: it does not limit) and by all of them."""

    limit_warps: int
    limit_registers: int
    limit_shared: int | None
    limit_shared_max_carveout: int | None
    limit_blocks: int
    limit_barriers: int | None
    shared_config_bytes: int
    blocks_per_sm: int
    theoretical_pct: float
    limiter: Limiter
    warps_per_sm: int
    max_warps_per_sm: int
    l1_bytes: int
    cliffs: CliffsUse
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WavesUse:
    """How the blocks of the launch fill the device; as in `model.waves.Waves`, with its ratios worked out."""

    waves: float
    rounds: int
    blocks_per_wave: int
    blocks_last_wave: int
    last_wave_pct: float
    idle_sms_last_wave: int
    most_blocks_an_sm: int
    fewest_blocks_an_sm: int
    slowdown_if_latency_bound: float
    slowdown_if_throughput_bound: float


@dataclass(frozen=True, slots=True)
class ConcurrencyUse:
    """Bytes in flight of the loop that loads the most; as in `model.concurrency.Concurrency`."""

    warps_per_sm: int
    sm_count: int
    requested_bytes_per_sm: float
    in_flight_bytes_per_sm: float
    needed_bytes_per_sm: float
    latency_ns: float
    queued_ns: float
    load_gbs: float
    memory_busy: float
    bound: Bound
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LevelUse:
    """A kernel at one level of the roofline: `amount` in bytes, or in warp instructions at `issue`; None: not known.

    `ridge` is the intensity, operations of the roofline's data type by amount, from which on arithmetic is the limit.
    `assumed` says why the level's ceiling is a guess.
    """

    level: Level
    amount: float | None
    ceiling_per_ns: float
    least_ns: float | None
    intensity: float | None
    ridge: float
    attainable_gflops: float | None
    assumed: str | None


@dataclass(frozen=True, slots=True)
class RooflineUse:
    """The roofline with the kernel on it; `bound` is a level or `compute`: what takes the longest, `least_ns`."""

    data_type: str
    operations: int
    peak_gflops: float
    compute_ns: float
    least_ns: float
    bound: str
    levels: tuple[LevelUse, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SiteTrafficUse:
    """Where the sectors of one load come from; `site` is its place in `sites`, or in `copies` for a bulk copy."""

    site: int
    l1_hit_sectors: int
    l2_hit_sectors: int
    dram_sectors: int


@dataclass(frozen=True, slots=True)
class TrafficUse:
    """What the launch moves between the levels, caches cold; as in `model.traffic.Traffic`."""

    l1_hit_sectors: int
    l2_sectors_read_from_sm: int
    l2_sectors_read: int
    dram_bytes_read: int
    dram_bytes_write: int
    certainty: Certainty
    sites: tuple[SiteTrafficUse, ...]
    cache: str
    blocks_followed: int
    assumed: tuple[str, ...]
    copies: tuple[SiteTrafficUse, ...] = ()


@dataclass(frozen=True, slots=True)
class TimeError:
    """How far estimates were from measured launches: the median of |p - m| / m, and which launches these were."""

    median: float
    source: str = field(metadata={"name": "from"})


@dataclass(frozen=True, slots=True)
class LineTime:
    """The part of the estimate that a source line answers for; `location` is None for code without one."""

    location: Location | None
    ns: float


@dataclass(frozen=True, slots=True)
class CauseUse:
    """An obstacle and the ns that the launch would take less without it, as in `model.causes.Cause`."""

    obstacle: str
    ns: float


@dataclass(frozen=True, slots=True)
class TimeUse:
    """How long the launch takes and what holds it up; as in `model.time.Time`. `lines`: the costliest first.

    `ceiling_ns` is what DRAM alone would take for the bytes at the highest rate that was measured: `estimate_ns` over
    it says how far the launch is from it, and `causes` why, the dearest first.
    """

    estimate_ns: float
    bound: str
    parts_ns: Mapping[str, float]
    ceiling_ns: float
    causes: tuple[CauseUse, ...]
    error: TimeError
    lines: tuple[LineTime, ...]
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MemorySite:
    """One memory instruction that a warp issued, with its counts summed over the launch; counts as in DESIGN section 3.

    Where the address was not known `unknown_because` says why, and every count but `executed` is None. `lanes` accessed
    in all, `certainty_hardware` is of `wavefronts_hardware` and the pipe's totals, `patterns` are the dearest, not all.
    """

    offset: str
    sass: str
    location: Location | None
    space: Space
    operation: Operation
    width_bytes: int
    executed: int
    tag_requests: int | None
    sectors: int | None
    sectors_ideal: int | None
    sectors_local: int | None
    wavefronts: int | None
    wavefronts_ideal: int | None
    wavefronts_hardware: int | None
    certainty: Certainty | None
    unknown_because: str | None
    lanes: int | None = None
    certainty_hardware: Certainty | None = None
    patterns: tuple[PatternUse, ...] = ()


@dataclass(frozen=True, slots=True)
class FaultReport:
    """The first access of an instruction that is wrong, and how many lanes did likewise over the launch."""

    code: str
    kind: FaultKind
    site: int | None
    offset: str
    location: Location | None
    block: tuple[int, int, int]
    warp: int
    lane: int
    address: str
    width_bytes: int
    occurrences: int
    message: str


@dataclass(frozen=True, slots=True)
class LimitationReport:
    """What could not be known (`site` is None where it is about none), and why; `of_values`: no count hangs on it."""

    site: int | None
    offset: str
    because: str
    location: Location | None
    of_values: bool = False


@dataclass(frozen=True, slots=True)
class FindingReport:
    """A fault that a rule found.

    `site` is the dearest of the memory instructions `sites` that it is about; None and empty where it is about the
    whole kernel, about bulk copies (`copies`), or about what is not listed. `cost_ns`: None where it is not known.
    """

    code: str
    rule: str
    severity: Severity
    site: int | None
    sites: tuple[int, ...]
    location: Location | None
    message: str
    advice: str
    evidence: Evidence | None
    cost_ns: float | None
    remedies: tuple[Remedy, ...]
    copies: tuple[int, ...] = ()

    def _repr_html_(self) -> str:
        return str(show("write_finding", self))


@dataclass(frozen=True, slots=True)
class KernelAnalysis:
    """All that is known of one launch of one kernel; what is not computed yet is None.

    `instructions` is the whole code, `outputs` the buffers after the launch, in order of the arguments, if asked for;
    `bound` is what was executed, and where it lay in memory, `cubin` the machine code.
    """

    name: str
    case: str | None
    launch: Launch
    resources: ResourceUse
    coverage: Coverage
    sites: tuple[MemorySite, ...]
    totals: Totals
    occupancy: OccupancyUse
    waves: WavesUse
    concurrency: ConcurrencyUse | None
    roofline: RooflineUse
    traffic: TrafficUse | None
    time: TimeUse | None
    faults: tuple[FaultReport, ...]
    findings: tuple[FindingReport, ...]
    limitations: tuple[LimitationReport, ...]
    copies: tuple[BulkCopyUse, ...] = ()
    copy_ring: RingUse | None = None
    hangs: tuple[HangReport, ...] = ()
    instructions: tuple[InstructionUse, ...] = field(default=(), compare=False, repr=False, metadata=_KEPT_HERE)
    outputs: tuple[Output, ...] | None = field(default=None, compare=False, repr=False, metadata=_KEPT_HERE)
    bound: BoundLaunch | None = field(default=None, compare=False, repr=False, metadata=_KEPT_HERE)
    cubin: bytes = field(default=b"", compare=False, repr=False, metadata=_KEPT_HERE)

    def _repr_html_(self) -> str:
        return str(show("write_kernel", self))


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of `sectorwise.analyze`: a device and one entry for each launch.

    `source` is the file as it was named; `source_texts` has the text of each source file that could be read, by the
    name that locations use.
    """

    schema: str
    tool: Tool
    device: Device
    source: str
    kernels: tuple[KernelAnalysis, ...]
    source_texts: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @property
    def plot(self) -> Any:  # noqa: ANN401 - `report.plots.Plots`, a layer above
        """Figures of the launches, `plot.roofline(kernel=0)`, made with matplotlib: returned, not shown."""
        return show("make_plots", self)

    def _repr_html_(self) -> str:
        return str(show("write_analysis", self))
