"""Turns what stands for a source on the command line into its file and the kernel that is named with it."""

from __future__ import annotations

from pathlib import Path

_SEPARATOR = "::"


def split_name(path: Path) -> tuple[Path, str | None]:
    """Return the file, and the kernel's name of `file.py::name`, None where there is none."""
    file, separator, name = str(path).rpartition(_SEPARATOR)
    return (Path(file), name) if separator else (path, None)
