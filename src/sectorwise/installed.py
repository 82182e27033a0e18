"""Turns the name of a package from PyPI into its release and the files that it put on this machine.

`importlib.metadata` tells the same, and takes twenty times as long, most of it to load.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from msgspec import Struct

_FOLDER_ENDING = ".dist-info"


class Installed(Struct, frozen=True):
    """A package that is installed: `13.0.88`, its name with it, and where its files are, relative to `folder`."""

    name: str
    release: str
    folder: Path
    files: tuple[str, ...]

    @property
    def build(self) -> str:
        """What tells it from other releases: `nvidia-cuda-nvrtc 13.0.88`."""
        return f"{self.name} {self.release}"


def find_installed(name: str) -> Installed | None:
    """The first package of this name (`nvidia-cuda-nvrtc`) on Python's path that lists its files, None if none does."""
    beginning = f"{name.replace('-', '_')}-"
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as listed:
                entries = [entry.name for entry in listed]
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(beginning) and entry.endswith(_FOLDER_ENDING):
                record = Path(folder, entry, "RECORD")
                try:
                    rows = record.read_text(encoding="utf-8", errors="replace").splitlines()
                except OSError:
                    continue
                release = entry.removeprefix(beginning).removesuffix(_FOLDER_ENDING)
                return Installed(name, release, Path(folder), tuple(row.partition(",")[0] for row in rows))
    return None
