"""Turns the shape and counts of a request into the words of a finding."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from sectorwise.rules.shapes import SECTOR_BYTES, describe_shape

if TYPE_CHECKING:
    from sectorwise.machine.execution import Pattern
    from sectorwise.rules.shapes import Shape

PAD_ROWS: Final = "pad the rows of the array, or swizzle it (XOR the column with the row)"
"""What to do where lanes that go down a column meet in a bank."""

_MOST_PIECES: Final = 4
"""Up to so many times its width from one lane to the next, a lane is taken to own a piece of a row."""


def advise_layout(shape: Shape) -> str:
    """What to do about lanes that meet in a bank; padding moves no lane that shares a row with the one it meets."""
    steps = {second.start - first.start for first, second in pairwise(shape.runs)}
    if len(steps) != 1 or not shape.width_bytes < (step := steps.pop()) <= _MOST_PIECES * shape.width_bytes:
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
