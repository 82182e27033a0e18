"""Turns the shape and counts of a request into the words of a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sectorwise.rules.shapes import SECTOR_BYTES, describe_shape

if TYPE_CHECKING:
    from sectorwise.machine.execution import Pattern
    from sectorwise.rules.shapes import Shape


def describe_sectors(shape: Shape, pattern: Pattern) -> str:
    """`lanes step 8,192 B: 32 sectors for 64 useful bytes, 6 %`; the per cent are rounded down."""
    share = shape.useful_bytes * 100 // (pattern.sectors * SECTOR_BYTES)
    return f"{describe_shape(shape)}: {pattern.sectors} sectors for {shape.useful_bytes} useful bytes, {share} %"


def describe_conflict(shape: Shape, pattern: Pattern) -> str:
    """`lanes step 128 B: 32 wavefronts where 1 would do`."""
    return f"{describe_shape(shape)}: {pattern.wavefronts} wavefronts where {pattern.wavefronts_ideal} would do"
