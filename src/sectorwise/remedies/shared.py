"""Turns bank conflicts into the best padding and the best swizzle of an array, executed with all its accesses."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import find_shared_arrays
from sectorwise.remedies.layouts import list_paddings, list_swizzles
from sectorwise.remedies.minimal import find_minimal
from sectorwise.remedies.workshop import (
    Gain,
    Refusal,
    find_coded,
    find_helped,
    make_remedy,
    prove,
    shrink,
    waste_wavefronts,
)
from sectorwise.rules.requests import WAVEFRONTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.launch.config import LaunchConfig
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.arrays import SharedArray
    from sectorwise.remedies.workshop import Change, Trial, Workshop

CODES: Final = frozenset({"SW201", "SW202", "SW203", "SW204"})


def find_layouts(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """Remedies for the findings about conflicts that each of them helps; none where no layout is better.

    All accesses to an array count together: what a layout gains for one and loses for another is no remedy. Where no
    array of the source can be rewritten, a small kernel of the same accesses shows what would help.
    """
    conflicts = [finding for finding in findings if finding.code in CODES]
    before = original.totals.shared_wavefronts
    if not conflicts or not before:
        return {}
    helped: dict[int, list[Remedy]] = {}
    for array in _list_used(workshop, original, conflicts):
        for changes in (list_paddings(workshop, array), list_swizzles(workshop, array)):
            chosen = _choose(workshop, original, list(changes))
            if chosen is None:
                continue
            remedy, model = chosen
            for place in find_helped(findings, CODES, original, model, waste_wavefronts):
                helped.setdefault(place, []).append(remedy)
    if helped:
        return {place: tuple(sorted(found, key=lambda remedy: remedy.after)) for place, found in helped.items()}
    shown = find_minimal(workshop, original, conflicts)
    return dict.fromkeys(find_coded(findings, CODES), shown) if shown else {}


def _list_used(workshop: Workshop, original: KernelModel, conflicts: Iterable[Finding]) -> Iterator[SharedArray]:
    """Arrays whose scope contains a line with conflicts."""
    lines = set()
    for finding in conflicts:
        for index in finding.instructions:
            location = original.bound.kernel.instructions[index].location
            if location is not None:
                lines |= {place.line for place in (location, *location.inlined_at)}
    for array in find_shared_arrays(workshop.text):
        first = workshop.text.count("\n", 0, array.start) + 1
        last = workshop.text.count("\n", 0, array.scope_end) + 1
        if any(first <= line <= last for line in lines):
            yield array


def _choose(workshop: Workshop, original: KernelModel, changes: list[Change]) -> tuple[Remedy, KernelModel] | None:
    """The change with the fewest wavefronts, then the fewest bytes; proven on the whole launch, with its model."""
    before = original.totals.shared_wavefronts or 0
    small = shrink(workshop, original)
    base = original if small is None else small.run(small.text, small.launch)
    wanted = base.totals.shared_wavefronts or 0
    trials: list[Trial] = []
    refused: list[str] = []
    for change in changes:
        tried = change if small is None else replace(change, launch=_shrink(change, small))
        outcome = prove(workshop, tried, base)
        if isinstance(outcome, Refusal):
            refused.append(f"{change.title}: {outcome.because}")
        elif (outcome.model.totals.shared_wavefronts or 0) >= wanted:
            refused.append(f"{change.title}: no fewer wavefronts")
        else:
            trials.append(outcome)
    for trial in sorted(trials, key=_weigh):
        change = replace(trial.change, launch=replace(trial.change.launch, grid=workshop.launch.grid))
        whole = trial if small is None else prove(workshop, change, original)
        if isinstance(whole, Refusal):
            refused.append(f"{change.title}: {whole.because}")
            continue
        after = whole.model.totals.shared_wavefronts or 0
        gain = Gain(WAVEFRONTS, before, after)
        return make_remedy(workshop, original, change, gain, refused=tuple(refused)), whole.model
    return None


def _shrink(change: Change, small: Workshop) -> LaunchConfig:
    return replace(change.launch, grid=small.launch.grid)


def _weigh(trial: Trial) -> tuple[int, int, int]:
    needs, totals = trial.model.bound.kernel.resources, trial.model.totals
    size_bytes = needs.static_shared_bytes + trial.change.launch.dynamic_shared_bytes
    return (totals.shared_wavefronts or 0, size_bytes, totals.instructions)
