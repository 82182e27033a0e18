"""Turns memory instructions with a common fault into findings, one for each source line."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sectorwise.counting.request import Operation
from sectorwise.findings import Evidence, Finding, Picture, Scene, Severity
from sectorwise.rules.costs import price_sectors, price_wavefronts
from sectorwise.rules.shapes import LANES, find_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    from sectorwise.machine.execution import Pattern, Site
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.rules.shapes import Shape

SECTORS = "L2 theoretical sectors global"
"""What the profiler's source view calls the sectors of a global memory instruction."""

WAVEFRONTS = "L1 wavefronts shared"
"""What the profiler's source view calls the passes of a shared memory instruction."""

_PASS_BYTES = 128
_WORD_BYTES = 4
_GENERIC_GLOBAL, _GENERIC_SHARED = 0, 1
_MATRICES = frozenset({Operation.MATRIX_LOAD, Operation.MATRIX_STORE})
_MATRIX_ROW_BYTES, _MATRIX_ROWS = 16, 8


@dataclass(frozen=True, slots=True)
class Wording:
    """What a rule says: its code, how it puts the dearest request of a line into words, and what it advises.

    `describe` is given the request's shape and counts; it is not called for a site of which no pattern was kept.
    `advise` gives the advice for a shape, where it hangs on that.
    """

    code: str
    describe: Callable[[Shape, Pattern], str]
    advice: str
    advise: Callable[[Shape], str] | None = None
    severity: Severity = Severity.WARNING


def find_wasteful(model: KernelModel) -> Iterator[Site]:
    """Sites whose addresses are known, and that move more sectors than their bytes need."""
    for site in model.execution.sites:
        if site.unknown_because is None and site.sectors > site.sectors_ideal:
            yield site


def find_conflicting(model: KernelModel, operations: Iterable[Operation]) -> Iterator[Site]:
    """Sites of these operations whose addresses are known, and that take more passes than their bytes need."""
    wanted = frozenset(operations)
    for site in model.execution.sites:
        conflicts = site.wavefronts > site.wavefronts_ideal
        if site.unknown_because is None and conflicts and site.access.operation in wanted:
            yield site


def report_sectors(model: KernelModel, sites: Iterable[Site], wording: Wording) -> Iterator[Finding]:
    """One finding for each line and kind of access, on the sectors of `sites` beyond the ideal."""
    for group in group_sites(model, sites, lambda site: site.sectors - site.sectors_ideal):
        pattern = find_dearest(group[0], lambda pattern: pattern.sectors - pattern.sectors_ideal)
        picture = None if pattern is None else draw_sectors(group[0], pattern)
        real, ideal = sum(site.sectors for site in group), sum(site.sectors_ideal for site in group)
        evidence = Evidence(SECTORS, real, ideal, sum(site.executed for site in group), picture)
        counts = None if pattern is None else (pattern.sectors, pattern.sectors_ideal)
        shape = None if pattern is None else find_sector_shape(group[0], pattern)
        words = "" if pattern is None or shape is None else wording.describe(shape, pattern)
        words = _complete(words, group, counts, evidence)
        yield _make(group, _advise(wording, shape), words, evidence, price_sectors(model, real - ideal))


def report_wavefronts(model: KernelModel, sites: Iterable[Site], wording: Wording) -> Iterator[Finding]:
    """One finding for each line and kind of access, on the passes of `sites` beyond the ideal."""
    for group in group_sites(model, sites, lambda site: site.wavefronts - site.wavefronts_ideal):
        pattern = find_dearest(group[0], lambda pattern: pattern.wavefronts - pattern.wavefronts_ideal)
        picture = None if pattern is None else draw_banks(group[0], pattern)
        real, ideal = sum(site.wavefronts for site in group), sum(site.wavefronts_ideal for site in group)
        evidence = Evidence(WAVEFRONTS, real, ideal, sum(site.executed for site in group), picture)
        counts = None if pattern is None else (pattern.wavefronts, pattern.wavefronts_ideal)
        shape = None if pattern is None else find_bank_shape(group[0], pattern)
        words = "" if pattern is None or shape is None else wording.describe(shape, pattern)
        words = _complete(words, group, counts, evidence)
        yield _make(group, _advise(wording, shape), words, evidence, price_wavefronts(model, real - ideal))


def _advise(wording: Wording, shape: Shape | None) -> Wording:
    """With the advice for a shape, where it hangs on that."""
    return wording if shape is None or wording.advise is None else replace(wording, advice=wording.advise(shape))


