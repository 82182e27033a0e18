"""Turns a message and the span that it speaks of into the error that a person reads, with a caret under the place."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING

from sectorwise.errors import LaunchError
from sectorwise.source import point_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.launch.config import Span

WINDOW_COLUMNS = 100
"""Longer launches are shown around the place only."""


def launch_error(message: str, span: Span | None, origin: str = "launch") -> LaunchError:
    """Return a LaunchError that says `message`, and shows where if a span is known.

    `origin` introduces the message where there is no span: the name of the case or the kernel.
    """
    first = "".join(_escape(character) for character in f"{span.origin if span else origin}: {message}")
    return LaunchError(f"{first}\n{show_span(span)}" if span else first)


def show_span(span: Span) -> str:
    """Return the launch text, indented on a line of its own, and below it carets under the span."""
    text = "".join(character if character.isprintable() else " " for character in span.text)
    start = min(max(span.start, 0), len(text))
    first, last = 0, len(text)
    if last > WINDOW_COLUMNS:
        first = min(max(start - WINDOW_COLUMNS // 2, 0), last - WINDOW_COLUMNS)
        last = first + WINDOW_COLUMNS
    before, after = "..." if first else "", "..." if last < len(text) else ""
    shift = len(before) - first
    shown = point_at(f"{before}{text[first:last]}{after}", start + shift, min(max(span.end, start), last) + shift)
    return textwrap.indent(shown, "  ")


def name_nearest(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the known name that is most like `name`, else an empty text."""
    nearest = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean '{nearest[0]}'?" if nearest else ""


def _escape(character: str) -> str:
    """Return a character as it is, or its escape where a terminal would act on it."""
    return character if character.isprintable() else ascii(character)[1:-1]
