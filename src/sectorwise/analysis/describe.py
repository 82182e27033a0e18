"""Turns the model of a kernel into its entry of the analysis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sectorwise.analysis.data import (
    Coverage,
    FaultReport,
    FindingReport,
    KernelAnalysis,
    Launch,
    LimitationReport,
    MemorySite,
    ResourceUse,
)
from sectorwise.analysis.describe_copies import describe_copies, describe_ring
from sectorwise.analysis.describe_pace import (
    describe_concurrency,
    describe_occupancy,
    describe_roofline,
    describe_time,
    describe_traffic,
    describe_waves,
)
from sectorwise.analysis.instructions import HangReport, InstructionUse, Output, PatternUse
from sectorwise.binary.ir import Location
from sectorwise.counting.request import Operation, Space
from sectorwise.launch.dtypes import ELEMENT_TYPES
from sectorwise.machine.execution import Certainty, FaultKind
from sectorwise.machine.forms import access_of
from sectorwise.rules.requests import draw_banks, draw_sectors
from sectorwise.rules.selection import find_rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sectorwise.binary.ir import Instruction
    from sectorwise.findings import Finding, Picture
    from sectorwise.machine.execution import Fault, Hang, Limitation, Pattern, Site
    from sectorwise.model.kernel_model import KernelModel

FAULT_CODES: Final = {FaultKind.OUT_OF_BOUNDS: "SW901", FaultKind.MISALIGNED: "SW902"}
"""Codes under which wrong accesses are reported."""

HANG_CODE: Final = "SW903"

_SMALL_BYTES: Final = 64 << 20
_SMALL_INSTRUCTIONS: Final = 1 << 24

_PATTERNS_SHOWN: Final = 4
"""Distinct patterns of a site that documents carry: the dearest, which are the ones that people ask about."""


def describe_kernel(
    model: KernelModel,
    findings: Sequence[Finding],
    name_file: Callable[[str], str],
    *,
    keep_outputs: bool | Literal["small"] = False,
) -> KernelAnalysis:
    """The entry of one launch; `name_file` gives the name that reports use for a file of the debug information.

    `keep_outputs` copies the final contents of the buffers into it: of all launches, or of small ones.
    """
    kernel, launch, execution = model.bound.kernel, model.bound.launch, model.execution
    places = _Places(
        model,
        name_file,
        {site.instruction: place for place, site in enumerate(execution.sites)},
        {copies.instruction: place for place, copies in enumerate(execution.bulk)},
    )
    return KernelAnalysis(
        name=launch.kernel,
        case=launch.case,
        launch=Launch(grid=launch.grid, block=launch.block, dynamic_shared_bytes=launch.dynamic_shared_bytes),
        resources=ResourceUse(
            registers_per_thread=kernel.resources.registers_per_thread,
            static_shared_bytes=kernel.resources.static_shared_bytes,
            local_bytes_per_thread=kernel.resources.local_bytes_per_thread,
        ),
        coverage=_describe_coverage(model),
        sites=tuple(_describe_site(site, places) for site in execution.sites),
        totals=model.totals,
        occupancy=describe_occupancy(model.occupancy),
        waves=describe_waves(model.pace.waves),
        concurrency=describe_concurrency(model.pace),
        roofline=describe_roofline(model.pace),
        traffic=describe_traffic(model.traffic, places.sites, places.copies),
        time=describe_time(model, places.location),
        faults=tuple(_describe_fault(fault, places) for fault in execution.faults),
        findings=tuple(_describe_finding(finding, places) for finding in findings),
        limitations=tuple(_describe_limitation(limitation, places) for limitation in execution.limitations),
        copies=tuple(describe_copies(each, places) for each in execution.bulk),
        copy_ring=describe_ring(model),
        hangs=tuple(_describe_hang(hang, places) for hang in execution.hangs),
        instructions=tuple(
            InstructionUse(places.offset(each.index), each.text, places.location(each.index), int(issued))
            for each, issued in zip(kernel.instructions, execution.issued, strict=True)
        ),
        outputs=_read_outputs(model) if keep_outputs is True or (keep_outputs and _is_small(model)) else None,
        bound=model.bound,
    )


@dataclass(frozen=True, slots=True)
class _Places:
    """Where an instruction stands: in the code, among the sites, in the source."""

    model: KernelModel
    name_file: Callable[[str], str]
    sites: dict[int, int]
    copies: dict[int, int]

    def instruction(self, index: int) -> Instruction:
        return self.model.bound.kernel.instructions[index]

    def offset(self, index: int) -> str:
        return f"0x{self.instruction(index).offset:04x}"

    def location(self, index: int) -> Location | None:
        found = self.instruction(index).location
        return None if found is None else self._rename(found)

    def entry(self) -> Location | None:
        """Where the kernel begins: of its first instruction the place that was not inlined."""
        found = self.location(0)
        return found if found is None or not found.inlined_at else found.inlined_at[-1]

    def _rename(self, location: Location) -> Location:
        callers = tuple(self._rename(caller) for caller in location.inlined_at)
        return Location(self.name_file(location.file), location.line, callers)


def _describe_coverage(model: KernelModel) -> Coverage:
    sites, total = model.execution.sites, model.bound.launch.blocks_total
    executed = model.execution.blocks_executed
    listed = {site.instruction for site in sites}
    in_code = {each.index for each in model.bound.kernel.instructions if access_of(each) is not None}
    return Coverage(
        blocks_total=total,
        blocks_executed=executed,
        certainty=Certainty.EXACT if model.execution.sampling is None else Certainty.SAMPLED,
        sites=len(sites),
        sites_unknown=sum(site.unknown_because is not None for site in sites),
        sites_not_issued=len(in_code - listed),
        sampled=model.execution.sampling,
    )


def _describe_site(site: Site, places: _Places) -> MemorySite:
    known = site.unknown_because is None
    return MemorySite(
        offset=places.offset(site.instruction),
        sass=places.instruction(site.instruction).text,
        location=places.location(site.instruction),
        space=site.access.space,
        operation=site.access.operation,
        width_bytes=site.access.width_bytes,
        executed=site.executed,
        tag_requests=site.tag_requests if known else None,
        sectors=site.sectors if known else None,
        sectors_ideal=site.sectors_ideal if known else None,
        sectors_local=site.sectors_local if known else None,
        wavefronts=site.wavefronts if known else None,
        wavefronts_ideal=site.wavefronts_ideal if known else None,
        wavefronts_hardware=site.wavefronts_hardware if known else None,
        certainty=site.certainty if known else None,
        certainty_hardware=site.certainty_hardware if known else None,
        unknown_because=site.unknown_because,
        lanes=site.lanes if known else None,
        patterns=tuple(_describe_pattern(site, each) for each in site.patterns[:_PATTERNS_SHOWN]) if known else (),
    )


def _describe_pattern(site: Site, pattern: Pattern) -> PatternUse:
    return PatternUse(
        requests=pattern.times,
        sectors=pattern.sectors,
        sectors_ideal=pattern.sectors_ideal,
        wavefronts=pattern.wavefronts,
        wavefronts_ideal=pattern.wavefronts_ideal,
        pictures=tuple(_draw(site, pattern)),
    )


def _draw(site: Site, pattern: Pattern) -> Iterator[Picture]:
    """Nothing for local memory, where the compiler interleaves the lanes, and nothing of lanes in no such space."""
    space, copies = site.access.space, site.access.operation is Operation.ASYNC_COPY
    drawn: list[Picture] = []
    if space in {Space.GLOBAL, Space.GENERIC}:
        drawn.append(draw_sectors(site, pattern))
    if space in {Space.SHARED, Space.GENERIC} or copies:
        drawn.append(draw_banks(site, pattern))
    return (picture for picture in drawn if any(lane is not None for lane in picture.lanes))


def _describe_fault(fault: Fault, places: _Places) -> FaultReport:
    return FaultReport(
        code=FAULT_CODES[fault.kind],
        kind=fault.kind,
        site=places.sites.get(fault.instruction),
        offset=places.offset(fault.instruction),
        location=places.location(fault.instruction),
        block=fault.block,
        warp=fault.warp,
        lane=fault.lane,
        address=hex(fault.address),
        width_bytes=fault.width_bytes,
        occurrences=fault.occurrences,
        message=fault.message,
    )


def _describe_finding(finding: Finding, places: _Places) -> FindingReport:
    (rule,) = find_rules(finding.code)
    sites = tuple(places.sites[index] for index in finding.instructions if index in places.sites)
    copies = tuple(places.copies[index] for index in finding.instructions if index in places.copies)
    return FindingReport(
        code=finding.code,
        rule=rule.name,
        severity=finding.severity,
        site=sites[0] if sites else None,
        sites=sites,
        location=places.location(finding.instructions[0]) if finding.instructions else places.entry(),
        message=finding.message,
        advice=finding.advice,
        evidence=finding.evidence,
        cost_ns=finding.cost_ns,
        remedies=finding.remedies,
        copies=copies,
    )


def _describe_hang(hang: Hang, places: _Places) -> HangReport:
    return HangReport(
        code=HANG_CODE,
        offset=places.offset(hang.instruction),
        location=places.location(hang.instruction),
        waiting=hang.waiting,
        warps=hang.warps,
        message=hang.message,
        is_certain=hang.is_certain,
    )


def _describe_limitation(limitation: Limitation, places: _Places) -> LimitationReport:
    return LimitationReport(
        site=places.sites.get(limitation.instruction),
        offset=places.offset(limitation.instruction),
        because=limitation.because,
        location=places.location(limitation.instruction),
        of_values=limitation.of_values,
    )


def _is_small(model: KernelModel) -> bool:
    """Whether what the launch leaves is there, or made in about a second, and small enough to be kept."""
    held_bytes = sum(allocation.size_bytes for allocation in model.bound.allocations)
    is_short = model.totals.instructions <= _SMALL_INSTRUCTIONS
    return model.execution.sampling is None and is_short and held_bytes <= _SMALL_BYTES


def _read_outputs(model: KernelModel) -> tuple[Output, ...]:
    """Copies, since the machine keeps the bytes."""
    return tuple(
        Output(
            argument=allocation.argument,
            values=model.execution.read_buffer(place).copy().view(ELEMENT_TYPES[allocation.buffer.dtype].storage),
        )
        for place, allocation in enumerate(model.bound.allocations)
    )