def _complete(words: str, group: Sequence[Site], counts: tuple[int, int] | None, evidence: Evidence) -> str:
    """What the dearest request says, and, where the others of the line are not like it, their average."""
    requests, real, ideal = evidence.requests or 1, evidence.real, evidence.ideal or 0
    if counts is not None and (real, ideal) == (counts[0] * requests, counts[1] * requests):
        return words if len(group) == 1 else f"{words}; {len(group)} instructions alike"
    unit = "sectors" if evidence.quantity == SECTORS else "wavefronts"
    of = "" if len(group) == 1 else f" of {len(group)} instructions"
    average = f"{real / requests:.3g} {unit} a request, ideal {ideal / requests:.3g}"
    if counts is not None and average == f"{counts[0]:.3g} {unit} a request, ideal {counts[1]:.3g}":
        return words if len(group) == 1 else f"{words}; {len(group)} instructions nearly alike"
    return f"{words}; on average{of} {average}" if words else average


def _make(group: Sequence[Site], wording: Wording, words: str, evidence: Evidence, cost_ns: float) -> Finding:
    access = group[0].access
    what = f"{access.space} {access.operation} of {access.width_bytes} B".replace("_", " ")
    return Finding(
        code=wording.code,
        severity=wording.severity,
        message=f"{what}: {words}",
        advice=wording.advice,
        instructions=tuple(site.instruction for site in group),
        evidence=evidence,
        cost_ns=cost_ns,
    )


def group_sites(model: KernelModel, sites: Iterable[Site], weigh: Callable[[Site], int]) -> list[list[Site]]:
    """Sites of one line (by all its inlining), space and operation together, the dearest first."""
    groups: dict[Hashable, list[Site]] = {}
    for site in sites:
        instruction = model.bound.kernel.instructions[site.instruction]
        place: Hashable = instruction.location or instruction.index
        groups.setdefault((place, site.access.space, site.access.operation), []).append(site)
    return [sorted(group, key=lambda site: -weigh(site)) for group in groups.values()]


def find_dearest(site: Site, weigh: Callable[[Pattern], int]) -> Pattern | None:
    """The pattern that costs the most over the launch; None where none was kept."""
    return max(site.patterns, key=lambda pattern: weigh(pattern) * pattern.times, default=None)


def find_sector_shape(site: Site, pattern: Pattern) -> Shape:
    """How the lanes lie that access global memory."""
    return find_shape(pattern.addresses, _select(pattern, _GENERIC_GLOBAL), site.access.width_bytes)


def find_bank_shape(site: Site, pattern: Pattern) -> Shape:
    """How the lanes lie that access shared memory; of matrix operations, the rows that they address."""
    return find_shape(_shared_addresses(pattern), _bank_mask(site, pattern), _bank_width_bytes(site))


def draw_sectors(site: Site, pattern: Pattern) -> Picture:
    """The lanes of a request on the sectors of global memory."""
    mask = _select(pattern, _GENERIC_GLOBAL)
    return Picture(Scene.SECTORS, site.access.width_bytes, _place(pattern.addresses, mask), LANES, pattern.times)


def draw_banks(site: Site, pattern: Pattern) -> Picture:
    """The lanes of a request on the banks of shared memory, those that go together in a pass."""
    width_bytes = _bank_width_bytes(site)
    together = min(LANES, _PASS_BYTES // max(width_bytes, _WORD_BYTES))
    lanes = _place(_shared_addresses(pattern), _bank_mask(site, pattern))
    return Picture(Scene.BANKS, width_bytes, lanes, together, pattern.times)


def _place(addresses: Sequence[int], mask: int) -> tuple[int | None, ...]:
    """Offsets to the last multiple of 128 before the lowest active lane."""
    active = [addresses[lane] for lane in range(LANES) if mask >> lane & 1]
    base = min(active, default=0) // _PASS_BYTES * _PASS_BYTES
    return tuple(addresses[lane] - base if mask >> lane & 1 else None for lane in range(LANES))


def _select(pattern: Pattern, space: int) -> int:
    """The active lanes; of a generic access, those in one space."""
    if pattern.generic_spaces is None:
        return pattern.mask
    inside = sum(1 << lane for lane in range(LANES) if pattern.generic_spaces[lane] == space)
    return pattern.mask & inside


def _shared_addresses(pattern: Pattern) -> Sequence[int]:
    return pattern.addresses if pattern.shared_addresses is None else pattern.shared_addresses


def _bank_mask(site: Site, pattern: Pattern) -> int:
    if site.access.operation in _MATRICES:
        return pattern.mask & ((1 << site.access.matrices * _MATRIX_ROWS) - 1)
    return _select(pattern, _GENERIC_SHARED)


def _bank_width_bytes(site: Site) -> int:
    return _MATRIX_ROW_BYTES if site.access.operation in _MATRICES else site.access.width_bytes
