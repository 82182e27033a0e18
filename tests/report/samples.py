"""Analyses made by hand, of every kind of row that a report has to show."""

from __future__ import annotations

from dataclasses import replace

from sectorwise.analysis.data import (
    SCHEMA,
    Analysis,
    Coverage,
    Device,
    FaultReport,
    KernelAnalysis,
    Launch,
    LimitationReport,
    MemorySite,
    ResourceUse,
    Tool,
)
from sectorwise.analysis.describe_pace import (
    describe_concurrency,
    describe_occupancy,
    describe_roofline,
    describe_waves,
)
from sectorwise.analysis.instructions import BulkCopyUse, RingUse
from sectorwise.binary.ir import Location
from sectorwise.counting.request import Access, Operation, Space
from sectorwise.device import load_device
from sectorwise.machine.copy_forms import CopyOperation, Place, Shape
from sectorwise.machine.execution import Certainty, FaultKind, Sampling, Site
from sectorwise.model.concurrency import estimate_concurrency
from sectorwise.model.occupancy import occupancy
from sectorwise.model.pace import Pace
from sectorwise.model.roofline import Level, draw_roofline, place_kernel
from sectorwise.model.schedule import Access as Moved
from sectorwise.model.schedule import Schedule, Slot
from sectorwise.model.totals import sum_totals
from sectorwise.model.waves import count_waves

SOURCE = """\
__device__ float read(const float* p, int i) { return p[i]; }

__global__ void sample(const float* in, float* out, const int* index) {
    __shared__ float tile[32][32];
    tile[threadIdx.y][threadIdx.x] = read(in, threadIdx.x);  // a comment that is longer than the page is wide
    __syncthreads();
\tout[index[threadIdx.x]] = tile[threadIdx.x][threadIdx.y];  // tabs, π and an escape \x1b[31m
}
"""


SAMPLED = Sampling((*range(0, 64, 7), 18, 25, 33, 50, 57, 60), of=64, change=0.0031, instructions=40_960)


def place(line: int, *callers: int) -> Location:
    return Location("sample.cu", line, tuple(Location("sample.cu", caller) for caller in callers))


NOTHING = Site(
    instruction=0,
    access=Access(Space.GLOBAL, Operation.LOAD, 4, "ANY"),
    executed=0,
    lanes=0,
    sectors=0,
    sectors_ideal=0,
    tag_requests=0,
    wavefronts=0,
    wavefronts_ideal=0,
    wavefronts_hardware=0,
    sectors_local=0,
    certainty=Certainty.EXACT,
)


def count(space: Space, operation: Operation, width: int, executed: int, **counts: int) -> Site:
    counted = replace(NOTHING, executed=executed, lanes=32 * executed, access=Access(space, operation, width, "ANY"))
    for name, value in counts.items():
        counted = replace(counted, **{name: value})  # type: ignore[arg-type]  # one name at a time, each a count
    return counted


COUNTS = (
    count(Space.GLOBAL, Operation.LOAD, 4, 2048, sectors=8192, sectors_ideal=8192, tag_requests=2048),
    count(Space.SHARED, Operation.STORE, 4, 2048, wavefronts=2048, wavefronts_ideal=2048, wavefronts_hardware=2048),
    count(Space.SHARED, Operation.LOAD, 4, 2048, wavefronts=65536, wavefronts_ideal=2048, wavefronts_hardware=65536),
    count(Space.GLOBAL, Operation.STORE, 4, 2048, sectors=65536, sectors_ideal=8192, tag_requests=65536),
    count(Space.LOCAL, Operation.LOAD, 16, 2048, sectors_local=32768),
)


def show(site: Site, offset: int, sass: str, location: Location | None) -> MemorySite:
    return MemorySite(
        offset=f"0x{offset:04x}",
        sass=sass,
        location=location,
        space=site.access.space,
        operation=site.access.operation,
        width_bytes=site.access.width_bytes,
        executed=site.executed,
        tag_requests=site.tag_requests,
        sectors=site.sectors,
        sectors_ideal=site.sectors_ideal,
        sectors_local=site.sectors_local,
        wavefronts=site.wavefronts,
        wavefronts_ideal=site.wavefronts_ideal,
        wavefronts_hardware=site.wavefronts_hardware,
        certainty=site.certainty,
        unknown_because=None,
        lanes=site.lanes,
        certainty_hardware=site.certainty_hardware,
    )


def hide(executed: int, offset: int, sass: str, location: Location, because: str) -> MemorySite:
    return MemorySite(
        offset=f"0x{offset:04x}",
        sass=sass,
        location=location,
        space=Space.GLOBAL,
        operation=Operation.ATOMIC,
        width_bytes=4,
        executed=executed,
        tag_requests=None,
        sectors=None,
        sectors_ideal=None,
        sectors_local=None,
        wavefronts=None,
        wavefronts_ideal=None,
        wavefronts_hardware=None,
        certainty=None,
        unknown_because=because,
    )


BECAUSE = "its address depends on R4, which TEX at sample.cu:7 loaded from a texture"

SITES = (
    show(COUNTS[0], 0x80, "LDG.E.CONSTANT R3, desc[UR4][R2.64]", place(1, 5)),
    show(COUNTS[1], 0xC0, "STS [R5], R3", place(5)),
    show(COUNTS[2], 0xF0, "LDS R7, [R6]", place(7)),
    show(COUNTS[3], 0x110, "STG.E desc[UR4][R8.64], R7", place(7)),
    show(COUNTS[4], 0x120, "LDL.128 R12, [R1]", None),
)


