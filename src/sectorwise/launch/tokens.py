"""Turns launch text into tokens that know where they stand, and a cursor that walks over them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import Span

if TYPE_CHECKING:
    from sectorwise.errors import LaunchError

_TOKEN = re.compile(
    r"""
      (?P<number> 0[xX]\w+ | (?:\d|\.\d) (?: [eE][+-](?=\d) | ['\w.] )* )
    | (?P<name>   [A-Za-z_]\w* )
    | (?P<path>   @ (?: "(?:[^"\\]|\\.)*" | [^\s,;(){}\[\]"]+ ) )
    | (?P<symbol> <<< | >>> | << | >> | // | [-+*/%=,;(){}\[\]] )
    | (?P<space>  \s+ )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)


LONGEST_QUOTE = 40
"""Longer words are cut in the text of an error."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of launch text: `kind` is number, name, path, symbol, other or end; `start` and `end` are columns."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        """Return how an error names this token."""
        if self.kind == "end":
            return "the end"
        return f"'{self.text}'" if len(self.text) <= LONGEST_QUOTE else f"'{self.text[:LONGEST_QUOTE]}...'"


def split_tokens(text: str, start: int = 0) -> tuple[Token, ...]:
    """Return the tokens of `text` from column `start` on, without spaces, closed by an `end` token."""
    tokens = [
        Token(match.lastgroup or "other", match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text, start)
        if match.lastgroup != "space"
    ]
    # The caret for something missing at the end stands right behind the last thing written.
    end = tokens[-1].end if tokens else len(text)
    return (*tokens, Token("end", "", end, end))


class Cursor:
    """A place in the tokens of one launch text; `index` moves forward as they are taken."""

    def __init__(self, text: str, origin: str, tokens: tuple[Token, ...], index: int = 0) -> None:
        """Stand before token `index`."""
        self.text = text
        self.origin = origin
        self.tokens = tokens
        self.index = index

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def at_index(self, index: int) -> Cursor:
        """Return another cursor over the same text, before token `index`."""
        return Cursor(self.text, self.origin, self.tokens, index)

    def at(self, *symbols: str) -> bool:
        """Whether one of these symbols comes next."""
        return self.token.kind == "symbol" and self.token.text in symbols

    def take(self) -> Token:
        """Return the next token and move past it; the end is never passed."""
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
        """Return the next token, which must be `symbol`; LaunchError says `wanted` otherwise."""
        if not self.at(symbol):
            raise self.error(f"expected {wanted or repr(symbol)}, got {self.token}")
        return self.take()

    def span(self, first: Token) -> Span:
        """Return the span from `first` to the last token taken."""
        last = self.tokens[self.index - 1] if self.index else first
        return Span(self.text, first.start, max(first.end, last.end), self.origin)

    def span_of(self, token: Token) -> Span:
        """Return the span of one token."""
        return Span(self.text, token.start, token.end, self.origin)

    def error(self, message: str, token: Token | None = None) -> LaunchError:
        """Return the error that says `message` with a caret under `token`, by default the next one."""
        return launch_error(message, self.span_of(token or self.token))
