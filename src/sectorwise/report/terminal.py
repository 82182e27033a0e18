"""Turns an analysis into the report of the command line: each source line, and what its memory instructions cost."""

from __future__ import annotations

import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from sectorwise.analysis.instructions import BulkCopyUse
from sectorwise.device import load_device
from sectorwise.findings import Severity
from sectorwise.machine.execution import Certainty
from sectorwise.report.concurrency import write_concurrency
from sectorwise.report.configs import write_configs
from sectorwise.report.copies import write_copies
from sectorwise.report.figures import name_operation, write_bytes
from sectorwise.report.findings import write_findings
from sectorwise.report.page import Page, Role, clip, fold, measure, paint, tidy, wrap
from sectorwise.report.sites import write_header, write_sites
from sectorwise.report.totals import write_totals

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.data import Analysis, FaultReport, KernelAnalysis, LimitationReport, MemorySite
    from sectorwise.analysis.verification import KernelComparison
    from sectorwise.binary.ir import Location
    from sectorwise.machine.execution import Sampling

_LEGEND = (
    ("request", "one memory instruction issued by one warp, 32 lanes at once"),
    ("sectors", "pieces of 32 bytes that a request touches, on average"),
    ("wavefronts", "passes that shared memory takes; more than ideal are bank conflicts"),
    ("ideal", "what the same bytes would take if they lay side by side"),
    ("eff.", "ideal / real; ! marks what is below 100 %"),
    ("×4", "four instructions with equal counts; their requests are added"),  # noqa: RUF001 - as in the table
    ("bulk", "a copy of a whole tile or range (TMA): one request, its bytes, its sectors; K: KiB"),
    ("sure", "exact: executed for every lane, and equal to what the profiler shows"),
    ("varies", "depends on the order in which warps run: on what atomics give back, or how often a loop looks"),
    ("assumed", "depends on values that are taken for granted, or that are not known to the last bit"),
    ("sampled", "estimated from blocks that ran in place of all; the others need not do the same"),
    ("?", "an address depends on something that is not known"),
)


