"""Turns the launches of an autotuned kernel, one for each configuration, into a table that compares them."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from sectorwise.report.page import Page, clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.analysis.data import KernelAnalysis

_LABEL: Final = re.compile(r"config (?P<number>\d+): (?P<settings>.*)")


def write_configs(kernels: Sequence[KernelAnalysis], page: Page) -> Iterator[str]:
    """Lines for each kernel that was executed in more than one configuration; none where there is no such kernel."""
    for name, group in groupby(kernels, key=lambda kernel: kernel.name):
        found = [(label, kernel) for kernel in group if (label := _LABEL.match(kernel.case or ""))]
        if len(found) < 2:
            continue
        yield from ("", f"  configurations of {name}")
        yield "     registers  occupancy  L2 sectors  shared wavefronts  instructions"
        for label, kernel in found:
            totals = kernel.totals
            counts = (
                f"{label['number']:>3}  {kernel.resources.registers_per_thread:>9}"
                f"  {kernel.occupancy.theoretical_pct:>7.0f} %  {totals.l2_theoretical_sectors:>10,}"
                f"  {totals.shared_wavefronts:>17,}  {totals.instructions:>12,}  {label['settings']}"
            )
            yield clip(page, counts, page.width)
