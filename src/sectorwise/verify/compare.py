"""Turns a launch as it was predicted and as it was counted into a comparison, number by number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sectorwise.analysis.verification import KernelComparison, Quantity, SiteComparison, Verdict, View
from sectorwise.counting.request import Operation, Space
from sectorwise.machine.execution import Certainty
from sectorwise.verify.codes import find_opcode
from sectorwise.verify.counters import SITE_COUNTERS, TOTAL_COUNTERS, VERIFIED_CAPABILITIES, Noise, Reach

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.analysis.data import KernelAnalysis, MemorySite
    from sectorwise.analysis.profile import ProfiledLaunch, ProfiledSite
    from sectorwise.analysis.verification import BufferComparison
    from sectorwise.verify.counters import Counter

_ORDER: Final = tuple(Certainty)
_SPACES: Final = {
    Reach.GLOBAL: {Space.GLOBAL, Space.GENERIC},
    Reach.SHARED: {Space.SHARED, Space.GENERIC},
    Reach.LOCAL: {Space.LOCAL, Space.GENERIC},
    Reach.ALL: set(Space),
}
_GENERIC_LOCAL: Final = frozenset(
    {
        "global_load_requests",
        "global_load_sectors",
        "local_load_requests",
        "local_load_sectors",
        "local_store_requests",
        "local_store_sectors",
    }
)
"""Totals in which the pipe counts local lanes of generic requests by a rule that is not known (counting-rules.md)."""


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
    )


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
        quantities.append(_lay_side_by_side(counter, predicted, counted, certainty))
    return SiteComparison(
        offset=offset,
        sass=shown.sass,
        location=shown.location,
        space=shown.space,
        operation=shown.operation,
        width_bytes=shown.width_bytes,
        quantities=tuple(quantity for quantity in quantities if _is_worth_a_line(quantity)),
    )


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
    return _lay_side_by_side(counter, predicted, counted.totals.get(counter.name), _certainty_of_total(kernel, counter))


def _certainty_of_total(kernel: KernelAnalysis, counter: Counter) -> Certainty | None:
    """The certainty of the least certain instruction that the total depends on; None where something is unknown."""
    spaces = _SPACES[counter.reach]
    relevant = [site for site in kernel.sites if site.space in spaces or _reaches(site, counter.reach)]
    certainties = [_certainty_of(site, counter) for site in relevant]
    if kernel.limitations:
        return None
    if _counts_generic_otherwise(kernel, counter):
        certainties.append(Certainty.MODELLED)
    # How often a warp issues hangs on every instruction before, whatever memory it accesses.
    certainties += [site.certainty for site in kernel.sites if site.certainty in _ORDER[3:]]
    known = [certainty for certainty in certainties if certainty is not None]
    if len(known) < len(certainties):
        return None
    return _cap(kernel, max(known, key=_ORDER.index, default=Certainty.EXACT))


def _counts_generic_otherwise(kernel: KernelAnalysis, counter: Counter) -> bool:
    """Whether the pipe counts generic requests of this launch by a rule that is not known (counting-rules.md).

    Everywhere of local lanes; on other compute capabilities than 9.0 of all: on 8.6 a generic request that goes to
    shared memory was seen not to be one of global memory.
    """
    generic = [site for site in kernel.sites if site.space is Space.GENERIC]
    if kernel.bound is not None and kernel.bound.device.compute_capability not in VERIFIED_CAPABILITIES:
        return bool(generic) and counter.view is View.PIPE and counter.reach in {Reach.GLOBAL, Reach.LOCAL}
    return counter.name in _GENERIC_LOCAL and any(site.sectors_local for site in generic)


def _reaches(site: MemorySite, reach: Reach) -> bool:
    return reach is Reach.SHARED and site.operation is Operation.ASYNC_COPY


def _certainty_of(site: MemorySite, counter: Counter) -> Certainty | None:
    """Modelled rules are about the layout of lanes: how often an instruction issues stays exact."""
    if site.certainty is Certainty.MODELLED and not counter.follows_layout:
        return Certainty.EXACT
    return site.certainty


def _cap(kernel: KernelAnalysis, certainty: Certainty | None) -> Certainty | None:
    """No number is more certain than the share of the launch's blocks that were executed."""
    if certainty is None:
        return None
    return max(certainty, kernel.coverage.certainty, key=_ORDER.index)


def _lay_side_by_side(
    counter: Counter, predicted: int | None, counted: int | None, certainty: Certainty | None
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
        verdict=judge(predicted, counted, certainty, counter.noise),
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
