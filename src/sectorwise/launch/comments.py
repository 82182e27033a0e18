"""Turns the `// sectorwise: launch ...` comments of a source file into launches."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import Span
from sectorwise.launch.notation import parse_launch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sectorwise.launch.config import LaunchConfig

_DIRECTIVE = re.compile(r"(?:^|[^:\w\"'])(?P<mark>//|\#|/\*)\s*sectorwise\s*:\s*(?P<word>\w*)(?P<rest>.*)", re.ASCII)
_VARIABLES = re.compile(r"with\s+\w+\s*=", re.ASCII)
_LEFT_OVER = re.compile(r"[,)\]}=]|[\w:]+(?:<[^<>]*>)?<<<|\w+\[[^\]]*\]\(", re.ASCII)
"""How a line begins that was meant to belong to a launch: prose does not begin so."""

_SHAPE = re.compile(r"<<<.*?>>>|^[^(]*?\[.*?\](?=\s*(?:\(|$))", re.DOTALL)
"""Grid and block, in CUDA's brackets or Python's."""

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def find_launches(source: str, origin: str, folder: Path | None = None) -> tuple[LaunchConfig, ...]:
    """Return the launches that the comments of a source name, in their order.

    `// sectorwise: launch ...` in CUDA sources, `/* ... */` too, `# sectorwise: launch ...` in Python. A launch whose
    brackets are still open goes on in the next line, if that is a comment; so does one that is followed by a line
    `with name=...`. `origin` is the file's name: errors say `origin:line`. Raises LaunchError with a caret, also for a
    line that looks as if it were meant to go on where the launch is complete.
    """
    lines = source.splitlines()
    launches = []
    for number, line in enumerate(lines, 1):
        match = _DIRECTIVE.search(line)
        if match is None:
            continue
        where = f"{origin}:{number}"
        if match["word"] != "launch":
            _reject_misspelling(match, where)
            continue
        launches.append(parse_launch(_join_lines(match, lines[number:], origin, number), where, folder))
    return tuple(launches)


def _join_lines(match: re.Match[str], following: Sequence[str], origin: str, number: int) -> str:
    """Return the text of a launch that begins in line `number`, with the lines in which it goes on."""
    text, is_inside = _read_line(match["rest"], match["mark"] == "/*")
    for below, line in enumerate(following, number + 1):
        if _DIRECTIVE.search(line) is not None:
            break
        if is_inside:
            addition, is_inside = _read_line(line.strip().removeprefix("*"), is_block=True)
        elif (stripped := line.strip()).startswith(match["mark"]) and match["mark"] != "/*":
            addition, _ = _read_line(stripped.removeprefix(match["mark"]), is_block=False)
        else:
            break
        if _is_open(text) or _VARIABLES.match(addition):
            text = f"{text} {addition}"
            continue
        if _LEFT_OVER.match(addition):
            whole = Span(line, 0, len(line), f"{origin}:{below}")
            raise launch_error("this line is not read: the launch above it ends before, and none begins here", whole)
        break
    return text.strip()


def _read_line(text: str, is_block: bool) -> tuple[str, bool]:  # noqa: FBT001 - read by name or at once
    """Return what a line of a comment says, and whether a block comment goes on after it."""
    inside, closed, _ = text.partition("*/") if is_block else (text, "", "")
    return inside.strip().removesuffix("\\").rstrip(), is_block and not closed


def _reject_misspelling(match: re.Match[str], where: str) -> None:
    """Raise for `lanch`, or a launch alone, which would else be passed over in silence; other words are for others."""
    word = match["word"]
    is_near = difflib.SequenceMatcher(None, word.lower(), "launch").ratio() > 0.7
    if is_near or not word or "<<<" in match["rest"]:
        span = Span(match.string, match.start("word"), match.end("word"), where)
        raise launch_error(f"expected 'launch' after 'sectorwise:', got '{word}'", span)


def _is_open(text: str) -> bool:
    """Whether brackets are open, a comma is last, or the arguments' are still to come (`k`, `k<<<1, 32>>>`, `k[1]`)."""
    plain = _QUOTED.sub("", text)
    opened = sum(plain.count(bracket) for bracket in "([{")
    closed = sum(plain.count(bracket) for bracket in ")]}")
    return opened > closed or plain.endswith((",", "with")) or ")" not in _SHAPE.sub("", plain)
