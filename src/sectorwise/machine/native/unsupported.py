"""Turns what machine code cannot do into an error by which the reference engine takes a launch over."""

from __future__ import annotations

from sectorwise.errors import SectorwiseError


class UnsupportedError(SectorwiseError):
    """Something of a launch that machine code does not do; the text says what."""
