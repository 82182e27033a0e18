"""Turns two analyses into what changed from one to the other, by how much, and with what part in the change of time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.causes import Cause, Part, split_time
from sectorwise.analysis.lines import LineCost, list_line_costs, pair_lines
from sectorwise.analysis.work import Work, compare_work
from sectorwise.errors import ArgumentError
from sectorwise.model.roofline import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sectorwise.analysis.data import Analysis, Device, KernelAnalysis, Launch

SCHEMA: Final = "sectorwise.comparison/1"
WRONG_ACCESSES: Final = "lanes with a wrong access"
"""The name of the number that must not grow: what is wrong is not faster."""
HANGS: Final = "hangs"
"""The name of the word that must not be `yes` or `may` after: what does not end is not faster."""


@dataclass(frozen=True, slots=True)
class CauseChange:
    """How a part of the time changed; as in `causes.Part`.

    `share` is this part's change over that of the whole estimate: the shares of a kernel add up to 1. None where an
    estimate is missing, or both are equal. Where the two are held up by different things, each is a cause of its own.
    """

    cause: Cause
    held_up_by: str | None
    unit: str
    amount_before: float | None
    amount_after: float | None
    ns_before: float | None
    ns_after: float | None
    share: float | None


@dataclass(frozen=True, slots=True)
class NumberChange:
    """A number of the kernel before and after; None where it is not known or does not apply."""

    name: str
    unit: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class WordChange:
    """What is named, not counted, before and after: what limits the occupancy, what bounds the time."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class LineChange:
    """A source line before and after; None on the side where it is not. `share` as in `CauseChange`."""

    before: LineCost | None
    after: LineCost | None
    share: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two launches compared."""

    name: str
    case: str | None
    launch: Launch


@dataclass(frozen=True, slots=True)
class KernelChange:
    """A launch before and after.

    `causes` add up to the change of `estimate_ns`, the dearest first (those of one `Cause` by what they change
    together); `lines` likewise, those that did not change
    last. `error` is the median error that such estimates have had.
    """

    before: Side
    after: Side
    estimate_ns_before: float | None
    estimate_ns_after: float | None
    error: float | None
    causes: tuple[CauseChange, ...]
    words: tuple[WordChange, ...]
    numbers: tuple[NumberChange, ...]
    lines: tuple[LineChange, ...]
    work: Work


@dataclass(frozen=True, slots=True)
class Comparison:
    """All launches that both analyses have, and those that only one has."""

    schema: str
    source_before: str
    source_after: str
    device_before: Device
    device_after: Device
    kernels: tuple[KernelChange, ...]
    only_before: tuple[Side, ...]
    only_after: tuple[Side, ...]


def compare_analyses(before: Analysis, after: Analysis) -> Comparison:
    """What changed from one analysis to the other.

    Launches are paired by kernel and case, then by kernel in their order; where each has a single launch these are the
    pair, whatever their names.

    Raises:
        ArgumentError: no launch of one has a counterpart.
    """
    pairs = _pair_kernels(before.kernels, after.kernels)
    if not pairs:
        names = [", ".join(dict.fromkeys(kernel.name for kernel in each.kernels)) for each in (before, after)]
        raise ArgumentError(
            f"no kernel is in both: before there are {names[0]}, after {names[1]}; choose one of each with --kernel"
        )
    paired = {id(kernel) for pair in pairs for kernel in pair}
    return Comparison(
        schema=SCHEMA,
        source_before=before.source,
        source_after=after.source,
        device_before=before.device,
        device_after=after.device,
        kernels=tuple(_compare(old, new, before, after) for old, new in pairs),
        only_before=tuple(_name(kernel) for kernel in before.kernels if id(kernel) not in paired),
        only_after=tuple(_name(kernel) for kernel in after.kernels if id(kernel) not in paired),
    )


def _pair_kernels(
    olds: Sequence[KernelAnalysis], news: Sequence[KernelAnalysis]
) -> list[tuple[KernelAnalysis, KernelAnalysis]]:
    if len(olds) == len(news) == 1:
        return [(olds[0], news[0])]
    left = list(news)
    found: dict[int, KernelAnalysis] = {}
    for alike in (_have_same_case, lambda old, new: old.name == new.name):
        for number, old in enumerate(olds):
            match = next((new for new in left if number not in found and alike(old, new)), None)
            if match is not None:
                found[number] = match
                left = [new for new in left if new is not match]
    return [(old, found[number]) for number, old in enumerate(olds) if number in found]


def _have_same_case(old: KernelAnalysis, new: KernelAnalysis) -> bool:
    return (old.name, old.case, old.launch) == (new.name, new.case, new.launch) or (
        old.case is not None and (old.name, old.case) == (new.name, new.case)
    )


def _name(kernel: KernelAnalysis) -> Side:
    return Side(kernel.name, kernel.case, kernel.launch)


def _compare(old: KernelAnalysis, new: KernelAnalysis, before: Analysis, after: Analysis) -> KernelChange:
    times = [None if kernel.time is None else kernel.time.estimate_ns for kernel in (old, new)]
    whole = None if times[0] is None or times[1] is None else times[1] - times[0]
    error = new.time.error.median if new.time is not None else None
    return KernelChange(
        before=_name(old),
        after=_name(new),
        estimate_ns_before=times[0],
        estimate_ns_after=times[1],
        error=error,
        causes=_order_causes(tuple(_compare_causes(old, new, whole))),
        words=tuple(_compare_words(old, new)),
        numbers=tuple(_compare_numbers(old, new)),
        lines=tuple(
            sorted(
                _compare_lines(
                    list_line_costs(old, before.source_texts), list_line_costs(new, after.source_texts), whole
                ),
                key=_weigh_line,
                reverse=True,
            )
        ),
        work=compare_work(old, new),
    )


def _order_causes(changes: tuple[CauseChange, ...]) -> tuple[CauseChange, ...]:
    """The largest change first, where a pace that something else holds up after has changed by the difference."""
    moved: dict[Cause, float] = {}
    for each in changes:
        moved[each.cause] = moved.get(each.cause, 0.0) + ((each.ns_after or 0.0) - (each.ns_before or 0.0))
    return tuple(sorted(changes, key=lambda each: -abs(moved[each.cause])))


def _divide(change: float | None, whole: float | None) -> float | None:
    return None if change is None or not whole else change / whole


def _compare_causes(old: KernelAnalysis, new: KernelAnalysis, whole: float | None) -> Iterator[CauseChange]:
    for first, second in zip(split_time(old), split_time(new), strict=True):
        if first.held_up_by == second.held_up_by or first.ns is None or second.ns is None:
            yield _change_cause(first, second, whole)
        else:
            yield _change_cause(first, replace(first, ns=0.0, amount=None), whole)
            yield _change_cause(replace(second, ns=0.0, amount=None), second, whole)


def _change_cause(first: Part, second: Part, whole: float | None) -> CauseChange:
    change = None if first.ns is None or second.ns is None else second.ns - first.ns
    return CauseChange(
        cause=first.cause,
        held_up_by=second.held_up_by,
        unit=second.unit,
        amount_before=first.amount,
        amount_after=second.amount,
        ns_before=first.ns,
        ns_after=second.ns,
        share=_divide(change, whole),
    )


def _compare_lines(olds: Sequence[LineCost], news: Sequence[LineCost], whole: float | None) -> Iterator[LineChange]:
    for old, new in pair_lines(olds, news):
        times = [0.0 if side is None else side.ns for side in (old, new)]
        change = None if times[0] is None or times[1] is None else times[1] - times[0]
        yield LineChange(old, new, _divide(change, whole))


def _weigh_line(line: LineChange) -> tuple[float, float]:
    """By time, else by what moves."""
    times, moved = [], []
    for side in (line.before, line.after):
        times.append(0.0 if side is None else side.ns or 0.0)
        counts = () if side is None else (side.sectors, side.wavefronts, side.sectors_local)
        moved.append(sum(count for count in counts if count is not None))
    return abs(times[1] - times[0]), abs(moved[1] - moved[0])


def _compare_words(old: KernelAnalysis, new: KernelAnalysis) -> Iterator[WordChange]:
    yield WordChange(HANGS, _judge_end(old), _judge_end(new))
    yield WordChange("grid", _write_extent(old.launch.grid), _write_extent(new.launch.grid))
    yield WordChange("block", _write_extent(old.launch.block), _write_extent(new.launch.block))
    yield WordChange("time bound by", *(None if each.time is None else each.time.bound for each in (old, new)))
    yield WordChange("roofline bound", old.roofline.bound, new.roofline.bound)
    yield WordChange("occupancy limited by", str(old.occupancy.limiter), str(new.occupancy.limiter))
    yield WordChange("above the ridge", _find_ridge(old), _find_ridge(new))


def _write_extent(extent: tuple[int, int, int]) -> str:
    return " x ".join(f"{each:,}" for each in extent[: 3 if extent[2] != 1 else 2 if extent[1] != 1 else 1])


def _judge_end(kernel: KernelAnalysis) -> str:
    """Whether the launch hangs: `yes`, `may` where that is not certain, `no`."""
    return "no" if not kernel.hangs else "yes" if any(hang.is_certain for hang in kernel.hangs) else "may"


def _find_ridge(kernel: KernelAnalysis) -> str | None:
    """At the levels of memory, which allow the peak rate; None without arithmetic."""
    if not kernel.roofline.operations:
        return None
    levels = [
        level for level in kernel.roofline.levels if level.level is not Level.ISSUE and level.intensity is not None
    ]
    above = [str(level.level) for level in levels if (level.intensity or 0.0) >= level.ridge]
    return ", ".join(above) or "none"


def _compare_numbers(old: KernelAnalysis, new: KernelAnalysis) -> Iterator[NumberChange]:
    """Every number of `_list_numbers`, those of the two in the same order."""
    for (name, unit, first), (_, _, second) in zip(_list_numbers(old), _list_numbers(new), strict=True):
        yield NumberChange(name, unit, first, second)


def _list_numbers(kernel: KernelAnalysis) -> Iterator[tuple[str, str, float | None]]:
    totals, held, traffic = kernel.totals, kernel.occupancy, kernel.traffic
    levels = {level.level: level.intensity for level in kernel.roofline.levels}
    yield WRONG_ACCESSES, "", sum(fault.occurrences for fault in kernel.faults)
    yield "occupancy", "%", held.theoretical_pct
    yield "blocks an SM", "", held.blocks_per_sm
    yield "registers a thread", "", kernel.resources.registers_per_thread
    yield "shared memory a block", "B", kernel.resources.static_shared_bytes + kernel.launch.dynamic_shared_bytes
    yield "spills and stack: local sectors", "", totals.l2_theoretical_sectors_local
    yield "waves", "", kernel.waves.waves
    yield "last wave full", "%", kernel.waves.last_wave_pct
    yield "warp instructions", "", totals.instructions
    yield "global sectors", "", totals.l2_theoretical_sectors
    yield "global sectors, ideal", "", totals.l2_theoretical_sectors_ideal
    yield "shared wavefronts", "", totals.shared_wavefronts
    yield "shared wavefronts, ideal", "", totals.shared_wavefronts_ideal
    yield "bulk copies", "", _add_known(each.copies for each in kernel.copies)
    yield "bulk copies, sectors", "", _add_known(each.sectors for each in kernel.copies)
    yield "bulk copies, sectors, ideal", "", _add_known(each.sectors_ideal for each in kernel.copies)
    yield "L1 hits, sectors", "", None if traffic is None else traffic.l1_hit_sectors
    yield "L2 sectors read by SMs", "", None if traffic is None else traffic.l2_sectors_read_from_sm
    yield "DRAM read", "B", None if traffic is None else traffic.dram_bytes_read
    yield "DRAM written", "B", None if traffic is None else traffic.dram_bytes_write
    flight = kernel.concurrency
    yield "in flight an SM", "B", None if flight is None else flight.in_flight_bytes_per_sm
    yield "operations", "", kernel.roofline.operations
    yield "intensity at DRAM", "op/B", levels.get(Level.DRAM)
    yield "least time", "ns", kernel.roofline.least_ns


def _add_known(counts: Iterable[int | None]) -> int | None:
    """The sum; None where one of them is not known."""
    listed = list(counts)
    return None if None in listed else sum(each for each in listed if each is not None)
