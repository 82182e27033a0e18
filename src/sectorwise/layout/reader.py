"""Turns the text of a layout, an expression or a record into a cursor over its tokens, and tokens into numbers."""

from __future__ import annotations

import difflib
import re
import textwrap
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.source import point_at
from sectorwise.tokens import Cursor, split_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.tokens import Token

_TOKEN: Final = re.compile(
    r"""
      (?P<number> 0[xX][0-9a-fA-F]+ | \d[\d_']*[KMG]?(?![A-Za-z]) )
    | (?P<name>   [A-Za-z_]\w* )
    | (?P<symbol> << | >> | // | <= | >= | == | != | && | \|\| | [-+*/%&|^~!<>?:,;(){}\[\]=] )
    | (?P<space>  \s+ )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_SUFFIXES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
LONGEST_TEXT: Final = 2000
LARGEST_NUMBER: Final = (1 << 48) - 1
"""No address of a GPU has more bits."""


def open_reader(text: str, what: str) -> Cursor:
    """A cursor at the beginning of `text`, which errors call `what` (`layout`, `expression`, `record`).

    Raises `ArgumentError` for empty or overlong text; unprintable characters count as spaces.
    """
    if not text.strip():
        raise ArgumentError(f"{what}: the text is empty")
    if len(text) > LONGEST_TEXT:
        raise ArgumentError(f"{what}: the text has {len(text):,} characters, more than {LONGEST_TEXT:,}")
    plain = "".join(character if character.isprintable() else " " for character in text)
    return Cursor(plain, what, split_tokens(_TOKEN, plain), _complain)


def read_number(reader: Cursor, wanted: str = "a number") -> int:
    """The whole number that comes next: `128`, `0x80`, `4K`."""
    token = reader.token
    if token.kind != "number":
        raise reader.error(f"expected {wanted}, got {token}")
    digits = token.text.replace("_", "").replace("'", "")
    if digits[:2] in {"0x", "0X"}:
        value = int(digits, 16)
    elif digits[-1] in _SUFFIXES:
        value = int(digits[:-1]) * _SUFFIXES[digits[-1]]
    else:
        value = int(digits)
    if value > LARGEST_NUMBER:
        raise reader.error("the number has more than 48 bits, and so has no address")
    reader.take()
    return value


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name most like `name`, else what there is."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{nearest[0]}'?" if nearest else f"; known are {', '.join(names)}"


def _complain(reader: Cursor, message: str, token: Token) -> ArgumentError:
    shown = point_at(reader.text, token.start, max(token.end, token.start))
    return ArgumentError(f"{reader.origin}: {message}\n{textwrap.indent(shown, '  ')}")
