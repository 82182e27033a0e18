"""Turns reports of progress into a bar on a terminal, and into nothing in a pipe."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHOW_AFTER_SECONDS: Final = 0.5
"""Work that ends sooner shows no bar, which would only flicker."""

_REDRAW_SECONDS: Final = 0.1
_BAR_COLUMNS: Final = 30
_WIPE_LINE: Final = "\r\x1b[2K"


@contextmanager
def show_progress(label: str) -> Iterator[Callable[[int, int], None] | None]:
    """Give a function `(done, total)` that draws a bar on stderr, or None where stderr is no terminal.

    The bar is wiped at the end, so that the report stands alone.
    """
    if not sys.stderr.isatty():
        yield None
        return
    started = time.monotonic()
    drawn_at = 0.0

    def report(done: int, total: int) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - started >= _SHOW_AFTER_SECONDS and now - drawn_at >= _REDRAW_SECONDS:
            drawn_at = now
            sys.stderr.write(_WIPE_LINE + draw_bar(label, done, total, now - started))
            sys.stderr.flush()

    try:
        yield report
    finally:
        if drawn_at:
            sys.stderr.write(_WIPE_LINE)
            sys.stderr.flush()


def draw_bar(label: str, done: int, total: int, elapsed_seconds: float) -> str:
    """`executing [#####     ]  50 %, 12 s left`; no time is promised before something is done."""
    share = min(done / total, 1.0) if total else 1.0
    filled = "#" * int(share * _BAR_COLUMNS)
    left = f", {elapsed_seconds * (1 - share) / share:.0f} s left" if share > 0 else ""
    return f"{label} [{filled:<{_BAR_COLUMNS}}] {int(share * 100):>3} %{left}"
