"""Turns a run of blocks that takes long into one on better code of the same module, which is compiled beside it.

Both are made of one text, so what one leaves in memory between two blocks the other takes up.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from msgspec import Struct, field

from sectorwise.beside import begin
from sectorwise.machine.native.compiler import build, load

if TYPE_CHECKING:
    from contextlib import ExitStack

    from sectorwise.beside import Begun
    from sectorwise.machine.native.compiler import Host, Library

SECOND_LEVEL = 1
"""What levels above this gain is less than what they take to compile (docs/performance.md, "A second tier")."""

_COSTS_MORE = 2.0
"""Compiling at the second level takes about so many times what it takes at the first."""

_SECONDS_A_BYTE = 4e-6
"""About what the second level takes for each byte of the first one's code, where nothing was compiled in this run."""

_SAVES = 0.2
"""The share of the time that is left which better code saves."""

_MARGIN = 1.6
"""It has to save so many times what compiling it takes: both are guesses."""


class Recipe(Struct, frozen=True):
    """What better code is made of: the module, for whom, what it exports; `seconds` of a processor may go into it."""

    text: str
    host: Host
    exports: tuple[str, ...]
    seconds: float


class Tier(Struct):
    """Better code for one run of `blocks` blocks; `stack` waits at its end for what compiles then."""

    recipe: Recipe
    blocks: int
    stack: ExitStack
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: Begun[Library] | None = None


def expect_seconds(first_seconds: float | None, code_bytes: int) -> float:
    """What compiling better code may take, by what the first took in this run, or by its size if that is not known."""
    return _SECONDS_A_BYTE * code_bytes if first_seconds is None else _COSTS_MORE * first_seconds


def is_worth_it(tier: Tier, run_seconds: float, done: int) -> bool:
    """Whether a run that has taken so long for `done` of its blocks has so much before it that better code pays.

    Seconds are those of processors: what else they have to do is no matter.
    """
    if not done or run_seconds < tier.recipe.seconds:
        return False
    left_seconds = run_seconds * (tier.blocks - done) / done
    return _SAVES * left_seconds >= _MARGIN * tier.recipe.seconds


def find_better(tier: Tier, run_seconds: float, done: int) -> Library | None:
    """Better code, once it is there; where `done` blocks have taken so long that it pays, its making begins."""
    with tier.lock:
        if tier.begun is None:
            if is_worth_it(tier, run_seconds, done):
                tier.begun = tier.stack.enter_context(begin(lambda: _make(tier.recipe)))
            return None
        # What fails here has no other effect: the run goes on as it is.
        return tier.begun.result() if tier.begun.is_done() and not tier.begun.errors else None


def _make(recipe: Recipe) -> Library:
    return load(build(recipe.text, recipe.host, SECOND_LEVEL)[0], recipe.exports)
