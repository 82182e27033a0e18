"""Turns a comparison into text for a terminal, or into a JSON document."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.causes import Cause
from sectorwise.analysis.comparison import HANGS, WRONG_ACCESSES, NumberChange
from sectorwise.report.concurrency import HELD_UP, write_amount, write_time
from sectorwise.report.json import to_plain, write_document
from sectorwise.report.page import Page, Role, clip, fold, paint, tidy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.analysis.comparison import (
        CauseChange,
        Comparison,
        KernelChange,
        LineChange,
        Side,
        WordChange,
    )
    from sectorwise.analysis.data import Device
    from sectorwise.analysis.lines import LineCost
    from sectorwise.analysis.work import Work

CAUSE_WORDS: Final = {
    Cause.LAUNCH: "starting the launch",
    Cause.WORK: "bytes and instructions needed",
    Cause.SECTORS: "sectors beyond the ideal",
    Cause.CONFLICTS: "bank conflicts",
    Cause.SPILLS: "spills and stack",
    Cause.TAIL: "unevenly filled waves",
    Cause.PACE: "waiting or busy, beyond the least",
}
_FASTER: Final = 0.995
_LINES_SHOWN: Final = 12
_WHOLE: Final = 0.5
"""Nanoseconds below which a time, or a change of one, is none."""

_SMALL: Final = 0.005

_OPPOSED: Final = 1.5
"""A share of the change from which on causes work against each other so much that shares say nothing."""

_NEGLIGIBLE: Final = 0.0005
"""A change of an amount that is within the rounding of the models."""


def render(comparison: Comparison, page: Page | None = None) -> str:
    """The comparison as text with a final newline."""
    page = page or Page()
    lines = list(_write_head(comparison, page))
    for kernel in comparison.kernels:
        lines += ["", *_write_kernel(kernel, page)]
    for where, sides in (("before", comparison.only_before), ("after", comparison.only_after)):
        if sides:
            lines += ["", *fold(page, f"only {where}: {', '.join(name_side(side) for side in sides)}")]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def render_json(comparison: Comparison) -> str:
    """The document as text, with a final newline; `docs/json.md` says what it holds."""
    return write_document(to_plain(comparison))


def name_side(side: Side) -> str:
    """The kernel with its case, where that says more."""
    return side.name if side.case in {None, side.name} else f"{side.name} ({side.case})"


def name_change(before: str, after: str) -> str:
    """`a -> b`, or one of them where they are equal."""
    return before if before == after else f"{before} -> {after}"


def _write_head(comparison: Comparison, page: Page) -> Iterator[str]:
    devices = name_change(_name_device(comparison.device_before), _name_device(comparison.device_after))
    sources = name_change(comparison.source_before, comparison.source_after)
    for line in fold(page, f"before and after: {sources}, on {devices}"):
        yield paint(page, Role.QUIET, line)


def _name_device(device: Device) -> str:
    return f"{device.name} ({device.target})"


def _write_kernel(change: KernelChange, page: Page) -> Iterator[str]:
    title = name_change(name_side(change.before), name_side(change.after))
    yield paint(page, Role.TITLE, clip(page, title, page.width))
    for line in fold(page, f"  {describe_verdict(change)}"):
        yield paint(page, judge(change), line)
    if wrong := count_wrong(change):
        for line in fold(page, f"  {wrong:,} lanes more have a wrong access: `check` says where; mend them first"):
            yield paint(page, Role.BAD, line)
    for line in fold(page, f"  {describe_work(change.work)}".rstrip()):
        yield paint(page, Role.BAD if change.work.agrees is False else Role.QUIET, line)
    yield ""
    yield from _write_causes(change, page)
    yield ""
    yield from _write_facts(change, page)
    yield ""
    yield from _write_lines(change, page)


def describe_verdict(change: KernelChange) -> str:
    """In a sentence: how much faster or slower, and what held it up and does now."""
    before, after = change.estimate_ns_before, change.estimate_ns_after
    hung, hangs = find_hangs(change)
    if hangs != "no":
        also = ", as it did before" if hung == hangs else ""
        return f"{'hangs' if hangs == 'yes' else 'may hang'} after{also}: it has no time, and `check` says where"
    if hung != "no":
        return (
            f"ends after, and {'hung' if hung == 'yes' else 'may have hung'} before: there is no time to compare with"
        )
    if before is None or after is None:
        return "the time of one of them is not known: no shares"
    error = "" if change.error is None else f"; such estimates have a median error of {100 * change.error:.0f} %"
    times = f"about {write_time(before)} before, {write_time(after)} after"
    if after < _FASTER * before:
        return f"{before / after:.2f} times as fast: {times}{error}"
    if before < _FASTER * after:
        return f"{after / before:.2f} times slower: {times}{error}"
    return f"as fast as before: {times}{error}"


def describe_work(work: Work) -> str:
    """Whether both launches do the same work, in a sentence; empty where there is nothing to say of it."""
    stored = work.stored_bytes_before, work.stored_bytes_after
    said = ""
    if work.agrees is not True and None not in stored and stored[0] != stored[1]:
        before, after = (write_amount(each) for each in stored if each is not None)
        said = f"lanes store {before} before and {after} after"
        said += ": the same work only if a place is stored to more often" if work.agrees is None else ""
    if work.outputs is None:
        return "; ".join(part for part in (said, work.because) if part)
    different = [each for each in work.outputs if each.differing]
    if different:
        first = different[0]
        what = "bytes" if first.dtype == "u8" else "elements"
        more = f" (and of {len(different) - 1} buffers more)" if len(different) > 1 else ""
        return (
            f"not the same work: {first.differing:,} of {first.elements:,} {what} of {first.argument} differ{more}, "
            f"the first at {first.first}: {first.before} before, {first.after} after{said and f'; {said}'}"
        )
    rounded = sum(each.rounded for each in work.outputs)
    how = f"but for rounding in {rounded:,} elements" if rounded else "bit for bit"
    return f"both leave the same in all buffers, {how}"


def count_wrong(change: KernelChange) -> int:
    """Lanes that access what they must not, after and not before: no such launch is an improvement."""
    found = (each for each in change.numbers if each.name == WRONG_ACCESSES)
    return max(0, sum(int((each.after or 0) - (each.before or 0)) for each in found))


def find_hangs(change: KernelChange) -> tuple[str, str]:
    """Whether the launch hangs, before and after: `no`, `may` or `yes`."""
    for word in change.words:
        if word.name == HANGS:
            return word.before or "no", word.after or "no"
    return "no", "no"


def judge(change: KernelChange) -> Role:
    """How the change of time is meant."""
    before, after = change.estimate_ns_before, change.estimate_ns_after
    if find_hangs(change)[1] != "no":
        return Role.BAD
    if count_wrong(change) or change.work.agrees is False:
        return Role.QUIET
    if before is None or after is None:
        return Role.UNKNOWN
    return Role.GOOD if after < _FASTER * before else Role.BAD if before < _FASTER * after else Role.QUIET


def _write_causes(change: KernelChange, page: Page) -> Iterator[str]:
    """A row for each part of the time; what neither side spends any time on is left out."""
    yield paint(page, Role.TITLE, "  why, the largest change first")
    shares = shows_shares(change)
    heading = f"    {'':<34}{'before':>10}{'after':>10}{'change':>11}{'share':>8}"
    yield paint(page, Role.QUIET, heading if shares else heading.removesuffix("share").rstrip())
    for cause, parts in gather_causes(change.causes):
        if cause.ns_before is None or cause.ns_after is None or max(cause.ns_before, cause.ns_after) >= _WHOLE:
            yield _write_cause(cause, page, shares=shares)
            for part in parts:
                yield paint(page, Role.QUIET, _list_times(f"  {name_cause(part)}", part))
    if not shares and any(cause.share is not None for cause in change.causes):
        yield "    they work against each other: shares of so small a change would say nothing"


def gather_causes(causes: Iterable[CauseChange]) -> Iterator[tuple[CauseChange, tuple[CauseChange, ...]]]:
    """Each cause once, in their order, with its parts where other things hold it up before and after."""
    for _, group in groupby(causes, key=lambda each: each.cause):
        parts = tuple(group)
        if len(parts) == 1:
            yield parts[0], ()
            continue
        shares = [part.share for part in parts if part.share is not None]
        whole = replace(
            parts[0],
            held_up_by=None,
            ns_before=sum(part.ns_before or 0.0 for part in parts),
            ns_after=sum(part.ns_after or 0.0 for part in parts),
            share=sum(shares) if shares else None,
        )
        yield whole, parts


def shows_shares(change: KernelChange) -> bool:
    """Whether shares of the change say something: not where causes all but cancel each other."""
    shares = [cause.share for cause, _ in gather_causes(change.causes) if cause.share is not None]
    return bool(shares) and max(abs(share) for share in shares) <= _OPPOSED


def name_cause(cause: CauseChange) -> str:
    """In words; the pace by what holds it up."""
    if cause.held_up_by is None:
        return CAUSE_WORDS[cause.cause]
    return HELD_UP.get(cause.held_up_by, cause.held_up_by)


def _write_cause(cause: CauseChange, page: Page, *, shares: bool) -> str:
    share = f"{100 * cause.share:.0f} %" if shares and cause.share and abs(cause.share) >= _SMALL else ""
    line = f"{_list_times(name_cause(cause), cause)}{write_ns_change(cause.ns_before, cause.ns_after):>11}{share:>8}"
    return paint(page, _color(cause.ns_before, cause.ns_after), line.rstrip())


def _list_times(name: str, cause: CauseChange) -> str:
    return f"    {name:<34}{write_ns(cause.ns_before):>10}{write_ns(cause.ns_after):>10}"


def _color(before: float | None, after: float | None) -> Role:
    if before is None or after is None:
        return Role.UNKNOWN
    return Role.GOOD if after < _FASTER * before else Role.BAD if before < _FASTER * after else Role.QUIET


def write_ns(value: float | None) -> str:
    """A time, `unknown`, or 0 where it is less than what counts."""
    return "unknown" if value is None else write_time(value) if value >= _WHOLE else "0"


def write_ns_change(before: float | None, after: float | None) -> str:
    """`+250 ns`, `-1.2 us`, `-` where nothing changed; empty where one is not known."""
    if before is None or after is None:
        return ""
    change = after - before
    if abs(change) < _WHOLE:
        return "-"
    return f"{'+' if change > 0 else '-'}{write_time(abs(change))}"


def _write_facts(change: KernelChange, page: Page) -> Iterator[str]:
    yield paint(page, Role.TITLE, "  numbers that changed")
    words = [word for word in change.words if word.before != word.after and word.name != "time bound by"]
    for word in words:
        yield from fold(page, _write_word(word))
    numbers = [number for number in change.numbers if is_changed(number)]
    for number in numbers:
        yield _write_number(number)
    if not words and not numbers:
        yield "    none"


def is_changed(number: NumberChange) -> bool:
    """Whether a number changed, an amount that is modelled by more than its rounding."""
    before, after = number.before, number.after
    if not before or after is None or not number.unit:
        return before != after
    return abs(after / before - 1) >= _NEGLIGIBLE


def _write_word(word: WordChange) -> str:
    return f"    {word.name:<30}{word.before or '-':>16}{word.after or '-':>16}"


def _write_number(number: NumberChange) -> str:
    shown = [write_number(value, number.unit) for value in (number.before, number.after)]
    return f"    {number.name:<30}{shown[0]:>16}{shown[1]:>16}{write_change(number.before, number.after):>10}"


def write_number(value: float | None, unit: str) -> str:
    """With its unit, in as many digits as people read; `-` where it is not known."""
    if value is None:
        return "-"
    match unit:
        case "B":
            return write_amount(value)
        case "ns":
            return write_time(value)
        case "%":
            return f"{value:.4g} %"
        case _:
            return f"{value:,.4g}" if value != int(value) else f"{int(value):,}"


def write_change(before: float | None, after: float | None) -> str:
    """`+12 %`, `x 4.0`, empty where there is no ratio."""
    if not before or after is None:
        return ""
    ratio = after / before
    return f"x {ratio:.3g}" if ratio >= 2 else f"{100 * (ratio - 1):+.3g} %"


def _write_lines(change: KernelChange, page: Page) -> Iterator[str]:
    changed = [line for line in change.lines if has_changed(line)]
    yield paint(page, Role.TITLE, "  lines that changed, the largest change first")
    for line in changed[:_LINES_SHOWN]:
        yield from _write_line(line, page)
    rest, same = len(changed) - _LINES_SHOWN, len(change.lines) - len(changed)
    if rest > 0:
        yield f"    and {rest} more; --format json has all"
    if same:
        yield "    1 line costs what it did" if same == 1 else f"    {same} lines cost what they did"


def has_changed(line: LineChange) -> bool:
    """Whether anything but the place, the text and the rounding of its time changed."""
    old, new = line.before, line.after
    if old is None or new is None:
        return True
    counts = [
        (each.executed, each.sectors, each.sectors_ideal, each.sectors_local, each.wavefronts, each.wavefronts_ideal)
        for each in (old, new)
    ]
    return counts[0] != counts[1] or abs((old.ns or 0.0) - (new.ns or 0.0)) >= _WHOLE


def _write_line(change: LineChange, page: Page) -> Iterator[str]:
    old, new = change.before, change.after
    share = write_share(change)
    yield from fold(page, f"    {name_place(change)}{share and f'  {share}'}")
    for mark, each in (("-", old), ("+", new)):
        if each is not None and each.text and (old is None or new is None or old.text != new.text):
            yield paint(page, Role.QUIET, clip(page, f"      {mark} {each.text}", page.width))
    if old is not None and new is not None and old.text == new.text and old.text:
        yield paint(page, Role.QUIET, clip(page, f"        {old.text}", page.width))
    for count in list_counts(old, new):
        shown = [write_number(value, count.unit) for value in (count.before, count.after)]
        line = f"        {count.name:<16}{shown[0]:>14}{shown[1]:>14}{write_change(count.before, count.after):>10}"
        yield tidy(page, line)


def write_share(change: LineChange) -> str:
    """`12 % of the change`, empty where that is not known, rounds to nothing, or lines work against each other."""
    whole = round(100 * (change.share or 0.0))
    if abs(whole) > 100 * _OPPOSED:
        return ""
    return f"{whole} % of the change" if whole else ""


def name_place(change: LineChange) -> str:
    """`a.cu:3`, `a.cu:3 -> 5`, and whether the line is new or gone."""
    old, new = change.before, change.after
    places = [_place(each) for each in (old, new) if each is not None]
    if old is not None and new is not None and old.file == new.file and old.line != new.line:
        places[-1] = f"{new.line}"
    what = "" if old is not None and new is not None else " (new)" if old is None else " (gone)"
    return f"{name_change(places[0], places[-1])}{what}"


def _place(cost: LineCost) -> str:
    return "(no line)" if cost.line is None else f"{cost.file}:{cost.line}"


def list_counts(old: LineCost | None, new: LineCost | None) -> Iterator[NumberChange]:
    """Each count of a line that differs; a line that is not there costs nothing."""
    for name, unit, attribute in (
        ("time", "ns", "ns"),
        ("requests", "", "executed"),
        ("sectors", "", "sectors"),
        ("local sectors", "", "sectors_local"),
        ("wavefronts", "", "wavefronts"),
    ):
        before, after = (0 if side is None else getattr(side, attribute) for side in (old, new))
        if before != after:
            yield NumberChange(name, unit, before, after)
