"""Turns the sites of a kernel into what each source line costs, and two such lists into pairs of lines."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.analysis.instructions import BulkCopyUse

_ALIKE: Final = 0.5
"""Lines with at least so much in common are the same line, changed."""


@dataclass(frozen=True, slots=True)
class LineCost:
    """What the memory instructions and bulk copies of a line cost over the launch.

    `file` and `line` are None for code without one. A count is None where one of the line's instructions is not known.
    `ns` is the line's part of the estimated time, None where there is no estimate.
    """

    file: str | None
    line: int | None
    text: str
    sites: int
    executed: int
    sectors: int | None
    sectors_ideal: int | None
    sectors_local: int | None
    wavefronts: int | None
    wavefronts_ideal: int | None
    ns: float | None


def list_line_costs(kernel: KernelAnalysis, texts: Mapping[str, str]) -> tuple[LineCost, ...]:
    """Costs of each line with a memory instruction or a part of the time, in the order of the source.

    Inlined code counts where it stands, not where it was called.
    """
    costs: dict[tuple[str | None, int | None], LineCost] = {}
    for site in kernel.sites:
        place = (None, None) if site.location is None else (site.location.file, site.location.line)
        before = costs.get(place) or _start(place, texts, None if kernel.time is None else 0.0)
        costs[place] = _add(before, site)
    for copies in kernel.copies:
        place = (None, None) if copies.location is None else (copies.location.file, copies.location.line)
        before = costs.get(place) or _start(place, texts, None if kernel.time is None else 0.0)
        costs[place] = _add_copies(before, copies)
    for part in () if kernel.time is None else kernel.time.lines:
        place = (None, None) if part.location is None else (part.location.file, part.location.line)
        before = costs.get(place) or _start(place, texts, 0.0)
        costs[place] = replace(before, ns=(before.ns or 0.0) + part.ns)
    return tuple(sorted(costs.values(), key=lambda cost: (cost.line is None, cost.file or "", cost.line or 0)))


def read_line(file: str, line: int, texts: Mapping[str, str]) -> str:
    """The text of a line without the space around it; empty where it is not there."""
    lines = texts.get(file, "").splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _start(place: tuple[str | None, int | None], texts: Mapping[str, str], ns: float | None) -> LineCost:
    file, line = place
    text = "" if file is None or line is None else read_line(file, line, texts)
    return LineCost(file, line, text, 0, 0, 0, 0, 0, 0, 0, ns)


def _add(cost: LineCost, site: MemorySite) -> LineCost:
    return replace(
        cost,
        sites=cost.sites + 1,
        executed=cost.executed + site.executed,
        sectors=_sum(cost.sectors, site.sectors),
        sectors_ideal=_sum(cost.sectors_ideal, site.sectors_ideal),
        sectors_local=_sum(cost.sectors_local, site.sectors_local),
        wavefronts=_sum(cost.wavefronts, site.wavefronts),
        wavefronts_ideal=_sum(cost.wavefronts_ideal, site.wavefronts_ideal),
    )


def _add_copies(cost: LineCost, copies: BulkCopyUse) -> LineCost:
    return replace(
        cost,
        sites=cost.sites + 1,
        executed=cost.executed + copies.executed,
        sectors=_sum(cost.sectors, copies.sectors),
        sectors_ideal=_sum(cost.sectors_ideal, copies.sectors_ideal),
    )


def _sum(before: int | None, count: int | None) -> int | None:
    return None if before is None or count is None else before + count


def pair_lines(
    before: Sequence[LineCost], after: Sequence[LineCost]
) -> tuple[tuple[LineCost | None, LineCost | None], ...]:
    """The lines of both, each with its counterpart: the same text in the same order, or the likest between those."""
    keys, keys_after = [_key(cost) for cost in before], [_key(cost) for cost in after]
    matcher = difflib.SequenceMatcher(None, keys, keys_after, autojunk=False)
    pairs: list[tuple[LineCost | None, LineCost | None]] = []
    for kind, first, last, first_after, last_after in matcher.get_opcodes():
        olds, news = before[first:last], after[first_after:last_after]
        pairs += zip(olds, news, strict=True) if kind == "equal" else _pair_changed(olds, news)
    return tuple(pairs)


def _pair_changed(olds: Sequence[LineCost], news: Sequence[LineCost]) -> list[tuple[LineCost | None, LineCost | None]]:
    pairs: list[tuple[LineCost | None, LineCost | None]] = []
    left = list(news)
    for old in olds:
        likest = max(left, key=lambda new: _likeness(old, new), default=None)
        if likest is None or _likeness(old, likest) < _ALIKE:
            pairs.append((old, None))
            continue
        # What stands before the counterpart is new: both lists keep their order.
        at = left.index(likest)
        pairs += [(None, new) for new in left[:at]]
        pairs.append((old, likest))
        left = left[at + 1 :]
    return pairs + [(None, new) for new in left]


def _likeness(old: LineCost, new: LineCost) -> float:
    return difflib.SequenceMatcher(None, _key(old), _key(new), autojunk=False).ratio()


def _key(cost: LineCost) -> str:
    """The text with its spaces made one; of a line without text, its number."""
    return " ".join(cost.text.split()) or f"line {cost.line}"
