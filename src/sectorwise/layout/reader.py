"""Turns a short text (a layout, an expression, a record) into tokens, and what is wrong with it into a caret."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.source import point_at

if TYPE_CHECKING:
    from collections.abc import Iterable

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

DEEPEST: Final = 50
"""Brackets inside brackets may go this deep."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of text: `kind` is number, name, symbol, other or end; `start` and `end` are columns."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        """How an error names it."""
        return "the end" if self.kind == "end" else f"'{self.text}'"


@dataclass(slots=True)
class Reader:
    """A place in the tokens of one text; `what` names the text in errors (`layout`, `expression`, `record`)."""

    what: str
    text: str
    tokens: tuple[Token, ...]
    index: int = 0
    depth: int = field(default=0)

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def at(self, *symbols: str) -> bool:
        """Whether one of these symbols comes next."""
        return self.token.kind == "symbol" and self.token.text in symbols

    def at_name(self, *names: str) -> bool:
        """Whether one of these names comes next."""
        return self.token.kind == "name" and self.token.text in names

    def take(self) -> Token:
        """The next token, moving past it; the end is never passed."""
        token = self.token
        if token.kind != "end":
            self.index += 1
        return token

    def accept(self, symbol: str) -> bool:
        """Move past `symbol` if it comes next; whether it did."""
        if self.at(symbol):
            self.index += 1
            return True
        return False

    def expect(self, symbol: str, wanted: str | None = None) -> Token:
        """The next token, which must be `symbol`."""
        if not self.at(symbol):
            raise self.error(f"expected {wanted or repr(symbol)}, got {self.token}")
        return self.take()

    def expect_end(self) -> None:
        """Raise unless all is read."""
        if self.token.kind != "end":
            raise self.error(f"expected the end, got {self.token}")

    def enter(self) -> None:
        """Go one bracket deeper."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise self.error(f"more than {DEEPEST} brackets inside one another")

    def leave(self) -> None:
        """Come out of a bracket."""
        self.depth -= 1

    def read_number(self, wanted: str = "a number") -> int:
        """The whole number that comes next: `128`, `0x80`, `4K`."""
        token = self.token
        if token.kind != "number":
            raise self.error(f"expected {wanted}, got {token}")
        digits = token.text.replace("_", "").replace("'", "")
        if digits[:2] in {"0x", "0X"}:
            value = int(digits, 16)
        elif digits[-1] in _SUFFIXES:
            value = int(digits[:-1]) * _SUFFIXES[digits[-1]]
        else:
            value = int(digits)
        if value > LARGEST_NUMBER:
            raise self.error("the number has more than 48 bits, and so has no address")
        self.take()
        return value

    def error(self, message: str, token: Token | None = None) -> ArgumentError:
        """The error that says `message`, with a caret under `token`, by default the next one."""
        place = token or self.token
        shown = point_at(self.text, place.start, max(place.end, place.start))
        return ArgumentError(f"{self.what}: {message}\n{textwrap.indent(shown, '  ')}")


def open_reader(text: str, what: str) -> Reader:
    """A reader at the beginning of `text`; raises `ArgumentError` for empty, overlong or unprintable text."""
    if not text.strip():
        raise ArgumentError(f"{what}: the text is empty")
    if len(text) > LONGEST_TEXT:
        raise ArgumentError(f"{what}: the text has {len(text):,} characters, more than {LONGEST_TEXT:,}")
    plain = "".join(character if character.isprintable() else " " for character in text)
    tokens = [
        Token(match.lastgroup or "other", match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(plain)
        if match.lastgroup != "space"
    ]
    end = tokens[-1].end
    return Reader(what, plain, (*tokens, Token("end", "", end, end)))


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name most like `name`, else what there is."""
    names = list(known)
    nearest = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"; did you mean '{nearest[0]}'?" if nearest else f"; known are {', '.join(names)}"
