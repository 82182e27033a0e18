"""Turns a finished report into bytes on stdout or in a file that is whole or not there."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.report.page import Page

if TYPE_CHECKING:
    from typing import TextIO

_DEFAULT_COLUMNS: Final = 80
_FEWEST_COLUMNS: Final = 40
_FILE_MODE: Final = 0o666


def describe_page(stream: TextIO) -> Page:
    """The page that a stream is: as wide as its terminal (80 in a pipe), coloured unless NO_COLOR is set."""
    terminal = stream.isatty()
    columns = shutil.get_terminal_size((_DEFAULT_COLUMNS, 24)).columns
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Page(width=max(columns, _FEWEST_COLUMNS), color=terminal and not plain, unicode=_shows_unicode(stream))


def _shows_unicode(stream: TextIO) -> bool:
    try:
        "─…·×".encode(stream.encoding or "ascii")  # noqa: RUF001 - the characters that reports use
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_text(text: str, path: Path | None) -> None:
    """Write the text to stdout, or to a file by way of a neighbour that is renamed: never half a file.

    Raises:
        ArgumentError: the file, or stdout, cannot be written.
        BrokenPipeError: who read stdout has seen enough.
    """
    if path is None:
        _print(text)
        return
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")  # a device or a pipe, which must not be replaced
        else:
            _replace_file(target, text)
    except OSError as error:
        message = f"cannot write {path}: {error.strerror}"
        raise ArgumentError(message) from None


def _print(text: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is still in the buffer would be tried, and complained about, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        message = f"cannot write to stdout: {error.strerror}"
        raise ArgumentError(message) from None


def _replace_file(target: Path, text: str) -> None:
    mode = target.stat().st_mode if target.exists() else _FILE_MODE & ~_read_umask()
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


def _read_umask() -> int:
    umask = os.umask(0o022)
    os.umask(umask)
    return umask
