"""Turns a CUDA source into the shared arrays that it declares, and their extents and indices into other ones."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DECLARATION: Final = re.compile(
    r"__shared__\s+(?:(?:__align__|alignas)\s*\([^()]*\)\s*)*(?P<type>[A-Za-z_][\w:]*(?:\s+[A-Za-z_][\w:]*)*?)\s+(?=\w+\s*\[)"
)
_DECLARATOR: Final = re.compile(r"\s*(?P<name>\w+)\s*(?=\[)")
_COMMENT: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_CONSTANT: Final = r"(?:constexpr\s+(?:\w+\s+)*{name}\s*=\s*|#\s*define\s+{name}\s+)(\d+)\b"

SIZES_BYTES: Final = {
    **dict.fromkeys(("char", "signed char", "unsigned char", "uint8_t", "int8_t", "bool"), 1),
    **dict.fromkeys(("short", "unsigned short", "half", "__half", "__nv_bfloat16", "uint16_t", "int16_t"), 2),
    **dict.fromkeys(("int", "unsigned", "unsigned int", "float", "uint32_t", "int32_t", "half2", "__half2"), 4),
    **dict.fromkeys(("double", "long long", "unsigned long long", "float2", "int2", "uint64_t", "int64_t"), 8),
    **dict.fromkeys(("float4", "int4", "uint4", "double2"), 16),
}
"""Element types whose size is known from their name."""


@dataclass(frozen=True, slots=True)
class SharedArray:
    """A declared array: element type, extents as they are written, and where its name and its scope lie in the text."""

    name: str
    type: str
    extents: tuple[str, ...]
    start: int
    end: int
    """Of name and extents: `tile[32][33]`."""
    scope_end: int
    dynamic: bool = False
    """Declared `extern`: its extent is empty, and its size comes with the launch."""

    @property
    def element_bytes(self) -> int | None:
        """Size of an element, None for a type that is not known."""
        return SIZES_BYTES.get(self.type)


def find_shared_arrays(text: str) -> tuple[SharedArray, ...]:
    """The arrays of a source in the order of their declarations."""
    plain = blank_comments(text)
    arrays = []
    for found in _DECLARATION.finditer(plain):
        dynamic = re.search(r"\bextern\s+$", plain[: found.start()]) is not None
        scope_end = _find_scope_end(plain, found.start())
        position = found.end()
        while (declarator := _DECLARATOR.match(plain, position)) is not None:
            extents, end = read_brackets(plain, declarator.end())
            name = declarator["name"]
            arrays.append(SharedArray(name, found["type"], extents, declarator.start("name"), end, scope_end, dynamic))
            comma = re.match(r"\s*,", plain[end:])
            if comma is None:
                break
            position = end + comma.end()
    return tuple(arrays)


def blank_comments(text: str) -> str:
    """The text with comments and strings replaced by as many blanks."""
    return _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def read_brackets(text: str, position: int) -> tuple[tuple[str, ...], int]:
    """The contents of the `[...]` groups from a position on, and where they end."""
    groups = []
    while (opening := re.match(r"\s*\[", text[position:])) is not None:
        first = position + opening.end()
        last = _find_closing(text, first)
        if last is None:
            break
        groups.append(text[first:last])
        position = last + 1
    return tuple(groups), position


def rewrite_extents(text: str, array: SharedArray, extents: tuple[str, ...]) -> str:
    """The source with other extents in the array's declaration."""
    written = array.name + "".join(f"[{extent}]" for extent in extents)
    return text[: array.start] + written + text[array.end :]


def rewrite_indices(
    text: str, array: SharedArray, change: Callable[[tuple[str, ...]], tuple[str, ...] | None]
) -> str | None:
    """The source with every use of the array indexed otherwise; None where `change` gives None for a use."""
    plain = blank_comments(text)
    body = text[array.end : array.scope_end]
    changed = _rewrite_uses(body, plain[array.end : array.scope_end], array.name, change)
    return None if changed is None else text[: array.end] + changed + text[array.scope_end :]


def _rewrite_uses(
    text: str, plain: str, name: str, change: Callable[[tuple[str, ...]], tuple[str, ...] | None]
) -> str | None:
    parts, position = [], 0
    for use in re.finditer(rf"(?<![\w.>]){name}\b", plain):
        if use.start() < position:
            continue
        groups, end = read_brackets(plain, use.end())
        indices = change(groups)
        if indices is None:
            return None
        parts += [text[position : use.end()], "".join(f"[{index}]" for index in indices)]
        position = end
    return "".join([*parts, text[position:]])


def resolve_constant(text: str, expression: str) -> int | None:
    """The number that an extent stands for: written, or the name of a constexpr or macro with a number."""
    word = expression.strip()
    if word.isdecimal():
        return int(word)
    if not word.isidentifier():
        return None
    found = re.search(_CONSTANT.format(name=re.escape(word)), text)
    return None if found is None else int(found[1])


def add_to(expression: str, number: int) -> str:
    """`33` for 32 and 1, `kTile + 1` for a name."""
    word = expression.strip()
    return str(int(word) + number) if word.isdecimal() else f"{word} + {number}"


def _find_closing(text: str, position: int) -> int | None:
    depth = 0
    for at in range(position, len(text)):
        if text[at] in "[(":
            depth += 1
        elif text[at] in "])":
            if depth == 0:
                return at
            depth -= 1
    return None


def _find_scope_end(text: str, position: int) -> int:
    """Where the block ends in which a position lies."""
    depth = 0
    for at in range(position, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            if depth == 0:
                return at
            depth -= 1
    return len(text)
