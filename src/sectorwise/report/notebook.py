"""Turns an analysis, a launch, a finding or the picture of a warp into a piece of HTML that a notebook shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sectorwise.advise.access import AccessCost
from sectorwise.analysis.lines import read_line
from sectorwise.findings import Scene
from sectorwise.report.concurrency import write_time
from sectorwise.report.copies import measure_efficiency, name_copies
from sectorwise.report.figures import compute_figures, name_operation, write_percent, write_ratio
from sectorwise.report.html.page import render_fragment
from sectorwise.report.plots import Plots

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sectorwise.advise.ranking import Ranking
    from sectorwise.advise.tiles import TilePlan
    from sectorwise.analysis.data import Analysis, FindingReport, KernelAnalysis, MemorySite
    from sectorwise.findings import Picture

_BAR_PIXELS: Final = 96
_WORD_BYTES: Final = 4
_SECTOR_WORDS: Final = 8
_LINE_WORDS: Final = 32
_MOST_ROWS: Final = 32
_GAP_PIXELS: Final = 8
_USED, _MOVED, _IDLE = "#2f7fc1", "#f0b48f", "#80808030"


@dataclass(frozen=True, slots=True)
class _Row:
    """One memory instruction, or several alike of a line; the bar is in pixels."""

    place: str
    text: str
    cells: tuple[str, ...]
    ideal: int
    excess: int


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is shown of a launch."""

    title: str
    facts: str
    rows: tuple[_Row, ...]
    findings: tuple[FindingReport, ...]
    unknown: tuple[str, ...]


def write_analysis(analysis: Analysis) -> str:
    """All launches: a row for each memory instruction, then the findings."""
    return render_fragment("notebook.html", kind="kernels", kernels=_show_all(analysis.kernels, analysis.source_texts))


def write_kernel(kernel: KernelAnalysis) -> str:
    """One launch, without the text of its lines, which the analysis has."""
    return render_fragment("notebook.html", kind="kernels", kernels=_show_all([kernel], {}))


def write_finding(finding: FindingReport) -> str:
    """What is wrong, one warp of it, what to do, and proven remedies."""
    picture = None if finding.evidence is None else finding.evidence.picture
    drawn = "" if picture is None else _draw(picture)
    return render_fragment("notebook.html", kind="finding", finding=finding, picture=drawn)


def write_picture(picture: Picture) -> str:
    """One warp: its words on the sectors of each 128-byte line, or on the banks, pass by pass."""
    return render_fragment("notebook.html", kind="picture", picture=_draw(picture))


def write_advice(advice: AccessCost | Ranking[Any] | TilePlan) -> str:
    """The table in words, as printed; of an access the picture of its first warp, too."""
    drawn = _draw(advice.picture) if isinstance(advice, AccessCost) else ""
    return render_fragment("notebook.html", kind="advice", text=str(advice), picture=drawn)


def make_plots(analysis: Analysis) -> Plots:
    """The figures of an analysis."""
    return Plots(analysis)


def _show_all(kernels: Sequence[KernelAnalysis], texts: Mapping[str, str]) -> list[_Shown]:
    return [
        _Shown(
            title=_name(kernel),
            facts=_list_facts(kernel),
            rows=(*_list_rows(kernel, texts), *_list_copies(kernel, texts)),
            findings=kernel.findings,
            unknown=tuple(dict.fromkeys(limitation.because for limitation in kernel.limitations)),
        )
        for kernel in kernels
    ]


def _name(kernel: KernelAnalysis) -> str:
    case = f"  {kernel.case}" if kernel.case not in {None, kernel.name} else ""
    return f"{kernel.name}<<<{kernel.launch.grid}, {kernel.launch.block}>>>{case}"


def _list_facts(kernel: KernelAnalysis) -> str:
    parts = [
        f"{kernel.resources.registers_per_thread} registers",
        f"occupancy {kernel.occupancy.theoretical_pct:.4g} %",
        f"{kernel.waves.waves:.2f} waves",
    ]
    if kernel.time is not None:
        parts.insert(0, f"about {write_time(kernel.time.estimate_ns)}")
    return " · ".join(parts)


def _list_rows(kernel: KernelAnalysis, texts: Mapping[str, str]) -> Iterator[_Row]:
    """Instructions of a line with equal counts are one row."""
    alike: dict[tuple[object, ...], list[MemorySite]] = {}
    for site in kernel.sites:
        key = (site.location, site.space, site.operation, site.width_bytes, site.executed, compute_figures(site))
        alike.setdefault((*key, site.unknown_because), []).append(site)
    most = max((_measure(group)[0] for group in alike.values()), default=0) or 1
    for group in alike.values():
        site, figures = group[0], compute_figures(group[0])
        real, ideal = _measure(group)
        place = "" if site.location is None else str(site.location.line)
        text = "" if site.location is None else read_line(site.location.file, site.location.line, texts)
        absent = "-" if site.unknown_because is None else "?"
        name = f"{name_operation(site)} {site.width_bytes} B"
        numbers = (figures.sectors, figures.sectors_ideal, figures.wavefronts, figures.wavefronts_ideal)
        yield _Row(
            place=place,
            text=text,
            cells=(
                name if len(group) == 1 else f"{name}, {len(group)} times",
                f"{site.executed * len(group):,}",
                *(write_ratio(number, absent=absent) for number in numbers),
                write_percent(figures.efficiency, absent=absent),
            ),
            ideal=round(_BAR_PIXELS * ideal / most),
            excess=round(_BAR_PIXELS * (real - ideal) / most),
        )


