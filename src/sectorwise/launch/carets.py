"""Turns a message and the span that it speaks of into the error that a person reads, with a caret under the place."""

from __future__ import annotations

import difflib
import unicodedata
from typing import TYPE_CHECKING

from sectorwise.errors import LaunchError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.launch.config import Span

WINDOW_COLUMNS = 100
"""Longer launches are shown around the place only."""


def launch_error(message: str, span: Span | None, origin: str = "launch") -> LaunchError:
    """Return a LaunchError that says `message`, and shows where if a span is known.

    `origin` introduces the message where there is no span: the name of the case or the kernel.
    """
    if span is None:
        return LaunchError(f"{origin}: {message}")
    return LaunchError(f"{span.origin}: {message}\n{point_at(span)}")


def point_at(span: Span) -> str:
    """Return the launch text on a line of its own, and below it carets under the span."""
    text = "".join(character if character.isprintable() else " " for character in span.text)
    start = min(max(span.start, 0), len(text))
    end = min(max(span.end, start), len(text))
    first, last = 0, len(text)
    if last > WINDOW_COLUMNS:
        first = min(max(start - WINDOW_COLUMNS // 2, 0), max(last - WINDOW_COLUMNS, 0))
        last = min(first + WINDOW_COLUMNS, last)
    before = ("..." if first else "") + text[first:start]
    shown = ("..." if first else "") + text[first:last] + ("..." if last < len(text) else "")
    carets = "^" * max(_columns(text[start : min(end, last)]), 1)
    return f"  {shown}\n  {' ' * _columns(before)}{carets}"


def name_nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name that is most like `name`, else an empty text."""
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""


def _columns(text: str) -> int:
    """Return how many terminal columns a text takes: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
