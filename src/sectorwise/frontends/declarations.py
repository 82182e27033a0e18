"""Turns the text of a CUDA C++ file into its declarations at namespace scope, without evaluating anything.

It is a reader of outlines, not of C++: brackets are matched, comments and literals skipped, directives kept apart. At
`#else` the nesting is taken back to where it was at `#if`, so that branches that open the same brace do not add up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from sectorwise.tokens import Token

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN = re.compile(
    r"""
    (?P<directive>^[ \t]*\#(?:[^\n\\]|\\(?:\r?\n|.)|\\$)*)
    |(?P<blank>\s|//(?:[^\n\\]|\\(?:\r?\n|.)|\\$)*|/\*.*?(?:\*/|\Z))
    |(?P<literal>(?:u8|[uUL])?R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)"|(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"
        |(?:u8|[uUL])?'(?:\\.|[^'\\\n])*'|\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<symbol><<<|>>>|::|->|&&|\S)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_CONDITIONAL = re.compile(r"\s*#\s*(?P<word>ifdef|ifndef|if|elif|elifdef|elifndef|else|endif)\b")
_MACRO = re.compile(r"\s*#\s*define\s+(?P<name>\w+)(?P<rest>.*)", re.DOTALL)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_ATTRIBUTES = frozenset(
    {"__align__", "alignas", "__attribute__", "__launch_bounds__", "__declspec", "__cluster_dims__", "__maxnreg__"}
    | {"__block_size__", "noexcept", "decltype", "explicit", "requires", "throw"}
)
_TYPE_WORDS = frozenset({"struct", "class", "union", "enum"})


class DeclarationKind(StrEnum):
    """What a declaration is, as far as it matters for keeping it."""

    FUNCTION = "function"
    TYPE = "type"
    OTHER = "other"
    DIRECTIVE = "directive"
    OPENING = "opening"
    """`namespace x {`, `extern "C" {`, and the braces that close them."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration: its words, the names that it introduces, and where its body begins among the words, if it has."""

    kind: DeclarationKind
    tokens: tuple[Token, ...]
    names: tuple[str, ...]
    body: int | None = None

    @property
    def start(self) -> int:
        """First character."""
        return self.tokens[0].start

    @property
    def end(self) -> int:
        """Character after the last one."""
        return self.tokens[-1].end

    @property
    def head(self) -> tuple[Token, ...]:
        """The words before the body."""
        return self.tokens if self.body is None else self.tokens[: self.body]

    def words(self) -> frozenset[str]:
        """The identifiers in it."""
        return frozenset(token.text for token in self.tokens if token.kind == "name")


def split_tokens(text: str) -> list[Token]:
    """Return the words of a text (directive, literal, name or symbol), blanks and comments left out."""
    return [
        Token(found.lastgroup if found.lastgroup != "mark" else "literal", found[0], found.start(), found.end())
        for found in _TOKEN.finditer(text)
        if found.lastgroup is not None and found["blank"] is None
    ]


def read_macro(directive: str) -> tuple[str, str] | None:
    """Return name and replacement of a `#define`, None for other directives."""
    found = _MACRO.match(directive)
    return None if found is None else (found["name"], found["rest"])


def read_declarations(text: str) -> tuple[Declaration, ...] | None:
    """Return the declarations at namespace scope in their order; None where the brackets do not match."""
    tokens = split_tokens(text)
    partners = match_brackets(tokens)
    return None if partners is None else tuple(_split(tokens, partners, 0, len(tokens)))


def match_brackets(tokens: Sequence[Token]) -> dict[int, int] | None:
    """Return the index of the closing bracket for that of each opening one, None where they do not match.

    In the branches of `#if` that were left for another one, unmatched brackets are passed over.
    """
    partners: dict[int, int] = {}
    open_brackets: list[int] = []
    conditions: list[list[int]] = []
    for index, token in enumerate(tokens):
        match token.kind:
            case "directive":
                open_brackets = _follow_condition(token, open_brackets, conditions)
            case "symbol" if token.text in _PAIRS:
                open_brackets.append(index)
            case "symbol" if token.text in ")]}":
                if not open_brackets or _PAIRS[tokens[open_brackets[-1]].text] != token.text:
                    return None
                # Of two branches that close the same bracket the last one counts.
                partners[open_brackets.pop()] = index
    return None if open_brackets else partners


def _follow_condition(directive: Token, open_brackets: list[int], conditions: list[list[int]]) -> list[int]:
    found = _CONDITIONAL.match(directive.text)
    if found is None:
        return open_brackets
    match found["word"]:
        case "if" | "ifdef" | "ifndef":
            conditions.append(list(open_brackets))
        case "endif":
            if conditions:
                conditions.pop()
        case _:
            return list(conditions[-1]) if conditions else open_brackets
    return open_brackets


def _split(tokens: Sequence[Token], partners: dict[int, int], first: int, last: int) -> list[Declaration]:
    found: list[Declaration] = []
    at = first
    while at < last:
        token = tokens[at]
        if token.kind == "directive":
            found.append(Declaration(DeclarationKind.DIRECTIVE, (token,), ()))
            at += 1
        elif token.text == ";":
            at += 1
        elif (opening := _find_scope(tokens, at, last)) is not None:
            closing = min(partners.get(opening, last - 1), last - 1)
            found.append(Declaration(DeclarationKind.OPENING, tuple(tokens[at : opening + 1]), ()))
            found += _split(tokens, partners, opening + 1, closing)
            found.append(Declaration(DeclarationKind.OPENING, (tokens[closing],), ()))
            at = closing + 1
        else:
            end, body = _find_end(tokens, partners, at, last)
            found.append(_describe(tuple(tokens[at:end]), None if body is None else body - at))
            at = end
    return found


