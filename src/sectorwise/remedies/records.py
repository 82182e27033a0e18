"""Turns partly used records into records that are aligned to their size, so that one access takes all of one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import blank_comments
from sectorwise.remedies.workshop import Change, Gain, Refusal, find_helped, make_remedy, prove, waste_sectors
from sectorwise.rules.requests import SECTORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.workshop import Workshop

_CODE: Final = "SW105"
_STRUCT: Final = re.compile(r"\bstruct\s+(?P<name>\w+)\s*\{")
_ALIGNMENTS_BYTES: Final = (16, 8)


def find_aligned_records(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for SW105: an alignment that lets the compiler fuse a record's fields into one access."""
    before = original.totals.l2_theoretical_sectors
    if not before or all(finding.code != _CODE for finding in findings):
        return {}
    for found in _STRUCT.finditer(blank_comments(workshop.text)):
        for alignment_bytes in _ALIGNMENTS_BYTES:
            at = found.start("name")
            name = found["name"]
            change = Change(
                title=f"align {name} to {alignment_bytes} B, so that the compiler fuses the access to its fields",
                code=f"struct __align__({alignment_bytes}) {name} {{",
                text=f"{workshop.text[:at]}__align__({alignment_bytes}) {workshop.text[at:]}",
                launch=workshop.launch,
            )
            outcome = prove(workshop, change, original)
            if isinstance(outcome, Refusal):
                continue
            after = outcome.model.totals.l2_theoretical_sectors
            if after is not None and after < before:
                remedy = make_remedy(workshop, original, change, Gain(SECTORS, before, after))
                return dict.fromkeys(find_helped(findings, {_CODE}, original, outcome.model, waste_sectors), (remedy,))
    return {}
