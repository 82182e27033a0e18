"""Turns a short text (a launch, a layout, an expression, a record) into tokens, and a cursor that walks over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from sectorwise.errors import SectorwiseError

LONGEST_QUOTE: Final = 40
"""Longer words are cut in the text of an error."""

DEEPEST: Final = 50
"""Brackets inside brackets, and names defined by names, may go this deep."""


class Token(Struct, frozen=True):
    """A piece of text: `kind` is the name of the pattern's group, or end; `start` and `end` are columns."""

    kind: str
    text: str
    start: int
    end: int

    def __str__(self) -> str:
        """How an error names it."""
        if self.kind == "end":
            return "the end"
        return f"'{self.text}'" if len(self.text) <= LONGEST_QUOTE else f"'{self.text[:LONGEST_QUOTE]}...'"


class Cursor(Struct):
    """A place in the tokens of one text; `index` moves forward as they are taken, `depth` counts open brackets.

    `origin` says in errors where the text comes from (`--launch`, `layout`), and `complain` makes them.
    """

    text: str
    origin: str
    tokens: tuple[Token, ...]
    complain: Callable[[Cursor, str, Token], SectorwiseError]
    index: int = 0
    depth: int = 0

    @property
    def token(self) -> Token:
        """The token that comes next."""
        return self.tokens[self.index]

    @property
    def following(self) -> Token:
        """The token after the next one."""
        return self.tokens[min(self.index + 1, len(self.tokens) - 1)]

    def at_index(self, index: int) -> Cursor:
        """Another cursor over the same text, before token `index`."""
        return Cursor(self.text, self.origin, self.tokens, self.complain, index)

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
        """The next token, which must be `symbol`; the error says `wanted` otherwise."""
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

    def error(self, message: str, token: Token | None = None) -> SectorwiseError:
        """The error that says `message` of `token`, by default the next one."""
        return self.complain(self, message, token or self.token)


def split_tokens(pattern: re.Pattern[str], text: str, start: int = 0) -> tuple[Token, ...]:
    """The tokens of `text` from column `start` on, without those of the group `space`, closed by an `end`."""
    tokens = [
        Token(match.lastgroup or "other", match.group(), match.start(), match.end())
        for match in pattern.finditer(text, start)
        if match.lastgroup != "space"
    ]
    # The caret for something missing at the end stands right behind the last thing written.
    end = tokens[-1].end if tokens else len(text)
    return (*tokens, Token("end", "", end, end))
