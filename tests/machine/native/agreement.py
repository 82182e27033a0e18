"""Turns a bound launch into what both engines make of it, and how they differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.machine import numpy_engine
from sectorwise.machine.execution import Certainty, ExecutionOptions
from sectorwise.machine.native_engine import execute_native

if TYPE_CHECKING:
    from sectorwise.binding import BoundLaunch
    from sectorwise.machine.execution import Execution, Site


def list_differences(
    bound: BoundLaunch, options: ExecutionOptions | None = None, *, races: bool = False, assumes: bool = False
) -> list[str]:
    """Everything in which the engines' executions of a launch differ; what is left in buffers unless threads race.

    With `assumes` machine code may be less sure than the reference engine, but not surer.
    """
    options = options or ExecutionOptions()
    expected, got = numpy_engine.execute(bound, options), execute_native(bound, options, assumes=assumes)
    if assumes:
        pairs = zip(expected.sites, got.sites, strict=False)
        sites = [replace(have, certainty=want.certainty) if _is_warier(want, have) else have for want, have in pairs]
        got = replace(got, sites=(*sites, *got.sites[len(sites) :]))
    return [*_compare_counts(bound, expected, got), *([] if races else _compare_buffers(bound, expected, got))]


def _is_warier(want: Site, have: Site) -> bool:
    return want.certainty is Certainty.EXACT or have.certainty in (want.certainty, Certainty.SCHEDULE_DEPENDENT)


def _compare_counts(bound: BoundLaunch, expected: Execution, got: Execution) -> list[str]:
    found = [
        f"site {want.instruction}: {have} instead of {want}"
        for want, have in zip(expected.sites, got.sites, strict=False)
        if want != have
    ]
    if len(expected.sites) != len(got.sites):
        found.append(f"{len(got.sites)} sites instead of {len(expected.sites)}")
    for name in ("issued", "lanes"):
        wrong = np.flatnonzero(getattr(expected, name) != getattr(got, name))
        found += [f"{name} of {bound.kernel.instructions[index].text}" for index in wrong[:3]]
    for execution in (expected, got):
        if execution.lengths is None or execution.lengths.sum() != execution.issued.sum():
            found.append("blocks are not as long as the instructions that were issued")
    if not np.array_equal(np.asarray(expected.lengths), np.asarray(got.lengths)):
        found.append("blocks are of other lengths")
    for name in ("faults", "limitations", "hangs", "blocks_executed", "bulk"):
        if getattr(expected, name) != getattr(got, name):
            found.append(f"{name}: {getattr(got, name)} instead of {getattr(expected, name)}")
    return found


def _compare_buffers(bound: BoundLaunch, expected: Execution, got: Execution) -> list[str]:
    return [
        f"{allocation.argument} holds other bytes"
        for number, allocation in enumerate(bound.allocations)
        if not np.array_equal(expected.read_buffer(number), got.read_buffer(number))
    ]
