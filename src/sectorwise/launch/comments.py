"""Turns the `// sectorwise: launch ...` comments of a source file into launches."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

from sectorwise.launch.carets import launch_error
from sectorwise.launch.config import Span
from sectorwise.launch.notation import parse_launch

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import LaunchConfig

_DIRECTIVE = re.compile(r"(?:^|[^:\w\"'])(?P<mark>//|\#|/\*)\s*sectorwise\s*:\s*(?P<word>\w*)(?P<rest>.*)", re.ASCII)
_VARIABLES = re.compile(r"with\s+\w+\s*=", re.ASCII)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


def find_launches(source: str, origin: str, folder: Path | None = None) -> tuple[LaunchConfig, ...]:
    """Return the launches that the comments of a source name, in their order.

    `// sectorwise: launch ...` in CUDA sources, `/* ... */` on one line too, `# sectorwise: launch ...` in Python. A
    launch whose brackets are still open goes on in the next line, if that is a comment; so does one that is followed by
    a line `with name=...`. `origin` is the file's name: errors say `origin:line`. Raises LaunchError with a caret.
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
        text = _close_comment(match["rest"])
        for following in lines[number:]:
            addition = _continue_comment(following, match["mark"])
            if addition is None or not (_is_open(text) or _VARIABLES.match(addition)):
                break
            text = f"{text} {addition}"
        launches.append(parse_launch(text.strip(), where, folder))
    return tuple(launches)


def _reject_misspelling(match: re.Match[str], where: str) -> None:
    """Raise for `lanch`, or a launch alone, which would else be passed over in silence; other words are for others."""
    word = match["word"]
    is_near = difflib.SequenceMatcher(None, word.lower(), "launch").ratio() > 0.7
    if is_near or not word or "<<<" in match["rest"]:
        span = Span(match.string, match.start("word"), match.end("word"), where)
        raise launch_error(f"expected 'launch' after 'sectorwise:', got '{word}'", span)


def _close_comment(text: str) -> str:
    return text.split("*/", 1)[0].strip()


def _continue_comment(line: str, mark: str) -> str | None:
    """Return the text of a line that is a comment as a whole, None if it is none or a directive of its own."""
    stripped = line.strip()
    marks = ("*",) if mark == "/*" else (mark,)
    if not stripped.startswith(marks) or _DIRECTIVE.search(line) is not None:
        return None
    return _close_comment(stripped[len(marks[0]) :])


def _is_open(text: str) -> bool:
    """Whether brackets are open, a comma is last, or nothing but a kernel's name stands here yet."""
    plain = _QUOTED.sub("", text)
    opened = sum(plain.count(bracket) for bracket in "([{")
    closed = sum(plain.count(bracket) for bracket in ")]}")
    return opened > closed or plain.endswith(",") or "(" not in plain.partition(">>>")[2]
