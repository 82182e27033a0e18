"""Turns a question's code and a seed into the question, with other numbers for every seed."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.layout.reader import suggest
from sectorwise.learn import access_questions, mapping_questions, tiling_questions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sectorwise.learn.question import Question

QUESTIONS: Final[Mapping[str, Callable[[Random], Question]]] = {
    "coalescing": access_questions.ask_coalescing,
    "banks": access_questions.ask_banks,
    "intensity": tiling_questions.ask_intensity,
    "swizzles": access_questions.ask_swizzles,
    "sixty-percent": tiling_questions.ask_sixty_percent,
    "records": access_questions.ask_records,
    "row-major": mapping_questions.ask_row_major,
    "int4": mapping_questions.ask_int4,
    "batch": mapping_questions.ask_batch,
    "columns": mapping_questions.ask_columns,
    "tiny-k": mapping_questions.ask_tiny,
    "transpose": access_questions.ask_transpose,
    "doubling": tiling_questions.ask_doubling,
}
"""In the order in which one builds on the other."""


def ask(code: str, seed: int = 0) -> Question:
    """The question of that code, with the numbers of that seed; raises `ArgumentError` with the nearest code.

    >>> ask("int4").grade(32, 1024, 128, 4).right >= 3
    True
    """
    if code not in QUESTIONS:
        raise ArgumentError(f"there is no question '{code}'{suggest(code, QUESTIONS)}")
    return QUESTIONS[code](Random(seed))  # noqa: S311 - numbers of a question, no secret
