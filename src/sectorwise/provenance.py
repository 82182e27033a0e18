"""Turns where a number comes from into data that travels with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Number = int | float | str | tuple[int, ...]
"""What a data file may hold as a value: a number, a memory type, or a tuple of sizes."""


class Basis(StrEnum):
    """How a source was used: `recalled` is a known document that was not read again, `assumed` a mere default."""

    MEASURED = "measured"
    READ = "read"
    DERIVED = "derived"
    RECALLED = "recalled"
    ASSUMED = "assumed"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a number comes from."""

    title: str
    basis: Basis


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another value that another source gives for the same quantity."""

    value: Number
    source: Source
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Provenance:
    """The source of one field, what has to be said of it, and what other sources say instead."""

    field: str
    source: Source
    note: str | None = None
    alternatives: tuple[Alternative, ...] = ()
