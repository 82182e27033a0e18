"""Turns a loop in which each thread walks along a row of its own into one whose warps load the rows together."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import SIZES_BYTES, blank_comments
from sectorwise.remedies.signatures import find_kernel_text
from sectorwise.remedies.workshop import Change, Gain, Refusal, find_coded, make_remedy, prove
from sectorwise.rules.requests import SECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.findings import Finding, Remedy
    from sectorwise.model.kernel_model import KernelModel
    from sectorwise.remedies.signatures import KernelText
    from sectorwise.remedies.workshop import Workshop

_CODE: Final = "SW101"
_LANES: Final = 32
_WORD_BYTES: Final = 4
_FOR: Final = re.compile(
    r"\bfor\s*\(\s*(?P<type>int|unsigned|long long|size_t)\s+(?P<name>\w+)\s*=\s*0\s*;"
    r"\s*(?P=name)\s*<\s*(?P<end>[^;]+?)\s*;"
    r"\s*(?:\+\+\s*(?P=name)|(?P=name)\s*\+\+|(?P=name)\s*\+=\s*1)\s*\)\s*"
)
_LOOP: Final = """\
for ({type} {name}_0 = 0; {name}_0 < {end}; {name}_0 += 32) {{
    __shared__ {element} staged[{warps}][32][{width}];  // a word more than 32 elements: columns walk over the banks
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int r = 0; r < 32; ++r)
        if ({name}_0 + lane < {end}) staged[warp][r][lane] = {array}[({row} - lane + r) * {pitch} + {name}_0 + lane];
    __syncwarp();
    for ({type} {name} = {name}_0; {name} < {name}_0 + 32 && {name} < {end}; ++{name}) {body}
    __syncwarp();
}}"""


@dataclass(frozen=True, slots=True)
class _Walk:
    """A loop over k from 0 whose body reads `array[row * pitch + k]`: its places in the text, and its parts."""

    start: int
    end: int
    type: str
    name: str
    limit: str
    array: str
    row: str
    pitch: str
    body: str


def find_staged_rows(
    workshop: Workshop, original: KernelModel, findings: Sequence[Finding]
) -> dict[int, tuple[Remedy, ...]]:
    """The remedy for SW101 where lanes step by rows: warps load 32 x 32 tiles along the rows, through shared memory.

    Each thread still takes its row in order, so that no sum is regrouped. Blocks are of whole warps along x.
    """
    before = original.totals.l2_theoretical_sectors
    kernel = find_kernel_text(workshop.text, workshop.launch)
    x, y, z = workshop.launch.block
    if not before or kernel is None or x % _LANES or (y, z) != (1, 1):
        return {}
    if all(finding.code != _CODE for finding in findings):
        return {}
    for walk in _list_walks(workshop.text, kernel):
        change = _stage(workshop, kernel, walk)
        outcome = None if change is None else prove(workshop, change, original)
        if change is None or outcome is None or isinstance(outcome, Refusal):
            continue
        totals = outcome.model.totals
        after = totals.l2_theoretical_sectors
        if after is not None and after < before:
            told = replace(change, title=f"{change.title}, which costs {totals.shared_wavefronts:,} wavefronts")
            remedy = make_remedy(workshop, original, told, Gain(SECTORS, before, after))
            first, last = (workshop.text.count("\n", 0, at) + 1 for at in (walk.start, walk.end))
            return dict.fromkeys(_find_inside(original, findings, range(first, last + 1)), (remedy,))
    return {}


def _find_inside(original: KernelModel, findings: Sequence[Finding], lines: range) -> list[int]:
    """The places of the findings on these lines, or on code that was inlined there."""
    inside = []
    for place in find_coded(findings, {_CODE}):
        location = original.bound.kernel.instructions[findings[place].instructions[0]].location
        if location is not None and any(each.line in lines for each in (location, *location.inlined_at)):
            inside.append(place)
    return inside


def _list_walks(text: str, kernel: KernelText) -> Iterator[_Walk]:
    plain = blank_comments(text)
    names = "|".join(re.escape(each.name) for each in kernel.parameters if each.pointee is not None)
    for loop in _FOR.finditer(plain, kernel.start, kernel.end):
        end = _find_end(plain, loop.end())
        name = re.escape(loop["name"])
        access = re.compile(
            rf"\b(?P<array>{names})\s*\[\s*(?P<row>\w+|\([^()]*\))\s*\*\s*(?P<pitch>\w+)\s*\+\s*{name}\s*\]"
        )
        found = access.search(plain, loop.end(), end) if names else None
        if found is None:
            continue
        staged = f"staged[warp][lane][{loop['name']} - {loop['name']}_0]"
        body = text[loop.end() : found.start()] + staged + text[found.end() : end]
        yield _Walk(
            start=loop.start(),
            end=end,
            type=loop["type"],
            name=loop["name"],
            limit=loop["end"],
            array=found["array"],
            row=found["row"],
            pitch=found["pitch"],
            body=body,
        )


def _find_end(plain: str, position: int) -> int:
    """Where the statement at a position ends: after its semicolon, or after its closing brace."""
    depth = 0
    for at in range(position, len(plain)):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(plain[at], 0)
        if depth == 0 and plain[at] in ";}":
            return at + 1
    return len(plain)


def _stage(workshop: Workshop, kernel: KernelText, walk: _Walk) -> Change | None:
    pointee = next(each.pointee for each in kernel.parameters if each.name == walk.array)
    element = re.sub(r"\bconst\b", "", pointee or "").strip()
    if not element:
        return None
    code = _LOOP.format(
        type=walk.type,
        name=walk.name,
        end=walk.limit if walk.limit.isalnum() else f"({walk.limit})",
        element=element,
        width=_LANES + max(1, _WORD_BYTES // SIZES_BYTES.get(element, _WORD_BYTES)),
        warps=workshop.launch.threads_per_block // _LANES,
        array=walk.array,
        row=walk.row,
        pitch=walk.pitch,
        body=walk.body,
    )
    return Change(
        title=f"let each warp load 32 rows of {walk.array} together, along {walk.name}, through shared memory",
        code=code,
        text=workshop.text[: walk.start] + code + workshop.text[walk.end :],
        launch=workshop.launch,
    )
