"""Turns a source and its include folders into the person's own headers, so that a changed header is a changed source.

Only names are followed, conditions are not evaluated: the result may hold a header too many, never one too few.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_INCLUDE = re.compile(
    rb"^[ \t]*#[ \t]*include[ \t]*(?:\"(?P<quoted>[^\"\n]+)\"|<(?P<angled>[^>\n]+)>|(?P<computed>\w))", re.MULTILINE
)
_MOST_HEADERS = 10_000


@dataclass(frozen=True, slots=True)
class Includes:
    """The headers that were found, by path, with their bytes; not `complete` where a macro computes a name.

    `spelled` maps a header's path to the name by which it is included (`tools/check.h`).
    """

    headers: tuple[tuple[str, bytes], ...]
    complete: bool
    spelled: dict[str, str] = field(default_factory=dict)


def find_includes(text: bytes, folder: Path, include_folders: tuple[Path, ...]) -> Includes:
    """Find the headers that `text`, in `folder`, includes directly or through others, in `folder` or `include_folders`.

    Headers that are in none of these folders are the compiler's own and left to its version.
    """
    found: dict[Path, bytes] = {}
    spelled: dict[str, str] = {}
    complete = True
    waiting: list[tuple[bytes, Path]] = [(text, folder)]
    while waiting and len(found) < _MOST_HEADERS:
        content, home = waiting.pop()
        for match in _INCLUDE.finditer(content):
            name = match["quoted"] or match["angled"]
            if name is None:
                complete = False
                continue
            places = [home, *include_folders] if match["quoted"] else [*include_folders]
            header = _find_header(name.decode(errors="replace"), places)
            if header is None or header in found:
                continue
            found[header] = header.read_bytes()
            spelled[str(header)] = name.decode(errors="replace")
            waiting.append((found[header], header.parent))
    headers = tuple((str(path), found[path]) for path in sorted(found))
    return Includes(headers, complete and len(found) < _MOST_HEADERS, spelled)


def _find_header(name: str, folders: list[Path]) -> Path | None:
    for folder in folders:
        path = folder / name
        try:
            if path.is_file():
                return path.resolve()
        except OSError:
            continue
    return None
