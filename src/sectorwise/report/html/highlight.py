"""Turns the text of a source file into coloured pieces, line by line."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

Line = list[str]
"""Pieces of a line: a class (empty for plain text), then its text, then the next class, and so on."""

_CLASSES: Final = (
    ("Comment.Preproc", "p"),
    ("Comment", "c"),
    ("Keyword.Type", "t"),
    ("Keyword", "k"),
    ("Literal.String", "s"),
    ("Literal.Number", "n"),
    ("Name.Function", "f"),
    ("Name.Builtin", "b"),
)
"""Kinds of tokens that are told apart, with their class in the page's style; the first that fits counts."""


def highlight(text: str) -> list[Line]:
    """The lines of a CUDA source; their pieces joined are the text, whatever it holds."""
    lines: list[Line] = [[]]
    for kind, value in _make_lexer().get_tokens(text):
        name = _classify(kind)
        for number, piece in enumerate(value.split("\n")):
            if number:
                lines.append([])
            if piece:
                _append(lines[-1], name, piece)
    wanted = text.split("\n")
    # The lexer is free to drop or add line breaks at the end, and pieces that it cannot read must not be lost.
    if len(lines) < len(wanted):
        lines += [[] for _ in range(len(wanted) - len(lines))]
    return [
        pieces if "".join(pieces[1::2]) == line else ["", line] for pieces, line in zip(lines, wanted, strict=False)
    ]


def _append(line: Line, name: str, piece: str) -> None:
    if line and line[-2] == name:
        line[-1] += piece
    else:
        line += [name, piece]


@cache
def _make_lexer() -> Lexer:
    from pygments.lexers.c_like import CudaLexer

    return CudaLexer(stripnl=False, stripall=False)


@cache
def _classify(kind: _TokenType) -> str:
    path = str(kind).removeprefix("Token.")
    return next((name for prefix, name in _CLASSES if path.startswith(prefix)), "")