H200 = load_device("h200")
HELD = occupancy(1024, 28, 5120, device=H200)
PACE = Pace(
    waves=count_waves(64, 2, H200.sm_count),
    resident_warps_per_sm=32,
    concurrency=estimate_concurrency(
        Schedule((Slot(4, sets=0, load=Moved(512)), Slot(4, waits_for=(0,), branches=True)), repeats=True), 32, H200
    ),
    roofline=draw_roofline(H200),
    kernel_roofline=place_kernel(
        draw_roofline(H200), {Level.L2: 3e6, Level.L1: 1.4e7, Level.ISSUE: 40960}, 1e6, "fp32"
    ),
    operations=(("fp32", 1_000_000),),
    operations_without_peak=(),
    assumed=("nothing hits in L1: bytes at the L2 are an upper bound",),
)


def make_kernel(
    *,
    sites: tuple[MemorySite, ...] = SITES,
    faults: tuple[FaultReport, ...] = (),
    limitations: tuple[LimitationReport, ...] = (),
    blocks_executed: int = 64,
    counts: tuple[Site, ...] = COUNTS,
) -> KernelAnalysis:
    return KernelAnalysis(
        name="sample",
        case=None,
        launch=Launch((8, 8, 1), (32, 32, 1), 1024),
        resources=ResourceUse(registers_per_thread=28, static_shared_bytes=4096, local_bytes_per_thread=16),
        coverage=Coverage(
            blocks_total=64,
            blocks_executed=blocks_executed,
            certainty=Certainty.EXACT if blocks_executed == 64 else Certainty.SAMPLED,
            sites=len(sites),
            sites_unknown=sum(site.unknown_because is not None for site in sites),
            sites_not_issued=0,
            sampled=None if blocks_executed == 64 else SAMPLED,
        ),
        sites=sites,
        totals=sum_totals(counts if sites else (), 40960),
        occupancy=describe_occupancy(HELD),
        waves=describe_waves(PACE.waves),
        concurrency=describe_concurrency(PACE),
        roofline=describe_roofline(PACE),
        traffic=None,
        time=None,
        faults=faults,
        findings=(),
        limitations=limitations,
    )


def make_analysis(*kernels: KernelAnalysis, source_texts: dict[str, str] | None = None) -> Analysis:
    return Analysis(
        schema=SCHEMA,
        tool=Tool("sectorwise", "0.0.0", "NVRTC 13.0"),
        device=Device("h200-sxm", "NVIDIA H200 SXM", "9.0", "sm_90"),
        source="sample.cu",
        kernels=kernels or (make_kernel(),),
        source_texts={"sample.cu": SOURCE} if source_texts is None else source_texts,
    )


TILES = BulkCopyUse(
    offset="0x0140",
    sass="UTMALDG.2D [UR8], [UR4]",
    location=place(5),
    operation=CopyOperation.LOAD,
    shape=Shape.TILE,
    source=Place.GLOBAL,
    target=Place.SHARED,
    multicast=False,
    executed=64,
    copies=64,
    targets=64,
    asked_bytes=64 * 8192,
    outside_bytes=0,
    written_bytes=64 * 8192,
    row_bytes=16,
    sectors=64 * 512,
    sectors_ideal=64 * 256,
    sectors_l2=64 * 512,
    certainty=Certainty.EXACT,
    unknown_because=None,
)
LOST = "UTMASTG: what a tensor map names is not known"
COPIES = (
    TILES,
    replace(
        TILES,
        offset="0x0150",
        sass="UTMALDG.2D.MULTICAST [UR8], [UR4], UR10",
        multicast=True,
        copies=32,
        targets=64,
        asked_bytes=32 * 8192,
        outside_bytes=1024,
        row_bytes=128,
        sectors=64 * 256,
        certainty=Certainty.ASSUMED,
    ),
    replace(
        TILES,
        offset="0x0160",
        sass="UBLKPF.L2 [UR4], UR6",
        location=place(7),
        operation=CopyOperation.PREFETCH,
        shape=Shape.RANGE,
        target=Place.L2,
        targets=0,
        asked_bytes=64 * 528,
        written_bytes=0,
        row_bytes=528,
        sectors=0,
        sectors_ideal=0,
        sectors_l2=64 * 17,
    ),
    BulkCopyUse(
        "0x0170",
        "UTMASTG.2D [UR8], [UR4]",
        place(7),
        CopyOperation.STORE,
        Shape.TILE,
        Place.SHARED,
        Place.GLOBAL,
        multicast=False,
        executed=64,
        copies=None,
        targets=None,
        asked_bytes=None,
        outside_bytes=None,
        written_bytes=None,
        row_bytes=None,
        sectors=None,
        sectors_ideal=None,
        sectors_l2=None,
        certainty=None,
        unknown_because=LOST,
    ),
)
COPYING = replace(
    make_kernel(limitations=(LimitationReport(site=None, offset="0x0170", because=LOST, location=place(7)),)),
    copies=COPIES,
    copy_ring=RingUse(16384, 2, 15.5, 16384, 22672.75),
)

UNKNOWN = make_kernel(
    counts=(*COUNTS, replace(COUNTS[0], unknown_because=BECAUSE)),
    sites=(*SITES, hide(2048, 0x140, "ATOMG.E.ADD PT, R0, [R4], R5", place(7), BECAUSE)),
    limitations=(LimitationReport(site=5, offset="0x0140", because=BECAUSE, location=place(7)),),
)

FAULTY = make_kernel(
    faults=(
        FaultReport(
            code="SW901",
            kind=FaultKind.OUT_OF_BOUNDS,
            site=3,
            offset="0x0110",
            location=place(7),
            block=(3, 0, 0),
            warp=1,
            lane=5,
            address="0x7f0000001000",
            width_bytes=4,
            occurrences=992,
            message="4096 bytes past the end of argument 1 (1048576 bytes)",
        ),
    ),
    blocks_executed=16,
)
