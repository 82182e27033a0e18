"""Turns candidates with their costs into a ranking: the fastest, which are as good, and why the others are not."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from sectorwise.advise.tabulate import make_dataframe, make_records, write_size, write_table, write_time
from sectorwise.errors import ArgumentError
from sectorwise.findings import show
from sectorwise.layout.reader import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sectorwise.advise.crossovers import Crossover
    from sectorwise.advise.plan import Cost

EQUAL: Final = 1.05
"""Candidates within 5 % of the fastest are called equal: no model tells them apart."""

_MORE: Final = 1.05


class Candidate(Protocol):
    """One way of doing the work."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def cost(self) -> Cost:
        """What it costs."""


C = TypeVar("C", bound=Candidate)


@dataclass(frozen=True, slots=True)
class Ranking(Generic[C]):
    """Candidates, the fastest first, without the reference, which is no candidate but the limit.

    `equal` are the names of those within 5 % of the winner, itself included; `reasons` says of each other why not,
    `details` more of each, and
    `crossovers` at which sizes another is the fastest.
    """

    title: str
    candidates: tuple[C, ...]
    equal: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    reference: C | None = None
    details: tuple[str, ...] = ()
    crossovers: tuple[Crossover, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = field(default=())

    @property
    def winner(self) -> C:
        """The fastest."""
        return self.candidates[0]

    def find(self, name: str) -> C:
        """The candidate of that name, the reference included; raises `ArgumentError`."""
        if self.reference is not None and self.reference.name == name:
            return self.reference
        for each in self.candidates:
            if each.name == name:
                return each
        raise ArgumentError(f"there is no candidate '{name}'{suggest(name, [each.name for each in self.candidates])}")

    def to_records(self) -> list[dict[str, object]]:
        """A record for each candidate, the fastest first."""
        return make_records(self.candidates)

    def to_dataframe(self) -> Any:  # noqa: ANN401 - as `make_dataframe`
        """A pandas DataFrame, a line for each candidate."""
        return make_dataframe(self.candidates)

    def _repr_html_(self) -> str:
        return str(show("write_advice", self))

    def __str__(self) -> str:
        """A table of at most 80 columns, and what follows from it."""
        lines = [*textwrap.wrap(self.title, 80), ""]
        shown = (*(() if self.reference is None else (self.reference,)), *self.candidates)
        lines += write_table(HEADS, [_write_row(each) for each in shown], gap=" ")
        lines += ["", *self._conclude()]
        return "\n".join(line.rstrip() for line in lines)

    def _conclude(self) -> list[str]:
        names = " = ".join(self.equal)
        lines = [*(f"  {detail}" for detail in self.details), *([""] if self.details else [])]
        lines += [f"  {names}: equal within 5 %" if len(self.equal) > 1 else f"  {names} is the fastest"]
        lines += [f"  {name}: {reason}" for name, reason in self.reasons]
        lines += [f"  {each}" for each in self.crossovers]
        lines += [f"  {note}" for note in self.notes]
        lines += [f"  assumed: {text}" for text in self.assumed]
        lines += ["", *LEGEND]
        return [part for line in lines for part in textwrap.wrap(line, 80, subsequent_indent=" " * 6) or [""]]


LEGEND: Final = (
    "  sect., wave.: sectors and wavefronts a request; eff.: ideal over real sectors;",
    "  flight: bytes in flight an SM",
)
HEADS: Final = ("", "sect.", "wave.", "eff.", "flight", "DRAM", "time", "bound")


def rank(
    title: str,
    candidates: Sequence[C],
    *,
    reason: Callable[[C, C], str],
    reference: str | None = None,
    detail: Callable[[C], str] | None = None,
    crossovers: tuple[Crossover, ...] = (),
    notes: tuple[str, ...] = (),
) -> Ranking[C]:
    """The ranking of candidates by time; `reason(winner, loser)` says why one loses, `detail` more of each."""
    limit = next((each for each in candidates if each.name == reference), None)
    ordered = sorted((each for each in candidates if each is not limit), key=lambda each: each.cost.time_ns)
    winner = ordered[0]
    equal = [each for each in ordered if each.cost.time_ns <= EQUAL * winner.cost.time_ns]
    return Ranking(
        title=title,
        candidates=tuple(ordered),
        equal=tuple(each.name for each in equal),
        reasons=tuple((each.name, reason(winner, each)) for each in ordered if each not in equal),
        reference=limit,
        details=() if detail is None else tuple(f"{each.name}: {detail(each)}" for each in ordered),
        crossovers=crossovers,
        notes=notes,
        assumed=winner.cost.assumed,
    )


def compare_costs(winner: Cost, loser: Cost) -> str:
    """In what a plan differs from the winner's to its harm, and most; what it is held up by where in nothing."""
    held_up = f"held up by {loser.bound}"
    sizes = write_size(loser.dram_bytes), write_size(winner.dram_bytes)
    differences = [
        (_exceed(loser.dram_bytes, winner.dram_bytes), f"DRAM moves {sizes[0]}, for the winner {sizes[1]}"),
        (_exceed(loser.instructions, winner.instructions), "{:.3g} times the instructions"),
        (_exceed(loser.sectors, winner.sectors), "{:.3g} times the sectors"),
        (_exceed(loser.wavefronts, winner.wavefronts), "{:.3g} times the wavefronts of shared memory"),
        (
            _exceed(winner.warps_per_sm, loser.warps_per_sm),
            f"{loser.warps_per_sm} warps an SM, the winner has {winner.warps_per_sm}",
        ),
    ]
    most, text = max(differences)
    if most > _MORE:
        return f"{text.format(most)}; {held_up}"
    if loser.wavefronts and not winner.wavefronts:
        return f"{loser.wavefronts:,.0f} wavefronts of shared memory, the winner has none; {held_up}"
    return f"{100 * (loser.time_ns / winner.time_ns - 1):.3g} % slower, {held_up}; none of its counts is much higher"


def _exceed(more: float, less: float) -> float:
    return more / less if less else 1.0


def _write_row(candidate: Candidate) -> tuple[str, ...]:
    cost = candidate.cost
    return (
        candidate.name,
        f"{cost.sectors_per_request:.3g}",
        f"{cost.wavefronts_per_request:.3g}" if cost.wavefronts_per_request else "-",
        f"{100 * cost.efficiency:.3g} %",
        write_size(cost.bytes_in_flight),
        write_size(cost.dram_bytes),
        write_time(cost.time_ns),
        cost.bound,
    )
