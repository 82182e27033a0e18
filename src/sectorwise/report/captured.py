"""Turns what was captured from a script into text: the reports of its launches, and what was replaced meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.report.page import Page, Role, fold, paint
from sectorwise.report.terminal import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.captured import Captured


def render_captured(captured: Captured, page: Page | None = None) -> str:
    """The reports of all launches that were analysed, then what was not, what came again, and what was replaced."""
    page = page or Page()
    analysis = captured.analysis
    lines = [] if analysis is None else [render(analysis, page)]
    return "\n".join([*lines, *_write_summary(captured, page)]) + "\n"


def _write_summary(captured: Captured, page: Page) -> Iterator[str]:
    found = [launch for launch in captured.launches if launch.analysis is not None]
    again = sum(captured.repeats)
    launches = "1 launch" if len(captured.launches) == 1 else f"{len(captured.launches)} launches"
    yield paint(page, Role.TITLE, f"captured: {launches}, {len(found)} analysed, none run")
    if again:
        yield f"  {again} more were as one of them: the same shapes, types and numbers"
    for launch in captured.launches:
        if launch.because is not None:
            yield from fold(page, f"  {launch.kernel} was skipped: {launch.because}")
    if captured.passed_over:
        total = sum(captured.passed_over.values())
        counts = captured.passed_over.most_common()
        names = ", ".join(f"{name.removeprefix('aten::')} {count}" for name, count in counts)
        yield from fold(page, f"  {total:,} operations are PyTorch's own, ran on the CPU and are not analysed: {names}")
    if captured.replaced:
        yield "replaced meanwhile"
    for name in captured.replaced:
        yield from fold(page, f"  {name}")
