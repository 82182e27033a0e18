"""Turns a verification into text: predicted beside counted, for every memory instruction and every total."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.verification import Verdict, View
from sectorwise.machine.execution import Certainty
from sectorwise.report.concurrency import write_time
from sectorwise.report.page import Page, Role, clip, fold, paint, tidy
from sectorwise.report.terminal import name_launch, write_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.analysis.verification import (
        BufferComparison,
        KernelComparison,
        Quantity,
        SiteComparison,
        Verification,
    )

_ROLES: Final = {
    Verdict.EQUAL: Role.QUIET,
    Verdict.DIFFERENT: Role.WRONG,
    Verdict.INEXACT: Role.FAIR,
    Verdict.NOISE: Role.QUIET,
    Verdict.NOT_PREDICTED: Role.UNKNOWN,
    Verdict.NOT_COUNTED: Role.UNKNOWN,
}
_LEGEND: Final = (
    ("source", "the profiler's source view: it computes counts from the addresses that were executed"),
    ("pipe", "the counters of the L1 itself"),
    ("=", "equal; ! marks what is exact, and differs"),
    ("noise", "replays and reordering disturb this counter: a difference proves nothing"),
)


def render(verification: Verification, page: Page | None = None) -> str:
    """The verification as text with a final newline; `page` says how wide, and whether colours may be used."""
    page = page or Page()
    title = (
        f"{verification.tool.name} {verification.tool.version} verify · {verification.source} · "
        f"{verification.device.name} ({verification.device.target})"
    )
    lines = [paint(page, Role.QUIET, clip(page, title, page.width))]
    lines += fold(
        page, f"counted on {verification.counted_on or 'a GPU that is not named'} by {verification.counted_by}"
    )
    for note in verification.notes:
        lines += (paint(page, Role.UNKNOWN, line) for line in fold(page, f"note: {note}"))
    for kernel in verification.kernels:
        lines += ["", *_write_kernel(kernel, page)]
    lines += ["", *_write_legend(verification, page), *_write_verdict(verification, page)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _write_kernel(kernel: KernelComparison, page: Page) -> Iterator[str]:
    yield write_rule(name_launch(kernel), page)
    if kernel.sites:
        heads = f"{'line':>5}  {'access':<23}{'source view':<16}{'predicted':>12}{'counted':>12}{'difference':>12}"
        yield paint(page, Role.QUIET, heads)
        for group in _group(kernel.sites):
            yield from _write_site(group[0], len(group), page)
    if kernel.totals:
        yield paint(page, Role.TITLE, f"  {'totals':<29}{'predicted':>15}{'counted':>15}{'difference':>12} view")
        for total in kernel.totals:
            yield from _write_total(total, page)
    variables = [each for each in kernel.outputs or () if each.is_variable and not each.differing]
    for output in kernel.outputs or ():
        if output not in variables:
            yield from _write_output(output, page)
    if variables:
        yield paint(page, Role.QUIET, f"  {_count(len(variables), 'module variable')} equal")
    if kernel.time_ns is not None:
        estimate = "" if kernel.estimate_ns is None else f", {write_time(kernel.estimate_ns)} were estimated"
        least = "" if kernel.least_ns is None else f", at least {write_time(kernel.least_ns)} are needed"
        yield from fold(page, f"  took {write_time(kernel.time_ns)}{estimate}{least}")
    for note in kernel.notes:
        yield from fold(page, f"  note: {note}")


def _group(sites: Sequence[SiteComparison]) -> list[list[SiteComparison]]:
    """Neighbours that are alike in all that is shown, together."""
    groups: list[list[SiteComparison]] = []
    for site in sites:
        if groups and _shown(groups[-1][0]) == _shown(site):
            groups[-1].append(site)
        else:
            groups.append([site])
    return groups


def _shown(site: SiteComparison) -> tuple[object, ...]:
    line = None if site.location is None else (site.location.file, site.location.line)
    return line, site.space, site.operation, site.width_bytes, site.quantities


def _write_site(site: SiteComparison, number: int, page: Page) -> Iterator[str]:
    line = site.offset if site.location is None else str(site.location.line)
    times = tidy(page, f" ×{number}") if number > 1 else ""  # noqa: RUF001 - the sign is meant
    access = f"{site.space} {site.operation}".replace("_", " ") + times
    for one in site.quantities:
        quantity = _multiply(one, number)
        start = f"{line:>5}  {access:<23}{quantity.name:<16}"
        row = f"{_write_count(quantity.predicted):>12}{_write_count(quantity.counted):>12}"
        row += f"{_write_difference(quantity):>12}"
        yield paint(page, _ROLES[quantity.verdict], _mark(quantity, start + row + _write_certainty(quantity)))
        line = access = ""


def _multiply(quantity: Quantity, number: int) -> Quantity:
    """What so many instructions that are alike come to, as `check` shows them."""
    counts = (quantity.predicted, quantity.counted, quantity.difference)
    predicted, counted, difference = (None if count is None else count * number for count in counts)
    return replace(quantity, predicted=predicted, counted=counted, difference=difference)


def _write_total(total: Quantity, page: Page) -> Iterator[str]:
    row = (
        f"    {total.name:<28}{_write_count(total.predicted):>14}{_write_count(total.counted):>15}"
        f"{_write_difference(total):>12} {total.view:<6}{_write_certainty(total)}"
    )
    yield paint(page, _ROLES[total.verdict], _mark(total, row))


def _mark(quantity: Quantity, row: str) -> str:
    return f"!{row[1:]}" if quantity.verdict is Verdict.DIFFERENT and row[:1] == " " else row


def _write_count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def _write_difference(quantity: Quantity) -> str:
    if quantity.difference is None:
        return "unknown" if quantity.predicted is None else "not counted"
    return "=" if quantity.difference == 0 else f"{quantity.difference:+,}"


def _write_certainty(quantity: Quantity) -> str:
    if quantity.verdict is Verdict.NOISE:
        return " noise"
    if quantity.certainty is None:
        return " unknown in part" if quantity.verdict is Verdict.INEXACT else ""
    if quantity.certainty is Certainty.EXACT:
        return ""
    return f" {quantity.certainty}".replace("_", " ")


def _write_output(output: BufferComparison, page: Page) -> Iterator[str]:
    rounded = f", {output.rounded:,} of them within rounding" if output.rounded else ""
    kind = "module variable" if output.is_variable else "buffer"
    text = f"  {kind} {output.argument}: {output.elements:,} {output.dtype}"
    if output.differing:
        text += (
            f", {output.differing:,} differ; first [{output.first}]: {output.executed} executed, "
            f"{output.on_device} on the GPU"
        )
    else:
        text += f" equal{rounded}"
    for line in fold(page, text):
        yield paint(page, Role.WRONG if output.differing else Role.QUIET, line)


def _write_legend(verification: Verification, page: Page) -> Iterator[str]:
    counted = [quantity for kernel in verification.kernels for quantity in kernel.quantities]
    needed = {str(view) for view in View if any(quantity.view is view for quantity in counted)}
    needed |= {"="} if counted else set()
    needed |= {"noise"} if any(quantity.verdict is Verdict.NOISE for quantity in counted) else set()
    for word, meaning in _LEGEND:
        if word in needed:
            yield from (paint(page, Role.QUIET, line) for line in fold(page, f"{word:<8}{meaning}"))


def _write_verdict(verification: Verification, page: Page) -> Iterator[str]:
    """The last lines: what holds, in numbers."""
    for line in summarise(verification):
        role = Role.GOOD if verification.passes else Role.WRONG
        yield from (paint(page, role, part) for part in fold(page, line))


def _count(number: int, noun: str) -> str:
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def summarise(verification: Verification) -> list[str]:
    """What holds and what does not, in one sentence a line."""
    quantities = [quantity for kernel in verification.kernels for quantity in kernel.quantities]
    verdicts = Counter(quantity.verdict for quantity in quantities)
    sites = sum(len(kernel.sites) for kernel in verification.kernels)
    lines = []
    if quantities:
        judged = verdicts[Verdict.EQUAL] + verdicts[Verdict.DIFFERENT]
        what = f"quantities of {_count(sites, 'memory instruction')} in {_count(len(verification.kernels), 'launch')}"
        if verdicts[Verdict.DIFFERENT]:
            lines.append(f"{verdicts[Verdict.DIFFERENT]:,} of {judged:,} {what} differ")
        else:
            lines.append(f"all {judged:,} {what} are equal")
    for verdict, one, several in (
        (Verdict.NOISE, "counter that noise disturbs differs", "counters that noise disturbs differ"),
        (Verdict.INEXACT, "prediction that is not exact differs", "predictions that are not exact differ"),
        (Verdict.NOT_PREDICTED, "quantity that could not be predicted", "quantities that could not be predicted"),
        (Verdict.NOT_COUNTED, "quantity that was not counted", "quantities that were not counted"),
    ):
        if verdicts[verdict]:
            lines.append(f"besides, {verdicts[verdict]:,} {one if verdicts[verdict] == 1 else several}")
    buffers = [output for kernel in verification.kernels for output in kernel.outputs or ()]
    if buffers:
        wrong = sum(output.differing > 0 for output in buffers)
        what = "buffers and module variables" if any(output.is_variable for output in buffers) else "buffers"
        lines.append(f"{wrong} of {len(buffers)} {what} differ" if wrong else f"all {len(buffers)} {what} are equal")
    return lines or ["nothing was compared"]
