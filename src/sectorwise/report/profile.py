"""Turns a profiler's report into text in the form of our own: each source line, and what its instructions cost."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from sectorwise.analysis.data import MemorySite
from sectorwise.machine.execution import Certainty
from sectorwise.report.concurrency import write_time
from sectorwise.report.page import Page, Role, clip, fold, paint
from sectorwise.report.sites import write_header, write_sites
from sectorwise.report.terminal import write_extent, write_rule
from sectorwise.report.totals import write_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sectorwise.analysis.profile import Profile, ProfiledLaunch, ProfiledSite, ProfiledText


def render(profile: Profile, page: Page | None = None) -> str:
    """The launches of the report as text with a final newline."""
    page = page or Page()
    lines = [paint(page, Role.QUIET, clip(page, f"{profile.source} · counted by Nsight Compute", page.width))]
    for launch in profile.launches:
        lines += ["", *_write_launch(launch, profile.texts, page)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _write_launch(launch: ProfiledLaunch, texts: Mapping[str, ProfiledText], page: Page) -> Iterator[str]:
    shape = ", ".join(write_extent(extent) for extent in (launch.grid, launch.block))
    dynamic = f", {launch.dynamic_shared_bytes}" if launch.dynamic_shared_bytes else ""
    yield write_rule(f"{launch.name}<<<{shape}{dynamic}>>>", page)
    facts = [launch.device or "a GPU that is not named"]
    if launch.registers_per_thread is not None:
        facts.append(f"{launch.registers_per_thread} registers a thread")
    if launch.time_ns is not None:
        facts.append(write_time(launch.time_ns))
    yield from fold(page, f"  {' · '.join(facts)}")
    if not launch.has_source_view:
        yield from fold(
            page,
            "  the report has no counters of single instructions: use `--section SourceCounters` or --set full",
        )
    elif launch.sites:
        yield ""
        yield from write_header(page)
        yield from _write_lines(launch, texts, page)
    else:
        yield "  no memory instruction accessed anything"
    yield from _write_totals(launch, page)


def _write_lines(launch: ProfiledLaunch, texts: Mapping[str, ProfiledText], page: Page) -> Iterator[str]:
    """The sites by file and line, in the order of the code within each; those without a line come last."""
    file = None
    for (name, line), group in groupby(sorted(launch.sites, key=_place), key=_place):
        if line and name != file:
            file = name
            yield paint(page, Role.TITLE, clip(page, _name_file(name, texts.get(name)), page.width))
        number = paint(page, Role.QUIET, f"{line:>5}  " if line else "       (no line information)")
        yield number + clip(page, _find_line(texts.get(name), line), page.width - 7)
        yield from write_sites((describe_site(site) for site in group), page, sure="counted")


def _name_file(name: str, text: ProfiledText | None) -> str:
    if text is None:
        return f"{name} (source not found: line numbers only)"
    return name if text.found_at in {None, name} else f"{name} (text of {text.found_at})"


def _find_line(text: ProfiledText | None, line: int) -> str:
    return text.lines[line - 1].strip() if text is not None and 0 < line <= len(text.lines) else ""


def _place(site: ProfiledSite) -> tuple[str, int]:
    return ("\uffff", 0) if site.location is None else (site.location.file, site.location.line)


def describe_site(site: ProfiledSite) -> MemorySite:
    """The instruction as a site of ours; what the profiler counted is as it is."""
    return MemorySite(
        offset="?" if site.offset_bytes is None else f"0x{site.offset_bytes:04x}",
        sass=site.sass,
        location=site.location,
        space=site.space,
        operation=site.operation,
        width_bytes=site.width_bytes,
        executed=site.executed or 0,
        tag_requests=site.tag_requests,
        sectors=site.sectors,
        sectors_ideal=site.sectors_ideal,
        sectors_local=site.sectors_local,
        wavefronts=site.wavefronts,
        wavefronts_ideal=site.wavefronts_ideal,
        wavefronts_hardware=None,
        certainty=Certainty.EXACT,
        unknown_because=None,
    )


def _write_totals(launch: ProfiledLaunch, page: Page) -> Iterator[str]:
    """The counters that the report holds, in the form of our own; a counter that is zero is not worth a line."""
    totals = launch.totals
    if any(totals.values()):
        yield ""
        yield paint(page, Role.TITLE, "  totals")
    yield from write_counts(totals.get)
    for kind in ("load", "store", "atom"):
        if passes := totals.get(f"shared_{kind}_wavefronts"):
            yield f"    {f'  pipe, {kind}s':<16}{passes:>15,} wavefronts"
    for kind in ("load", "store", "reduction"):
        if sectors := totals.get(f"bulk_{kind}_sectors"):
            yield f"    {f'bulk {kind}s':<16}{sectors:>15,} sectors"
    if instructions := totals.get("instructions"):
        yield f"    {'instructions':<16}{instructions:>15,} of warps"
