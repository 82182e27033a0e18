"""Turns the memory instructions of a source line into rows of the terminal report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.machine.execution import Certainty
from sectorwise.report.figures import Figures, compute_figures, name_operation, write_percent, write_ratio
from sectorwise.report.page import Page, Role, clip, paint, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.analysis.data import MemorySite

_ROW_COLUMNS: Final = 80
"""Columns of a row; what a wider page leaves shows the instruction itself."""

SASS_GAP: Final = _ROW_COLUMNS + 2
"""Columns before the instruction."""

_SASS_COLUMNS: Final = 22
"""With fewer columns than these an instruction is better not shown."""

_HALF: Final = 0.5

_SHORT: Final = {Certainty.SCHEDULE_DEPENDENT: "varies", Certainty.MODELLED: "model"}
"""Certainties whose own word is longer than the column."""


def write_header(page: Page) -> Iterator[str]:
    """Two lines of headings over the rows."""
    sass = "     instruction" if has_room(page) else ""
    yield paint(page, Role.QUIET, f"{'':41}sectors/req. wavefronts/req")
    heads = f"{'line':>5}  {'access':<19}{'bytes':>5}{'requests':>10}"
    yield paint(page, Role.QUIET, f"{heads}{'real':>6}{'ideal':>6}{'real':>7}{'ideal':>6}{'eff.':>6} sure{sass}")


def write_sites(sites: Iterable[MemorySite], page: Page, sure: str | None = None) -> Iterator[str]:
    """One row for all instructions with equal counts: what a compiler makes of one access in an unrolled loop.

    A row has a mark, access, number of instructions, width, requests of all of them, sectors and wavefronts a request
    beside the ideal, efficiency and certainty, or `sure` in place of that. Rows stand in the order of their first
    instructions.
    """
    alike: dict[tuple[object, ...], list[MemorySite]] = {}
    for site in sites:
        alike.setdefault(_strip_place(site), []).append(site)
    for group in alike.values():
        yield _write_row(group[0], len(group), page, sure)


def _strip_place(site: MemorySite) -> tuple[object, ...]:
    """All that a row shows of a site."""
    access = (site.space, site.operation, site.width_bytes)
    return (*access, site.executed, compute_figures(site), site.certainty)


def _write_row(site: MemorySite, number: int, page: Page, sure: str | None) -> str:
    figures = compute_figures(site)
    unknown = site.unknown_because is not None
    absent = "?" if unknown else "-"
    role = _choose_role(figures, unknown=unknown)
    mark = paint(page, role, "?" if unknown else "!" if role in {Role.FAIR, Role.BAD} else " ")
    times = tidy(page, f"×{number}") if number > 1 else ""  # noqa: RUF001 - the sign is meant
    sure = sure or "unknown" if site.certainty is None else sure or _SHORT.get(site.certainty, site.certainty)
    requests = f"{site.executed * number:,}"
    # From ten million on they take room from the access, and never stand against the bytes.
    wide = min(max(len(requests) - 9, 0), 19)
    efficiency = paint(page, role, f"{write_percent(figures.efficiency, absent=absent):>6}")
    row = (
        f"  {mark} {name_operation(site):<{19 - wide}}{times:>4}{site.width_bytes:>4} {requests:>9}"
        f"{write_ratio(figures.sectors, absent=absent):>6}{write_ratio(figures.sectors_ideal, absent=absent):>6}"
        f"{write_ratio(figures.wavefronts, absent=absent):>7}{write_ratio(figures.wavefronts_ideal, absent=absent):>6}"
        f"{efficiency} {sure:<7}"
    )
    if not has_room(page):
        return row
    sass = site.sass if number == 1 else find_opcode(site.sass)
    return f"{row}  {paint(page, Role.QUIET, clip(page, sass, page.width - SASS_GAP))}"


def find_opcode(sass: str) -> str:
    """The opcode with its modifiers: what alike instructions have in common."""
    return next((word for word in sass.split() if not word.startswith("@")), sass)


def has_room(page: Page) -> bool:
    """Whether the page shows instructions, too."""
    return page.width - SASS_GAP >= _SASS_COLUMNS


def _choose_role(figures: Figures, *, unknown: bool) -> Role:
    if unknown:
        return Role.UNKNOWN
    if figures.efficiency is None or figures.efficiency >= 1:
        return Role.QUIET
    return Role.FAIR if figures.efficiency >= _HALF else Role.BAD
