"""Turns the source annotations of a listing into locations with their chain of inlining."""

from __future__ import annotations

import re

from msgspec import Struct

from sectorwise.binary.ir import Location

_ANNOTATION = re.compile(r'//## File "(?P<file>.*?)", line (?P<line>\d+)(?P<inlined> inlined at ".*?", line \d+)?\s*$')


class Frame(Struct, frozen=True):
    """One annotation line: a place, and whether the next annotation is where it was inlined."""

    file: str
    line: int
    is_inlined: bool


def read_frame(row: str) -> Frame | None:
    """Read a row such as `//## File "a.cu", line 5 inlined at "a.cu", line 9`; None if it is no annotation."""
    found = _ANNOTATION.search(row)
    if found is None:
        return None
    return Frame(found["file"], int(found["line"]), found["inlined"] is not None)


def join_frames(frames: list[Frame]) -> Location | None:
    """Make the location of the instructions that follow `frames`, innermost first; None where there are none."""
    if not frames:
        return None
    places = [Location(frame.file, frame.line) for frame in frames]
    return Location(places[0].file, places[0].line, tuple(places[1:]))
