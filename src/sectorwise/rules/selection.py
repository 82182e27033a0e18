"""Turns codes, beginnings of codes and names of rules into the rules that are to be checked."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.rules.table import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.rules.rule import Rule


def choose_rules(select: Sequence[str] = (), ignore: Sequence[str] = ()) -> tuple[Rule, ...]:
    """All rules, or those that one of `select` means, without those that one of `ignore` means.

    Each is a code (`SW201`), the beginning of codes (`SW2`) or a rule's name.

    Raises:
        ArgumentError: one means no rule; the text names the nearest.
    """
    kept = {rule.code for text in select for rule in find_rules(text)} if select else {rule.code for rule in RULES}
    kept -= {rule.code for text in ignore for rule in find_rules(text)}
    return tuple(rule for rule in RULES if rule.code in kept)


def find_rules(text: str) -> tuple[Rule, ...]:
    """The rules that a code, the beginning of codes or a name means: at least one.

    Raises:
        ArgumentError: there is none; the text names the nearest.
    """
    wanted = text.strip()
    found = tuple(rule for rule in RULES if means(wanted, rule.code) or wanted.casefold() == rule.name)
    if not found:
        raise ArgumentError(f"no rule is called {text!r}; {_suggest(wanted)}")
    return found


def means(text: str, code: str) -> bool:
    """Whether `SW2`, `sw201` or `SW201` means the code `SW201`."""
    return len(text) >= len("SW") and code.startswith(text.upper())


def _suggest(text: str) -> str:
    words = {rule.code: rule for rule in RULES} | {rule.name: rule for rule in RULES}
    near = difflib.get_close_matches(text.upper(), words, n=3, cutoff=0.6)
    near = near or difflib.get_close_matches(text.casefold(), words, n=3, cutoff=0.4)
    if not near:
        return "`sectorwise rules` lists them"
    rules = dict.fromkeys(words[word] for word in near)
    return "the nearest: " + ", ".join(f"{rule.code} ({rule.name})" for rule in rules)
