"""Turns what machine code cannot do into an error by which the reference engine takes a launch over."""

from __future__ import annotations

from sectorwise.binary.ir import RETURN_PLACE
from sectorwise.errors import SectorwiseError


class UnsupportedError(SectorwiseError):
    """Something of a launch that machine code does not do; the text says what."""


class OccurredError(UnsupportedError):
    """A launch did what the reference engine describes: an access to what is not there, lanes that wait for ever."""


class StrayedError(UnsupportedError):
    """A launch reached a buffer by an address that was made from pointers to others alone."""


def require_plain(index: int) -> None:
    """Raises UnsupportedError for what is written as a register and is none: where a function returns to."""
    if index >= RETURN_PLACE:
        raise UnsupportedError("where a function returns to")
