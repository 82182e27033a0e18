"""Turns launch text into a cursor over its tokens, which have paths among them, and tokens into spans."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import Span
from sectorwise.tokens import Cursor, split_tokens

if TYPE_CHECKING:
    from sectorwise.errors import LaunchError
    from sectorwise.tokens import Token

_TOKEN: Final = re.compile(
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


def open_cursor(text: str, origin: str, start: int = 0) -> Cursor:
    """A cursor over the tokens of `text` from column `start` on; its errors are LaunchErrors with carets."""
    return Cursor(text, origin, split_tokens(_TOKEN, text, start), _complain)


def find_span(cursor: Cursor, first: Token) -> Span:
    """The span from `first` to the last token taken."""
    last = cursor.tokens[cursor.index - 1] if cursor.index else first
    return Span(cursor.text, first.start, max(first.end, last.end), cursor.origin)


def find_span_of(cursor: Cursor, token: Token) -> Span:
    """The span of one token."""
    return Span(cursor.text, token.start, token.end, cursor.origin)


def _complain(cursor: Cursor, message: str, token: Token) -> LaunchError:
    return launch_error(message, find_span_of(cursor, token))
