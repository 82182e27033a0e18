"""Turns a loop that waits for each of its loads into one that the compiler unrolls, so that several are in flight."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.workshop import Change, Gain, Refusal, make_remedy, prove

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

_CODE: Final = "SW406"
_FACTORS: Final = (8, 4)
_WORTH: Final = 1.2
_LOOP: Final = re.compile(r"\b(?:for|while)\s*\(")
_PRAGMA: Final = re.compile(r"^\s*#\s*pragma\s+unroll\b.*$")
_IN_FLIGHT: Final = "bytes in flight an SM (modelled)"


def find_unrolling(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for SW406: the unrolling of its loops with which the launch keeps a fifth more in flight."""
    before = _count_in_flight(original)
    found: dict[int, tuple[Remedy, ...]] = {}
    for place, finding in enumerate(findings):
        line = _find_line(original, finding) if finding.code == _CODE else None
        for change in () if line is None else _list_changes(workshop, line):
            outcome = prove(workshop, change, original)
            if not isinstance(outcome, Refusal):
                after = _count_in_flight(outcome.model)
                if after >= _WORTH * before:
                    found[place] = (make_remedy(workshop, original, change, Gain(_IN_FLIGHT, before, after)),)
                    break
    return found


def _list_changes(workshop: Workshop, line: int) -> Iterator[Change]:
    lines = workshop.text.splitlines(keepends=True)
    loop = next((number for number in range(line - 1, -1, -1) if _LOOP.search(lines[number])), None)
    if loop is None or not _LOOP.match(lines[loop].strip()):
        return
    has_pragma = loop > 0 and _PRAGMA.match(lines[loop - 1]) is not None
    for factor in _FACTORS:
        pragma = f"#pragma unroll {factor}\n"
        before = lines[: loop - 1] if has_pragma else lines[:loop]
        yield Change(
            title=f"unroll the loop of line {loop + 1} by {factor}",
            code=f"{pragma}{lines[loop].strip()}",
            text="".join([*before, pragma, *lines[loop:]]),
            launch=workshop.launch,
        )


def _find_line(original: KernelModel, finding: Finding) -> int | None:
    location = original.bound.kernel.instructions[finding.instructions[0]].location
    return None if location is None else (location.inlined_at or (location,))[-1].line


def _count_in_flight(model: KernelModel) -> int:
    found = model.pace.concurrency
    return 0 if found is None else round(found.in_flight_bytes_per_sm)
