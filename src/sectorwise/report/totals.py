"""Turns the totals of a launch into lines of the terminal report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.machine.execution import Certainty
from sectorwise.report.figures import write_percent
from sectorwise.report.page import Page, Role, paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.analysis.data import KernelAnalysis


def write_totals(kernel: KernelAnalysis, page: Page) -> Iterator[str]:
    """Requests and sectors by kind of access, then what the profiler's source view sums, against the ideal."""
    totals = kernel.totals
    yield paint(page, Role.TITLE, "  totals")
    counted = (
        ("global loads", totals.global_load_requests, totals.global_load_sectors),
        ("global stores", totals.global_store_requests, totals.global_store_sectors),
        ("local loads", totals.local_load_requests, totals.local_load_sectors),
        ("local stores", totals.local_store_requests, totals.local_store_sectors),
    )
    for name, requests, sectors in counted:
        if requests:
            yield f"    {name:<16}{requests:>15,} {'requests':<11}{_write_count(sectors):>15} sectors"
    for name, requests in (
        ("global atomics", totals.global_atom_requests),
        ("global reds", totals.global_red_requests),
    ):
        if requests:
            yield f"    {name:<16}{requests:>15,} requests"
    ideals = (
        ("L2 theoretical", "sectors", totals.l2_theoretical_sectors, totals.l2_theoretical_sectors_ideal),
        ("shared memory", "wavefronts", totals.shared_wavefronts, totals.shared_wavefronts_ideal),
    )
    for name, unit, real, ideal in ideals:
        if real != 0:
            efficiency = ideal / real if ideal is not None and real else None
            share = write_percent(efficiency, absent="?")
            yield f"    {name:<16}{_write_count(real):>15} {unit:<11}{_write_count(ideal):>15} ideal {share:>7}"
    hardware = [site.wavefronts_hardware for site in kernel.sites]
    passes = sum(count for count in hardware if count is not None)
    if None not in hardware and passes != totals.shared_wavefronts:
        modelled = any(site.certainty_hardware is Certainty.MODELLED for site in kernel.sites)
        unlike = "unlike the source view (modelled)" if modelled else "unlike the source view"
        yield f"    {'  hardware says':<16}{passes:>15,} wavefronts, {unlike}"


def _write_count(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,}"
