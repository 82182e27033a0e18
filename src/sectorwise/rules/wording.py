"""Turns the shape and counts of a request into the words of a finding."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sectorwise.rules.shapes import SECTOR_BYTES, describe_shape

if TYPE_CHECKING:
    from sectorwise.machine.execution import Pattern
    from sectorwise.rules.shapes import Shape

SORT: Final = "let neighbouring lanes take neighbouring addresses; where loaded indices decide, sort the work by them"
"""What to do where there is no order."""

PAD_ROWS: Final = "pad the rows of the array, or swizzle it (XOR the column with the row)"
"""What to do where lanes that go down a column meet in a bank."""

ALONG_ROWS: Final = "let neighbouring lanes (threadIdx.x) take neighbouring addresses, or go through shared memory"
"""What to do where lanes go down a column."""

PASS_BYTES: Final = 128
_MOST_PIECES: Final = 4
"""Up to so many times its width from one lane to the next, a lane is taken to own a piece of a row."""


def advise_order(shape: Shape) -> str:
    """What to do about lanes that lie apart; without any step between them, their places were looked up."""
    scattered = describe_shape(shape).endswith("scattered places")
    return SORT if scattered else ALONG_ROWS


def advise_layout(shape: Shape) -> str:
    """What to do about lanes that meet in a bank.

    Padding moves no lane that shares a row with the one it meets; and it is to blame where a pass takes several rows.
    """
    steps = {second.start - first.start for first, second in pairwise(shape.runs)}
    step = steps.pop() if len(steps) == 1 else 0
    size_bytes = shape.runs[0].size_bytes
    if shape.width_bytes < size_bytes < step < 2 * size_bytes and PASS_BYTES % size_bytes == 0:
        return (
            f"rows of {size_bytes} B that a pass takes together meet by their padding: leave them side by side and "
            "swizzle, or let a warp take longer rows"
        )
    if size_bytes > shape.width_bytes or not shape.width_bytes < step <= _MOST_PIECES * shape.width_bytes:
        return PAD_ROWS
    return (
        f"let neighbouring lanes take neighbouring pieces of {shape.width_bytes} B, in turns, instead of {step} B in a "
        f"row each; or swizzle along the row"
    )


def describe_sectors(shape: Shape, pattern: Pattern) -> str:
    """`lanes step 8,192 B: 32 sectors for 64 useful bytes, 6 %`; the per cent are rounded down."""
    share = shape.useful_bytes * 100 // (pattern.sectors * SECTOR_BYTES)
    return f"{describe_shape(shape)}: {pattern.sectors} sectors for {shape.useful_bytes} useful bytes, {share} %"


def describe_conflict(shape: Shape, pattern: Pattern) -> str:
    """`lanes step 128 B: 32 wavefronts where 1 would do`."""
    return f"{describe_shape(shape)}: {pattern.wavefronts} wavefronts where {pattern.wavefronts_ideal} would do"
