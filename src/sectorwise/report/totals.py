"""Turns the totals of a launch into lines of the terminal report."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sectorwise.machine.execution import Certainty
from sectorwise.report.copies import sum_copies
from sectorwise.report.figures import write_percent
from sectorwise.report.page import Page, Role, paint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sectorwise.analysis.data import KernelAnalysis


def write_totals(kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    """Requests and sectors by kind of access, then what the profiler's source view sums, against the ideal."""
    totals = kernel.totals
    yield paint(page, Role.TITLE, "  totals")
    yield from write_counts(partial(getattr, totals), absent="unknown")
    hardware = [site.wavefronts_hardware for site in kernel.sites]
    passes = sum(count for count in hardware if count is not None)
    if None not in hardware and passes != totals.shared_wavefronts:
        modelled = any(site.certainty_hardware is Certainty.MODELLED for site in kernel.sites)
        unlike = "unlike the source view (modelled)" if modelled else "unlike the source view"
        yield f"    {'  hardware says':<16}{passes:>15,} wavefronts, {unlike}"
    yield from sum_copies(kernel.copies)


def write_counts(find: Callable[[str], int | None], absent: str | None = None) -> Iterator[str]:
    """A line for each kind of access, by the names of `model.totals.Totals`.

    What is None is written as `absent`, or, without that, is left out: a profiler did not collect it.
    """

    def write(name: str) -> str:
        count = find(name)
        return f"{absent or '?':>15}" if count is None else f"{count:>15,}"

    for title, kind in (
        ("global loads", "global_load"),
        ("global stores", "global_store"),
        ("local loads", "local_load"),
        ("local stores", "local_store"),
    ):
        if find(f"{kind}_requests"):
            yield f"    {title:<16}{write(f'{kind}_requests')} {'requests':<11}{write(f'{kind}_sectors')} sectors"
    for title, kind in (("global atomics", "global_atom"), ("global reds", "global_red")):
        if find(f"{kind}_requests"):
            yield f"    {title:<16}{write(f'{kind}_requests')} requests"
    for title, unit, name in (
        ("L2 theoretical", "sectors", "l2_theoretical_sectors"),
        ("shared memory", "wavefronts", "shared_wavefronts"),
    ):
        real, ideal = find(name), find(f"{name}_ideal")
        if real or (real is None and absent is not None):
            share = write_percent(ideal / real if ideal is not None and real else None, absent="?")
            yield f"    {title:<16}{write(name)} {unit:<11}{write(f'{name}_ideal')} ideal {share:>7}"
