"""Turns a launch as it was predicted and as it was counted into a comparison, number by number."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.verification import KernelComparison, Quantity, SiteComparison, Verdict, View
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.divisions import names_rounding
from sectorwise.machine.execution import Certainty
from sectorwise.verify.codes import find_opcode
from sectorwise.verify.counters import SITE_COUNTERS, TOTAL_COUNTERS, Noise, Reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.analysis.profile import ProfiledLaunch, ProfiledSite
    from sectorwise.analysis.verification import BufferComparison
    from sectorwise.verify.counters import Counter

_ORDER: Final = tuple(Certainty)
_MOST_REASONS: Final = 3
_RULED_BY_PREDICATE_0: Final = re.compile(r"LDGSTS\S*\.BYPASS\b.*, !?P0\b")
_LOST: Final = frozenset(("sectors", "sectors_ideal", "l2_theoretical_sectors", "l2_theoretical_sectors_ideal"))
"""Seen on an H200 with Nsight Compute 2025.3.1: four runs of one kernel lost 80, 208, 144 and 128 of 6,272 sectors."""
_SPACES: Final = {
    Reach.GLOBAL: {Space.GLOBAL, Space.GENERIC},
    Reach.SHARED: {Space.SHARED, Space.GENERIC},
    Reach.LOCAL: {Space.LOCAL, Space.GENERIC},
    Reach.BULK: set(),
    Reach.ALL: set(Space),
}


def compare_launch(
    predicted: KernelAnalysis, counted: ProfiledLaunch | None, outputs: tuple[BufferComparison, ...] | None = None
) -> KernelComparison:
    """The comparison of one launch; without `counted`, where nothing could be counted, it has the buffers alone."""
    sites: tuple[SiteComparison, ...] = ()
    totals: tuple[Quantity, ...] = ()
    if counted is not None:
        if counted.has_source_view:
            pairs = pair_sites(predicted.sites, counted.sites)
            sites = tuple(_compare_site(predicted, mine, theirs) for mine, theirs in pairs)
        totals = tuple(_compare_total(predicted, counted, counter) for counter in TOTAL_COUNTERS)
    return KernelComparison(
        name=predicted.name,
        case=predicted.case,
        launch=predicted.launch,
        sites=sites,
        totals=tuple(total for total in totals if total.predicted or total.counted),
        outputs=outputs,
        time_ns=None if counted is None else counted.time_ns,
        estimate_ns=None if predicted.time is None else predicted.time.estimate_ns,
        least_ns=predicted.roofline.least_ns,
        notes=_note_limitations(predicted),
    )


def _note_limitations(predicted: KernelAnalysis) -> tuple[str, ...]:
    """What is not known of the launch, each reason once: totals that it may change are not predicted exactly."""
    said = [*(hang.message for hang in predicted.hangs), *(each.because for each in predicted.limitations)]
    reasons = list(dict.fromkeys(said))
    more = (f"and {len(reasons) - _MOST_REASONS} reasons more",) if len(reasons) > _MOST_REASONS else ()
    return (*reasons[:_MOST_REASONS], *more)


def pair_sites(
    predicted: Sequence[MemorySite], counted: Sequence[ProfiledSite]
) -> list[tuple[MemorySite | None, ProfiledSite | None]]:
    """Pairs of the same instruction, in program order; None where one side does not list it.

    Instructions are the same that stand at the same place in the code. Where the report does not tell places, or the
    code of called functions lies elsewhere on the GPU, those in the same order with the same opcode are.
    """
    mine = [find_opcode(site.sass) for site in predicted]
    theirs = [find_opcode(site.sass) for site in counted]
    if mine == theirs:
        return list(zip(predicted, counted, strict=True))
    places = {site.offset_bytes: site for site in counted if site.offset_bytes is not None}
    pairs: list[tuple[MemorySite | None, ProfiledSite | None]] = []
    for site in predicted:
        found = places.get(int(site.offset, 16))
        same = found is not None and find_opcode(found.sass) == find_opcode(site.sass)
        pairs.append((site, found if same else None))
    taken = {id(found) for _, found in pairs if found is not None}
    return pairs + [(None, site) for site in counted if id(site) not in taken]


def _compare_site(kernel: KernelAnalysis, mine: MemorySite | None, theirs: ProfiledSite | None) -> SiteComparison:
    shown = mine or theirs
    if shown is None:
        message = "a pair of nothing"
        raise ValueError(message)
    offset = mine.offset if mine is not None else _write_offset(theirs)
    quantities = []
    for counter in SITE_COUNTERS:
        # What only one side lists never accessed anything for the other: its counts there are zero.
        predicted = 0 if mine is None else _read(mine, counter.name)
        counted = 0 if theirs is None and counter.name != "executed" else _read(theirs, counter.name)
        certainty = _cap(kernel, Certainty.EXACT if mine is None else _certainty_of(mine, counter))
        noise = Noise.EITHER if _loses_sectors(shown) and counter.name in _LOST else counter.noise
        quantities.append(_lay_side_by_side(counter, predicted, counted, certainty, noise))
    return SiteComparison(
        offset=offset,
        sass=shown.sass,
        location=shown.location,
        space=shown.space,
        operation=shown.operation,
        width_bytes=shown.width_bytes,
        quantities=tuple(quantity for quantity in quantities if _is_worth_a_line(quantity)),
    )


def _loses_sectors(site: MemorySite | ProfiledSite) -> bool:
    """Whether predicate 0 makes this copy around L1 read or fill: the profiler loses some, others in each run."""
    return bool(_RULED_BY_PREDICATE_0.search(site.sass))


def _read(site: MemorySite | ProfiledSite | None, name: str) -> int | None:
    value: int | None = None if site is None else getattr(site, name)
    return value


def _is_worth_a_line(quantity: Quantity) -> bool:
    """Not what is zero on both sides: a shared load has no sectors."""
    return quantity.name == "executed" or bool(quantity.predicted or quantity.counted or quantity.predicted is None)


def _write_offset(site: ProfiledSite | None) -> str:
    return "?" if site is None or site.offset_bytes is None else f"0x{site.offset_bytes:04x}"


def _compare_total(kernel: KernelAnalysis, counted: ProfiledLaunch, counter: Counter) -> Quantity:
    predicted: int | None = getattr(kernel.totals, counter.name)
    is_lossy = counter.name in _LOST and any(_loses_sectors(site) for site in kernel.sites)
    noise = Noise.EITHER if is_lossy else counter.noise
    certainty = _certainty_of_total(kernel, counter)
    return _lay_side_by_side(counter, predicted, counted.totals.get(counter.name), certainty, noise)


def _certainty_of_total(kernel: KernelAnalysis, counter: Counter) -> Certainty | None:
    """The certainty of the least certain instruction that the total depends on; None where something is unknown."""
    spaces = _SPACES[counter.reach]
    relevant = [site for site in kernel.sites if site.space in spaces or _reaches(site, counter.reach)]
    certainties = [_certainty_of(site, counter) for site in relevant]
    if counter.reach is Reach.BULK:
        certainties += [copies.certainty for copies in kernel.copies]
    if kernel.hangs or any(not limitation.of_values for limitation in kernel.limitations):
        return None
    if counter.name == "instructions" and _waits_for_barriers(kernel):
        certainties.append(Certainty.SCHEDULE_DEPENDENT)
    if counter.name == "instructions" and _has_slow_paths(kernel):
        certainties.append(Certainty.ASSUMED)
    # How often a warp issues hangs on every instruction before, whatever memory it accesses.
    certainties += [site.certainty for site in kernel.sites if site.certainty in _ORDER[3:]]
    certainties += [copies.certainty for copies in kernel.copies if copies.certainty in _ORDER[3:]]
    known = [certainty for certainty in certainties if certainty is not None]
    if len(known) < len(certainties):
        return None
    return _cap(kernel, max(known, key=_ORDER.index, default=Certainty.EXACT))


def _waits_for_barriers(kernel: KernelAnalysis) -> bool:
    """Whether warps ask mbarriers again and again: how often, before a phase ends, is a matter of time."""
    return any("SYNCS.PHASECHK" in each.sass and each.issued for each in kernel.instructions)


_EACH_BY_ITSELF = 15
"""So few blocks stand for none but themselves (`machine/native_engine.py`)."""


def _has_slow_paths(kernel: KernelAnalysis) -> bool:
    """Whether warps may call the compiler's functions for quotients: how many do is taken from a part of the blocks."""
    return kernel.coverage.blocks_total > _EACH_BY_ITSELF and any(
        "CALL" in each.sass and names_rounding(each.sass) for each in kernel.instructions
    )


