"""Turns a CUDA source into the same source with other `__launch_bounds__` for one kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.remedies.arrays import blank_comments

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOUNDS: Final = re.compile(r"__launch_bounds__\s*\(")
_ENDS_OF_DECLARATIONS: Final = ";}"


def write_launch_bounds(text: str, kernel: str, threads_per_block: int, min_blocks: int) -> str | None:
    """The source with `__launch_bounds__(threads_per_block, min_blocks)` for a kernel, in place of what it has.

    All declarations of the kernel's plain name change, each on its own lines; None where there is none, as for a name
    that a macro makes.
    """
    plain = blank_comments(text)
    edits = [edit for name in _find_names(plain, kernel) for edit in _list_edits(plain, name)]
    if not edits:
        return None
    bounds = f"__launch_bounds__({threads_per_block}, {min_blocks}) "
    parts, position = [], 0
    for start, end, is_name in sorted(edits):
        parts += [text[position:start], bounds if is_name else re.sub(r"[^\n]", " ", text[start:end])]
        position = end
    return "".join([*parts, text[position:]])


def _find_names(plain: str, kernel: str) -> Iterator[int]:
    """Where the name stands in declarations and definitions of the kernel."""
    for found in re.finditer(rf"\b{re.escape(kernel)}\s*\(", plain):
        if "__global__" in plain[_find_start(plain, found.start()) : found.start()]:
            yield found.start()


def _find_start(plain: str, position: int) -> int:
    """Where the declaration around a position begins: after the last end of another, or after a brace's opening."""
    return max(plain.rfind(sign, 0, position) for sign in _ENDS_OF_DECLARATIONS + "{") + 1


def _list_edits(plain: str, name: int) -> Iterator[tuple[int, int, bool]]:
    """Bounds to blank, as start and end, and the place before the name where the new ones go."""
    start = _find_start(plain, name)
    for found in _BOUNDS.finditer(plain, start, name):
        yield found.start(), _find_closing(plain, found.end()) + 1, False
    yield name, name, True


def _find_closing(plain: str, position: int) -> int:
    depth = 1
    for at in range(position, len(plain)):
        depth += {"(": 1, ")": -1}.get(plain[at], 0)
        if depth == 0:
            return at
    return len(plain) - 1
