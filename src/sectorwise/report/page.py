"""Turns text into text that a given terminal can show: coloured or plain, Unicode or ASCII, cut to its width."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from enum import Enum


class Role(Enum):
    """What a piece of text is for; the value is its ANSI style."""

    TITLE = "1"
    QUIET = "2"
    GOOD = "32"
    FAIR = "33"
    BAD = "31"
    WRONG = "1;31"
    UNKNOWN = "35"


_ASCII = str.maketrans({"─": "-", "…": "~", "·": "-", "×": "x"})  # noqa: RUF001 - the multiplication sign is meant

_UNIT = re.compile(r"(?<=\d) (?=(?:[num]?s|[KMGT]?i?B|[KMGT]B/s|%)(?![\w/]))")
_LEAST_WIDTH = 40


@dataclass(frozen=True, slots=True)
class Page:
    """What the report is shown on: columns, whether ANSI colours are wanted, whether it shows more than ASCII."""

    width: int = 80
    color: bool = False
    unicode: bool = True


def paint(page: Page, role: Role, text: str) -> str:
    """The text in the style of its role, or unchanged on a page without colours; blank text stays blank."""
    if not page.color or not text.strip():
        return text
    return f"\x1b[{role.value}m{text}\x1b[0m"


def tidy(page: Page, text: str) -> str:
    """The text without what a terminal would obey or garble: tabs, control characters and, on ASCII pages, the rest."""
    shown = "".join(_replace_unprintable(character) for character in text.expandtabs(4))
    if page.unicode:
        return shown
    return shown.translate(_ASCII).encode("ascii", "replace").decode("ascii")


def _replace_unprintable(character: str) -> str:
    if character.isprintable():
        return character
    return " " if unicodedata.category(character) == "Zs" else "?"


def clip(page: Page, text: str, columns: int) -> str:
    """The tidied text in at most `columns` columns, its end replaced by an ellipsis where it is cut."""
    shown = tidy(page, text)
    if measure(shown) <= columns:
        return shown
    while shown and measure(shown) > columns - 1:
        shown = shown[:-1]
    return shown.rstrip() + tidy(page, "…")


def fold(page: Page, line: str) -> list[str]:
    """The tidied line in as many lines as the page needs; what follows the first is indented by four more columns."""
    indent = len(line) - len(line.lstrip())
    return _break_lines(tidy(page, line), page.width, "", " " * (indent + 4))


def wrap(page: Page, text: str, indent: int) -> list[str]:
    """The tidied text in as many lines as it takes, indented; what follows the first by two more columns."""
    return _break_lines(tidy(page, text), max(page.width, _LEAST_WIDTH), " " * indent, " " * (indent + 2))


def _break_lines(text: str, width: int, first: str, following: str) -> list[str]:
    """Lines that end neither within a word nor between a number and its unit."""
    glued = _UNIT.sub("\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(glued, width, initial_indent=first, subsequent_indent=following, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def measure(text: str) -> int:
    """Columns that a terminal gives to the text: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
        for character in text
    )
