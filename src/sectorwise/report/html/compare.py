"""Turns a comparison into one page for browsers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.report.comparison import (
    describe_verdict,
    describe_work,
    gather_causes,
    has_changed,
    is_changed,
    judge,
    list_counts,
    name_cause,
    name_change,
    name_place,
    name_side,
    shows_shares,
    write_change,
    write_ns,
    write_ns_change,
    write_number,
    write_share,
)
from sectorwise.report.html.highlight import highlight
from sectorwise.report.html.page import render_body, wrap
from sectorwise.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.comparison import Comparison, KernelChange, LineChange, NumberChange
    from sectorwise.analysis.lines import LineCost
    from sectorwise.report.page import Role

_CLASSES: Final = {"k": "k", "t": "ty", "c": "c", "p": "p", "s": "s", "n": "num", "f": "fn", "b": "bi", "": ""}
_TONES: Final = {"GOOD": "good", "BAD": "bad", "UNKNOWN": "unknown"}
_LEAST_NS: Final = 0.5
_LEAST_SHARE: Final = 0.005


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a table, as text."""

    name: str
    before: str
    after: str
    change: str


@dataclass(frozen=True, slots=True)
class _Cause:
    """A part of the time, with the length of its bar in percent of the longest; `parts` say what held it up in turn."""

    name: str
    parts: str
    before: str
    after: str
    change: float
    width: float
    text: str
    share: str


@dataclass(frozen=True, slots=True)
class _Code:
    """A line of the source, in pieces `(class, text)`."""

    kind: str
    mark: str
    label: str
    pieces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A changed line: where, which part of the change it is, its code before and after, and its counts."""

    place: str
    share: str
    tone: str
    code: tuple[_Code, ...]
    counts: tuple[_Row, ...]


@dataclass(frozen=True, slots=True)
class _View:
    """What the page shows of a pair of launches."""

    title: str
    verdict: str
    work: str
    is_other_work: bool
    tone: str
    has_shares: bool
    causes: tuple[_Cause, ...]
    rows: tuple[_Row, ...]
    lines: tuple[_Line, ...]
    same: str


def render(comparison: Comparison) -> str:
    """The page as text, with a final newline; it loads nothing."""
    devices = [f"{each.name} ({each.target})" for each in (comparison.device_before, comparison.device_after)]
    only = [
        f"only {where}: {', '.join(name_side(side) for side in sides)}"
        for where, sides in (("before", comparison.only_before), ("after", comparison.only_after))
        if sides
    ]
    sources = name_change(comparison.source_before, comparison.source_after)
    body = render_body(
        "compare.html",
        ("dom.js", "theme.js", "compare.js"),
        sources=sources,
        devices=name_change(*devices),
        views=[_view(change) for change in comparison.kernels],
        only="; ".join(only),
        version=__version__,
    )
    return wrap(f"{sources} · sectorwise", body)


def _view(change: KernelChange) -> _View:
    changed = [line for line in change.lines if has_changed(line)]
    same = len(change.lines) - len(changed)
    return _View(
        title=name_change(name_side(change.before), name_side(change.after)).replace("->", "→"),
        verdict=describe_verdict(change),
        work=describe_work(change.work),
        is_other_work=change.work.agrees is False,
        tone=_name_tone(judge(change)),
        has_shares=shows_shares(change),
        causes=tuple(_list_causes(change)),
        rows=tuple(_list_rows(change)),
        lines=tuple(_show_line(line) for line in changed),
        same=f"{same} line{'s' if same != 1 else ''} as before",
    )


def _name_tone(role: Role) -> str:
    return _TONES.get(role.name, "")


def _list_causes(change: KernelChange) -> Iterator[_Cause]:
    shares, gathered = shows_shares(change), tuple(gather_causes(change.causes))
    sizes = {id(each): (each.ns_after or 0.0) - (each.ns_before or 0.0) for each, _ in gathered}
    longest = max((abs(size) for size in sizes.values()), default=0.0) or 1.0
    for each, parts in gathered:
        known = each.ns_before is not None and each.ns_after is not None
        if known and max(each.ns_before or 0.0, each.ns_after or 0.0) < _LEAST_NS:
            continue
        yield _Cause(
            name=name_cause(each),
            parts=", then ".join(name_cause(part) for part in parts),
            before=write_ns(each.ns_before),
            after=write_ns(each.ns_after),
            change=sizes[id(each)] if known and abs(sizes[id(each)]) >= _LEAST_NS else 0.0,
            width=round(100 * abs(sizes[id(each)]) / longest, 2),
            text=write_ns_change(each.ns_before, each.ns_after),
            share=f"{100 * each.share:.0f} %" if shares and each.share and abs(each.share) >= _LEAST_SHARE else "",
        )


def _list_rows(change: KernelChange) -> Iterator[_Row]:
    for word in change.words:
        if word.before != word.after:
            yield _Row(word.name, word.before or "-", word.after or "-", "")
    for number in change.numbers:
        if is_changed(number):
            shown = [write_number(value, number.unit) for value in (number.before, number.after)]
            yield _Row(number.name, shown[0], shown[1], write_change(number.before, number.after))


def _show_line(change: LineChange) -> _Line:
    old, new = change.before, change.after
    slower = (0.0 if new is None else new.ns or 0.0) >= (0.0 if old is None else old.ns or 0.0)
    return _Line(
        place=name_place(change).replace("->", "→"),
        share=write_share(change),
        tone="bad" if slower else "good",
        code=tuple(_show_code(old, new)),
        counts=tuple(_show_count(each) for each in list_counts(old, new)),
    )


def _show_count(count: NumberChange) -> _Row:
    shown = [write_number(value, count.unit) for value in (count.before, count.after)]
    return _Row(count.name, shown[0], shown[1], write_change(count.before, count.after))


def _show_code(old: LineCost | None, new: LineCost | None) -> Iterator[_Code]:
    if old is not None and new is not None and old.text == new.text:
        yield _Code("", " ", "unchanged", _color(new.text))
        return
    if old is not None:
        yield _Code("gone", "−", "before", _color(old.text))  # noqa: RUF001 - a minus sign
    if new is not None:
        yield _Code("new", "+", "after", _color(new.text))


def _color(text: str) -> tuple[tuple[str, str], ...]:
    (line,) = highlight(text)
    return tuple((_CLASSES[kind], piece) for kind, piece in zip(line[::2], line[1::2], strict=True))