def _list_copies(kernel: KernelAnalysis, texts: Mapping[str, str]) -> Iterator[_Row]:
    """Bulk copies, a row for each instruction; bars are by the largest of them."""
    most = max((copies.sectors or 0 for copies in kernel.copies), default=0) or 1
    for copies in kernel.copies:
        file, line = ("", 0) if copies.location is None else (copies.location.file, copies.location.line)
        absent = "-" if copies.unknown_because is None else "?"
        count = copies.executed if copies.copies is None else copies.copies
        size = "?" if not copies.copies or copies.asked_bytes is None else f"{copies.asked_bytes / copies.copies:,.0f}"
        real, ideal = copies.sectors or 0, min(copies.sectors or 0, copies.sectors_ideal or 0)
        averages = (each / count if each and count else None for each in (copies.sectors, copies.sectors_ideal))
        yield _Row(
            place=str(line or ""),
            text=read_line(file, line, texts),
            cells=(
                f"{name_copies(copies)} {size} B",
                f"{count:,}",
                *(write_ratio(average, absent=absent) for average in averages),
                *("-", "-"),
                write_percent(measure_efficiency(copies), absent=absent),
            ),
            ideal=round(_BAR_PIXELS * ideal / most),
            excess=round(_BAR_PIXELS * (real - ideal) / most),
        )


def _measure(group: Sequence[MemorySite]) -> tuple[int, int]:
    """Sectors and wavefronts of the instructions, real and ideal; zero where they are not known."""
    real = sum((site.sectors or 0) + (site.wavefronts or 0) + (site.sectors_local or 0) for site in group)
    ideal = sum((site.sectors_ideal or 0) + (site.wavefronts_ideal or 0) + (site.sectors_local or 0) for site in group)
    return real, min(real, ideal)


def _draw(picture: Picture) -> object:
    """SVG of numbers that are our own, so that it may stand in a page as it is."""
    from markupsafe import Markup

    rows = _list_lines(picture) if picture.scene is Scene.SECTORS else _list_passes(picture)
    shown = rows[:_MOST_ROWS]
    apart = _GAP_PIXELS if picture.scene is Scene.SECTORS else 0
    parts: list[str] = []
    for number, row in enumerate(shown):
        at = [12 * column + apart * (column // _SECTOR_WORDS) for column in range(_LINE_WORDS)]
        parts += [_draw_cell(x, number, 94.6, _IDLE) for x in at[::_SECTOR_WORDS]]
        parts += [_draw_cell(x, number, 10.6, color) for x, color in zip(at, row, strict=True) if color is not None]
    height = 11 * len(shown) + (14 if len(rows) > len(shown) else 0)
    if len(rows) > len(shown):
        parts.append(f'<text x="0" y="{height - 3}">and {len(rows) - len(shown)} more</text>')
    name = "128-byte lines, four sectors each" if picture.scene is Scene.SECTORS else "passes over 32 banks"
    return Markup(  # noqa: S704 - nothing but numbers and colours
        f'<svg viewBox="0 0 410 {height}" width="410" role="img" aria-label="{len(rows)} {name}">{"".join(parts)}</svg>'
    )


def _draw_cell(x: float, row: int, width: float, color: str) -> str:
    return f'<rect x="{x}" y="{11 * row}" width="{width}" height="9.6" fill="{color}"/>'


def _list_lines(picture: Picture) -> list[list[str | None]]:
    """A row for each line touched, a colour for each of its words: used, moved with them, or (None) left alone."""
    used = {
        byte // _WORD_BYTES
        for place in picture.lanes
        if place is not None
        for byte in range(place, place + picture.width_bytes)
    }
    sectors = {word // _SECTOR_WORDS for word in used}
    return [
        [
            _USED if word in used else _MOVED if word // _SECTOR_WORDS in sectors else None
            for word in range(line * _LINE_WORDS, (line + 1) * _LINE_WORDS)
        ]
        for line in sorted({word // _LINE_WORDS for word in used})
    ]


def _list_passes(picture: Picture) -> list[list[str | None]]:
    """A row for each pass: of every bank one word of the lanes that go together."""
    rows: list[list[str | None]] = []
    words_a_lane = max(1, picture.width_bytes // _WORD_BYTES)
    for first in range(0, len(picture.lanes), picture.lanes_per_pass):
        banks: dict[int, list[int]] = {bank: [] for bank in range(_LINE_WORDS)}
        for place in picture.lanes[first : first + picture.lanes_per_pass]:
            for each in range(words_a_lane) if place is not None else ():
                word = (place or 0) // _WORD_BYTES + each
                if word not in banks[word % _LINE_WORDS]:
                    banks[word % _LINE_WORDS].append(word)
        depth = max(map(len, banks.values()))
        rows += [[_USED if len(banks[bank]) > deep else None for bank in banks] for deep in range(depth)]
    return rows
