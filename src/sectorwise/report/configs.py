"""Turns the launches of an autotuned kernel, one for each configuration, into a table that compares them."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Final

from sectorwise.report.page import Page, measure, tidy, wrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.analysis.data import KernelAnalysis

_LABEL: Final = re.compile(r"config (?P<number>\d+): (?P<settings>.*)")


_SAME_GRID: Final = (
    "All have the grid of the launch, so that they may do different amounts of work; in Python, "
    "`grid=lambda meta: ...` gives each its own."
)
# What a configuration may change without another amount of work for a block.
_COMPILER_OPTIONS: Final = frozenset({"num_warps", "num_ctas", "num_stages", "maxnreg"})


def write_configs(kernels: Sequence[KernelAnalysis], page: Page) -> Iterator[str]:
    """Lines for each kernel that was executed in more than one configuration; none where there is no such kernel."""
    for name, group in groupby(kernels, key=lambda kernel: kernel.name):
        found = [(label, kernel) for kernel in group if (label := _LABEL.match(kernel.case or ""))]
        if len(found) < 2:
            continue
        told = _tell_apart([label["settings"] for label, _ in found])
        yield from ("", f"  configurations of {name}")
        yield "     registers  occupancy  L2 sectors  shared wavefronts  instructions"
        for (label, kernel), settings in zip(found, told, strict=True):
            totals = kernel.totals
            counts = (
                f"{label['number']:>3}  {kernel.resources.registers_per_thread:>9}"
                f"  {kernel.occupancy.theoretical_pct:>7.0f} %  {totals.l2_theoretical_sectors:>10,}"
                f"  {totals.shared_wavefronts:>17,}  {totals.instructions:>12,}"
            )
            line = tidy(page, f"{counts}  {settings}")
            yield from [line] if measure(line) <= page.width else [counts, *wrap(page, settings, 5)]
        if len({kernel.launch.grid for _, kernel in found}) == 1 and _change_work(told):
            yield from wrap(page, _SAME_GRID, 2)


def _tell_apart(settings: Sequence[str]) -> list[str]:
    """Of each configuration what not all of them have; all of it where they are alike."""
    split = [each.split(", ") for each in settings]
    common = set(split[0]).intersection(*split[1:])
    return [", ".join(part for part in parts if part not in common) or ", ".join(parts) for parts in split]


def _change_work(told: Sequence[str]) -> bool:
    return any(part.partition("=")[0] not in _COMPILER_OPTIONS for each in told for part in each.split(", "))
