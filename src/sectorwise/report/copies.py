"""Turns the bulk copies of a source line into rows of the terminal report, beside those of memory instructions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.machine.execution import Certainty
from sectorwise.report.figures import write_bytes, write_percent, write_ratio
from sectorwise.report.page import Page, Role, clip, fold, paint, tidy
from sectorwise.report.sites import SASS_GAP, find_opcode, has_room

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.analysis.instructions import BulkCopyUse

_HALF: Final = 0.5
_KIBI: Final = 1024
_MOST_DIGITS: Final = 9999
_SHORT: Final = {Certainty.SCHEDULE_DEPENDENT: "varies", Certainty.MODELLED: "model"}


def name_copies(copies: BulkCopyUse) -> str:
    """`bulk tile load`, `bulk range exchange`."""
    return f"bulk {copies.shape} {copies.operation}"


def measure_efficiency(copies: BulkCopyUse) -> float | None:
    """Ideal over real sectors; None where there are none, or they are not known."""
    if not copies.sectors or copies.sectors_ideal is None:
        return None
    return copies.sectors_ideal / copies.sectors


def write_copies(listed: Iterable[BulkCopyUse], page: Page, sure: str | None = None) -> Iterator[str]:
    """One row for all instructions with equal numbers, as `sites.write_sites`; bytes are those of one copy.

    Below it stands what goes to several blocks, and what of it lies outside of its tensor.
    """
    alike: dict[tuple[object, ...], list[BulkCopyUse]] = {}
    for copies in listed:
        alike.setdefault(_strip_place(copies), []).append(copies)
    for group in alike.values():
        yield _write_row(group[0], len(group), page, sure)
        for detail in describe_copies(group[0]):
            for line in fold(page, f"       {detail}"):
                yield paint(page, Role.QUIET, line)


def describe_copies(copies: BulkCopyUse) -> Iterator[str]:
    """What is worth a line of its own."""
    if copies.multicast and copies.targets is not None and copies.copies:
        yield f"each to {copies.targets / copies.copies:.3g} blocks of the cluster, read once"
    if copies.outside_bytes:
        what = "filled" if copies.operation == "load" else "left out"
        yield f"{copies.outside_bytes:,} of {copies.asked_bytes:,} bytes lie outside of the tensor, and are {what}"


def _strip_place(copies: BulkCopyUse) -> tuple[object, ...]:
    """All that is shown of it."""
    return (
        *(copies.operation, copies.shape, copies.multicast, copies.copies, copies.targets, copies.asked_bytes),
        *(copies.outside_bytes, copies.sectors, copies.sectors_ideal, copies.certainty),
    )


def _write_row(copies: BulkCopyUse, number: int, page: Page, sure: str | None) -> str:
    efficiency = measure_efficiency(copies)
    unknown = copies.unknown_because is not None
    absent = "?" if unknown else "-"
    role = _choose_role(efficiency, unknown=unknown)
    mark = paint(page, role, "?" if unknown else "!" if role in {Role.FAIR, Role.BAD} else " ")
    times = tidy(page, f"×{number}") if number > 1 else ""  # noqa: RUF001 - the sign is meant
    sure = sure or "unknown" if copies.certainty is None else sure or _SHORT.get(copies.certainty, copies.certainty)
    count = copies.executed if copies.copies is None else copies.copies
    requests = f"{count * number:,}"
    wide = min(max(len(requests) - 9, 0), 19)
    size = _write_size(copies)
    room = max(4, len(size) + 1)  # never against the number of instructions
    real, ideal = (
        None if each is None or not copies.copies or not copies.sectors else each / copies.copies
        for each in (copies.sectors, copies.sectors_ideal)
    )
    row = (
        f"  {mark} {name_copies(copies):<{19 - wide}}{times:>{8 - room}}{size:>{room}} {requests:>9}"
        f"{write_ratio(real, absent=absent):>6}{write_ratio(ideal, absent=absent):>6}{'-':>7}{'-':>6}"
        f"{paint(page, role, f'{write_percent(efficiency, absent=absent):>6}')} {sure:<7}"
    )
    if not has_room(page):
        return row
    sass = copies.sass if number == 1 else find_opcode(copies.sass)
    return f"{row}  {paint(page, Role.QUIET, clip(page, sass, page.width - SASS_GAP))}"


def _write_size(copies: BulkCopyUse) -> str:
    """Bytes of one copy in four columns: `512`, `8K`, `?`; `~8K` where they differ."""
    if copies.asked_bytes is None or not copies.copies:
        return "?"
    size, rest = divmod(copies.asked_bytes, copies.copies)
    about = "~" if rest else ""
    return f"{about}{size >> 10}K" if size % _KIBI == 0 or size > _MOST_DIGITS or about else str(size)


def _choose_role(efficiency: float | None, *, unknown: bool) -> Role:
    if unknown:
        return Role.UNKNOWN
    if efficiency is None or efficiency >= 1:
        return Role.QUIET
    return Role.FAIR if efficiency >= _HALF else Role.BAD


def sum_copies(listed: Iterable[BulkCopyUse]) -> Iterator[str]:
    """A line of totals for each kind of bulk copy: how many, their bytes, their sectors against the ideal."""
    kinds: dict[str, list[BulkCopyUse]] = {}
    for copies in listed:
        kinds.setdefault(f"bulk {copies.operation}s".replace("prefetchs", "prefetches"), []).append(copies)
    for kind, group in kinds.items():
        yield f"    {kind:<16}{_add(each.copies for each in group):>15} {'copies':<11}{_sum_bytes(group)}"
        sectors = _add(each.sectors for each in group)
        if sectors not in {"0", "unknown"}:
            ideal = _add(each.sectors_ideal for each in group)
            share = sum(each.sectors_ideal or 0 for each in group) / sum(each.sectors or 0 for each in group)
            yield f"    {'':<16}{sectors:>15} {'sectors':<11}{ideal:>15} ideal {write_percent(share):>7}"


def _add(counts: Iterable[int | None]) -> str:
    known = list(counts)
    return "unknown" if None in known else f"{sum(count for count in known if count is not None):,}"


def _sum_bytes(group: Iterable[BulkCopyUse]) -> str:
    known = [each.asked_bytes for each in group]
    total = sum(each for each in known if each is not None)
    return (
        f"{'unknown':>15}"
        if None in known
        else f"{total:>15,} bytes" + (f", {write_bytes(total)}" if total >= _KIBI and total % _KIBI == 0 else "")
    )
