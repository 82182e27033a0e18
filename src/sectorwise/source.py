"""Turns source files into text and lines, and places in a text into carets under them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from sectorwise.errors import ArgumentError

_TAB_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Source:
    """A source file: the name that reports give it, its text, and its lines (the first is number 1)."""

    name: str
    text: str
    lines: tuple[str, ...]

    def line(self, number: int) -> str | None:
        """Return line `number` without its end, or None where the file is shorter."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else None


def make_source(name: str, text: str) -> Source:
    """Make a source from text that is already at hand; a line ends at CR LF, LF or CR only, as in compilers."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = unified.split("\n")
    return Source(name, text, tuple(lines[:-1] if lines and not lines[-1] else lines))


def read_bytes(path: Path) -> bytes:
    """Read a file that a person named.

    Raises:
        ArgumentError: it is missing, unreadable or no file.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ArgumentError(f"there is no file {path}") from None
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read: {error.strerror}") from None


def read_source(path: Path, name: str | None = None) -> Source:
    """Read a source file as UTF-8 (a byte-order mark is dropped); bytes that are not UTF-8 are read as Latin-1.

    Compilers take any byte in comments and strings, so the encoding is no reason to refuse a file.

    Raises:
        ArgumentError: the file is missing, unreadable or no file, or has a byte 0, where compilers end a text.
    """
    content = read_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    before, zero, _ = text.partition("\0")
    if zero:
        raise ArgumentError(f"{path}:{before.count(chr(10)) + 1}: a byte 0; compilers would stop reading there")
    return make_source(name or str(path), text)


def shorten_path(file: str, folder: Path | None = None) -> str:
    """Return a path as a person would write it: relative to `folder` (default: the working directory) if inside it."""
    start = folder or Path.cwd()
    try:
        return Path(file).relative_to(start).as_posix()
    except ValueError:
        return file.replace(os.sep, "/")


def point_at(text: str, start: int, end: int | None = None) -> str:
    """Return the line of `text` that holds character `start`, with carets under `start` up to `end` (exclusive).

    The caret line is aligned for a fixed-width font, tabs as four columns; at least one caret is drawn, and none past
    the end of the line.

        >>> print(point_at("transpose<<<(16, x)>>>", 17, 18))
        transpose<<<(16, x)>>>
                         ^
    """
    start = min(max(start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    first = start - line_start
    last = min(max((end if end is not None else start + 1) - line_start, first + 1), max(len(line), first + 1))
    blank = len(line[:first].expandtabs(_TAB_COLUMNS))
    width = max(1, len(line[:last].expandtabs(_TAB_COLUMNS)) - blank)
    return f"{line.expandtabs(_TAB_COLUMNS).rstrip()}\n{' ' * blank}{'^' * width}"