def _reaches(site: MemorySite, reach: Reach) -> bool:
    return reach is Reach.SHARED and site.operation is Operation.ASYNC_COPY


def _certainty_of(site: MemorySite, counter: Counter) -> Certainty | None:
    """Modelled rules are about the layout of lanes: how often an instruction issues stays exact."""
    if counter.view is View.PIPE:
        return _certainty_of_pipe(site, counter)
    if site.certainty is Certainty.MODELLED and not counter.follows_layout:
        return Certainty.EXACT
    return site.certainty


def _certainty_of_pipe(site: MemorySite, counter: Counter) -> Certainty | None:
    """As the site says; but what is modelled of copies are passes and sectors, of generic requests all but passes."""
    if site.certainty_hardware is not Certainty.MODELLED:
        return site.certainty_hardware
    is_generic = site.space is Space.GENERIC
    is_open = counter.follows_layout or (is_generic and counter.reach is not Reach.ALL)
    return Certainty.MODELLED if is_open else Certainty.EXACT


def _cap(kernel: KernelAnalysis, certainty: Certainty | None) -> Certainty | None:
    """No number is more certain than the share of the launch's blocks that were executed."""
    if certainty is None:
        return None
    return max(certainty, kernel.coverage.certainty, key=_ORDER.index)


def _lay_side_by_side(
    counter: Counter, predicted: int | None, counted: int | None, certainty: Certainty | None, noise: Noise
) -> Quantity:
    difference = None if predicted is None or counted is None else counted - predicted
    return Quantity(
        name=counter.name,
        metric=counter.metric,
        view=counter.view,
        predicted=predicted,
        counted=counted,
        difference=difference,
        certainty=certainty,
        verdict=judge(predicted, counted, certainty, noise),
    )


def judge(predicted: int | None, counted: int | None, certainty: Certainty | None, noise: Noise) -> Verdict:
    """What the two numbers say, by what is claimed of the one and known of the other."""
    if predicted is None:
        return Verdict.NOT_PREDICTED
    if counted is None:
        return Verdict.NOT_COUNTED
    if predicted == counted:
        return Verdict.EQUAL
    if certainty is not Certainty.EXACT:
        return Verdict.INEXACT
    if noise is Noise.EITHER or (noise is Noise.UPWARD and counted > predicted):
        return Verdict.NOISE
    return Verdict.DIFFERENT