def render(analysis: Analysis, page: Page | None = None) -> str:
    """The report as text with a final newline; `page` says how wide, and whether colours and Unicode may be used."""
    page = page or Page()
    lines = [_write_title(analysis, page)]
    for kernel in analysis.kernels:
        lines += ["", *_write_kernel(analysis, kernel, page)]
    lines += write_configs(analysis.kernels, page)
    lines += ["", *_write_legend(analysis, page)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _write_title(analysis: Analysis, page: Page) -> str:
    parts = [
        f"{analysis.tool.name} {analysis.tool.version}",
        analysis.source,
        f"{analysis.device.name} ({analysis.device.target})",
        *([analysis.tool.compiler] if analysis.tool.compiler else []),
    ]
    return paint(page, Role.QUIET, clip(page, " · ".join(parts), page.width))


def _write_kernel(analysis: Analysis, kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    yield write_rule(name_launch(kernel), page)
    yield from _write_facts(analysis, kernel, page)
    if kernel.sites or kernel.copies:
        yield ""
        yield from write_header(page)
        yield from _write_lines(analysis, kernel, page)
        yield ""
        yield from write_totals(kernel, page)
    else:
        yield "  no warp issued a memory instruction"
    yield ""
    yield from _write_faults(kernel, page)
    yield from write_findings(kernel.findings, page, is_timed=kernel.time is not None)
    yield from _write_limitations(kernel.limitations, page)


def name_launch(kernel: KernelAnalysis | KernelComparison) -> str:
    """`transpose<<<(16, 16), (32, 8)>>>`, and the case's name where it has another."""
    shape = ", ".join(write_extent(extent) for extent in (kernel.launch.grid, kernel.launch.block))
    dynamic = f", {kernel.launch.dynamic_shared_bytes}" if kernel.launch.dynamic_shared_bytes else ""
    case = f"  {kernel.case}" if kernel.case not in {None, kernel.name} else ""
    return f"{kernel.name}<<<{shape}{dynamic}>>>{case}"


def write_extent(extent: tuple[int, int, int]) -> str:
    """`16`, `(16, 16)`, `(8, 8, 8)`."""
    x, y, z = extent
    if z != 1:
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if y != 1 else str(x)


def write_rule(title: str, page: Page) -> str:
    """A line across the page with a title in it."""
    name = clip(page, title, page.width - 6)
    rule = tidy(page, "─" * max(0, page.width - measure(name) - 4))
    return (
        f"{paint(page, Role.QUIET, tidy(page, '──'))} {paint(page, Role.TITLE, name)} {paint(page, Role.QUIET, rule)}"
    )


def _write_facts(analysis: Analysis, kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    coverage, resources = kernel.coverage, kernel.resources
    blocks = (
        f"all {coverage.blocks_total:,} blocks executed".replace("all 1 blocks", "its one block")
        if coverage.sampled is None
        else f"{coverage.blocks_executed:,} of {coverage.blocks_total:,} blocks executed ({coverage.certainty})"
    )
    shared = write_bytes(resources.static_shared_bytes + kernel.launch.dynamic_shared_bytes)
    yield from fold(page, f"  {blocks} · {kernel.totals.instructions:,} warp instructions")
    if coverage.sampled is not None:
        yield from fold(page, f"  {_write_sample(coverage.sampled)}")
    yield from fold(
        page,
        f"  {resources.registers_per_thread} registers, {write_bytes(resources.local_bytes_per_thread)} local a thread"
        f" · {shared} shared a block",
    )
    yield from write_concurrency(kernel, load_device(analysis.device.id).sm_count, page)


def _write_sample(sampled: Sampling) -> str:
    return (
        f"sampled: {len(sampled.blocks):,} blocks, corners, edges and others spread evenly, stand for {sampled.of:,};"
        f" the last doubling moved no count by more than {100 * sampled.change:.2g} %{_write_error(sampled)},"
        f" but blocks unlike the others may be missed where they are rare; all of them (--all-blocks) would run"
        f" {sampled.instructions:,} warp instructions"
    )


def _write_error(sampled: Sampling) -> str:
    """By how much the blocks that ran leave the sum open."""
    if not sampled.error:
        return ""
    return f", and as they differ their sum is known to {100 * sampled.error:.2g} % (in 19 of 20 samples)"


def _write_lines(analysis: Analysis, kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    """Sites and bulk copies by source line, in the order of the source; what has no line comes last."""
    every: list[MemorySite | BulkCopyUse] = [*kernel.sites, *kernel.copies]
    numbered = sorted(enumerate(every), key=lambda pair: (_order(pair[1].location), pair[0]))
    file = None
    for location, group in groupby(numbered, key=lambda pair: pair[1].location):
        if location is not None and location.file != file:
            file = location.file
            yield paint(page, Role.TITLE, clip(page, _name_file(analysis, file), page.width))
        yield from _write_line(analysis, location, page)
        listed = [each for _, each in group]
        yield from write_sites((each for each in listed if not isinstance(each, BulkCopyUse)), page)
        yield from write_copies((each for each in listed if isinstance(each, BulkCopyUse)), page)


def _order(location: Location | None) -> tuple[bool, str, int, tuple[tuple[str, int], ...]]:
    if location is None:
        return (True, "", 0, ())
    return (False, location.file, location.line, tuple((caller.file, caller.line) for caller in location.inlined_at))


def _name_file(analysis: Analysis, file: str) -> str:
    return file if file in analysis.source_texts else f"{file} (source not found: line numbers only)"


def _write_line(analysis: Analysis, location: Location | None, page: Page) -> Iterator[str]:
    if location is None:
        yield paint(page, Role.QUIET, "       (no line information)")
        return
    text = _read_line(analysis, location)
    number = paint(page, Role.QUIET, f"{location.line:>5}  ")
    yield number + clip(page, text, page.width - 7)
    for caller in location.inlined_at:
        place = f"line {caller.line}" if caller.file == location.file else f"{caller.file}:{caller.line}"
        yield paint(
            page, Role.QUIET, clip(page, f"       inlined at {place}: {_read_line(analysis, caller)}", page.width)
        )


def _read_line(analysis: Analysis, location: Location) -> str:
    lines = analysis.source_texts.get(location.file, "").splitlines()
    return lines[location.line - 1].strip() if 0 < location.line <= len(lines) else ""


def _write_limitations(limitations: tuple[LimitationReport, ...], page: Page) -> Iterator[str]:
    if not limitations:
        yield paint(page, Role.QUIET, "  unknown: nothing")
        return
    yield paint(page, Role.UNKNOWN, "  unknown")
    said = Counter(f"{_name_place(each.location, each.offset)}: {each.because}" for each in limitations)
    for text, times in said.items():
        yield from wrap(page, text if times == 1 else f"{text} ({times} instructions)", 4)


def _write_faults(kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    if kernel.faults or kernel.hangs:
        yield paint(page, Role.WRONG, "  wrong")
    alike: dict[tuple[str, str, int, Location | str], list[FaultReport]] = {}
    for fault in kernel.faults:
        access = "access" if fault.site is None else name_operation(kernel.sites[fault.site])
        place = fault.location or fault.offset
        alike.setdefault((access, fault.code, fault.width_bytes, place), []).append(fault)
    for (access, *_), faults in alike.items():
        yield from _write_fault(access, faults, page)
    for hang in kernel.hangs:
        yield from wrap(page, f"{hang.code} endless wait: {_name_place(hang.location, hang.offset)}", 4)
        yield from wrap(page, f"{hang.message}; counts are of what ran until then", 6)
    errors = [finding for finding in kernel.findings if finding.severity is Severity.ERROR]
    for code, advice in dict.fromkeys((finding.code, finding.advice) for finding in errors):
        yield from wrap(page, f"help: {advice}; `sectorwise explain {code}`", 4)


def _write_fault(access: str, faults: list[FaultReport], page: Page) -> Iterator[str]:
    """Wrong accesses of one kind by one line, by the first of them: a loop that was unrolled has many."""
    fault, lanes = faults[0], sum(each.occurrences for each in faults)
    yield from wrap(
        page, f"{fault.code} {fault.kind.replace('_', ' ')}: {_name_place(fault.location, fault.offset)}", 4
    )
    at = "" if fault.address in fault.message else f" at {fault.address}"
    yield from wrap(page, f"{access} of {fault.width_bytes} bytes{at}: {fault.message}", 6)
    more = "" if lanes == 1 else f"; {lanes:,} lanes in all"
    more += "" if len(faults) == 1 else f", by {len(faults)} instructions"
    yield from wrap(page, f"first in block {fault.block}, warp {fault.warp}, lane {fault.lane}{more}", 6)


def _name_place(location: Location | None, offset: str) -> str:
    return f"{location.file}:{location.line}" if location is not None else f"instruction {offset}"


def _write_legend(analysis: Analysis, page: Page) -> Iterator[str]:
    sites = [site for kernel in analysis.kernels for site in kernel.sites]
    copies = [each for kernel in analysis.kernels for each in kernel.copies]
    needed = {"?": any(site.unknown_because for site in sites) or any(each.unknown_because for each in copies)}
    needed["bulk"] = bool(copies)
    sure = {site.certainty for site in sites} | {each.certainty for each in copies}
    needed["varies"], needed["assumed"] = Certainty.SCHEDULE_DEPENDENT in sure, Certainty.ASSUMED in sure
    needed["sampled"] = any(kernel.coverage.sampled is not None for kernel in analysis.kernels)
    for word, meaning in _LEGEND if sites or needed["bulk"] else ():
        if needed.get(word, True):
            lines = textwrap.wrap(f"{tidy(page, word):<11}{meaning}", page.width, subsequent_indent=" " * 11)
            yield from (paint(page, Role.QUIET, line) for line in lines)