def _find_scope(tokens: Sequence[Token], at: int, last: int) -> int | None:
    """Return the index of the brace that `namespace x {` or `extern "C" {` opens here, None if none does."""
    start = at + 1 if tokens[at].text == "inline" else at
    if start + 1 >= last:
        return None
    if tokens[start].text == "extern" and tokens[start + 1].kind == "literal":
        return start + 2 if start + 2 < last and tokens[start + 2].text == "{" else None
    if tokens[start].text != "namespace":
        return None
    opening = start + 1
    while opening < last and (tokens[opening].kind == "name" or tokens[opening].text == "::"):
        opening += 1
    return opening if opening < last and tokens[opening].text == "{" else None


def _find_end(tokens: Sequence[Token], partners: dict[int, int], at: int, last: int) -> tuple[int, int | None]:
    """Return the index after the declaration that begins at `at`, and that of the brace that opens its body."""
    body: int | None = None
    index = at
    while index < last:
        text = tokens[index].text
        if tokens[index].kind == "symbol" and text == ";":
            return index + 1, body
        if tokens[index].kind == "symbol" and text in _PAIRS:
            closing = min(partners.get(index, last - 1), last - 1)
            if text == "{":
                body = index if body is None else body
                if _is_function(tokens[at:index], partners, at) and not _goes_on(tokens, closing + 1, last):
                    return closing + 1, index
            index = closing
        index += 1
    return last, body


def _goes_on(tokens: Sequence[Token], index: int, last: int) -> bool:
    """Whether a brace was no body but an initialiser of a constructor's list."""
    return index < last and tokens[index].text in {",", "{"}


def _is_function(head: Sequence[Token], partners: dict[int, int], base: int) -> bool:
    """Whether these words before a brace are a function's: a list of parameters, and nothing assigned."""
    words = _drop_attributes(_drop_template(head, partners, base))
    names = [word.text for word in words]
    if "operator" in names:
        return True
    if "(" not in names or (names and names[0] in _TYPE_WORDS and names.index("(") < 2):
        return False
    return "=" not in names


def _drop_template(head: Sequence[Token], partners: dict[int, int], base: int) -> list[Token]:
    """Return the words at the outermost level: no template parameters, nothing inside brackets."""
    kept: list[Token] = []
    index, depth = 0, 0
    in_template = False
    while index < len(head):
        token = head[index]
        if token.text == "template" and index + 1 < len(head) and head[index + 1].text == "<":
            in_template = True
        if token.kind == "symbol" and token.text in {"<", ">", ">>>"} and in_template:
            depth += {"<": 1, ">": -1, ">>>": -3}[token.text]
            in_template = depth > 0
        elif not in_template:
            kept.append(token)
        if token.kind == "symbol" and token.text in _PAIRS and base + index in partners:
            closing = partners[base + index] - base
            if not in_template and closing < len(head):
                kept.append(head[closing])
            index = closing
        index += 1
    return kept


def _drop_attributes(words: Sequence[Token]) -> list[Token]:
    kept: list[Token] = []
    index = 0
    while index < len(words):
        word = words[index]
        if word.text in _ATTRIBUTES:
            index += 2 if index + 2 < len(words) and words[index + 1].text == "(" else 0
        elif word.kind != "directive":
            kept.append(word)
        index += 1
    return kept


def _describe(tokens: tuple[Token, ...], body: int | None) -> Declaration:
    head = tokens if body is None else tokens[:body]
    partners = match_brackets(head) or {}
    words = _drop_attributes(_drop_template(head, partners, 0))
    names = [word.text for word in words]
    if names and names[0] not in {"typedef", "using", "friend"} and _is_function(head, partners, 0):
        return Declaration(DeclarationKind.FUNCTION, tokens, _find_called(names), body)
    is_type = bool(names) and names[0] in _TYPE_WORDS and (body is not None or len(names) <= 3)
    kind = DeclarationKind.TYPE if is_type else DeclarationKind.OTHER
    return Declaration(kind, tokens, _find_names(tokens, body, words), body)


def _find_called(names: Sequence[str]) -> tuple[str, ...]:
    """Return the name of a function: what stands before its parameters and template arguments."""
    if "operator" in names:
        return ("operator",)
    at = names.index("(") - 1
    depth = 0
    while at > 0 and (names[at] == ">" or depth):
        depth += {">": 1, "<": -1}.get(names[at], 0)
        at -= 1
    return tuple(names[max(at, 0) : max(at, 0) + 1])


def _find_names(tokens: tuple[Token, ...], body: int | None, words: Sequence[Token]) -> tuple[str, ...]:
    """Return the names that a type, an alias or a variable introduces."""
    names = [word.text for word in words if word.kind == "name"]
    if not names:
        return ()
    if names[0] == "using":
        return (names[1],) if len(names) > 1 and any(word.text == "=" for word in words) else (names[-1],)
    introduced: list[str] = []
    if any(name in _TYPE_WORDS for name in names[:2]) and body is not None:
        introduced += [name for name in names if name not in _TYPE_WORDS | {"typedef", "final"}][:1]
        introduced += [token.text for token in tokens[body:] if token.kind == "name"] if "enum" in names[:2] else []
    tail = list(words) if body is None or "=" in {word.text for word in words} else [*words, *_after_body(tokens, body)]
    for word, following in zip(tail, [*tail[1:], None], strict=True):
        is_last = following is None or following.text in {"=", "[", ",", ";", "{", ")", "("}
        if word.kind == "name" and is_last:
            introduced.append(word.text)
    return tuple(dict.fromkeys(introduced))


def _after_body(tokens: tuple[Token, ...], body: int) -> list[Token]:
    closing = (match_brackets(tokens) or {}).get(body)
    return [] if closing is None else list(tokens[closing + 1 :])
