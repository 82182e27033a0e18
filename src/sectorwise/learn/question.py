"""Turns a question's numbers and a person's answers into a grade with the reason for each."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.report.page import Page
from sectorwise.report.pictures import draw_picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sectorwise.findings import Picture

_WIDTH: Final = 80
_CLOSE: Final = 0.02
_LONG: Final = 1e15


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer that people give, and what lies behind it."""

    answer: float
    because: str


@dataclass(frozen=True, slots=True)
class Part:
    """One number that is asked for: the model's answer, why it is that, and what people answer instead."""

    prompt: str
    answer: float
    why: str
    mistakes: tuple[Mistake, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question with varying numbers; `rubric` says what a weak, a good and an excellent answer in words contains."""

    code: str
    title: str
    setting: str
    parts: tuple[Part, ...]
    rubric: tuple[str, str, str]
    follow_ups: tuple[str, ...] = ()
    picture: Picture | None = None

    def grade(self, *answers: float) -> Grade:
        """Grade one answer for each part; raises `ArgumentError` for another number of answers."""
        if len(answers) != len(self.parts):
            raise ArgumentError(f"{self.code} asks for {len(self.parts)} numbers, {len(answers)} were given")
        return Grade(self, tuple(_mark(part, answer) for part, answer in zip(self.parts, answers, strict=True)))

    def write_answers(self) -> str:
        """The model's answer to each part, and why."""
        texts = (f"{number}. {write_number(part.answer)}. {part.why}" for number, part in enumerate(self.parts, 1))
        return "\n".join(line for text in texts for line in textwrap.wrap(text, _WIDTH, subsequent_indent="   "))

    def write_rubric(self) -> str:
        """The picture, what answers in words contain, and what is asked next."""
        lines = []
        if self.picture is not None:
            lines += ["", *(f"  {line}" for line in draw_picture(self.picture, Page(_WIDTH)))]
        lines += ["", "In words:"]
        for level, text in zip(("weak", "good", "excellent"), self.rubric, strict=True):
            lines += textwrap.wrap(f"{level:>9}: {text}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 13)
        for text in self.follow_ups:
            lines += textwrap.wrap(f"follow-up: {text}", _WIDTH, initial_indent="  ", subsequent_indent=" " * 13)
        return "\n".join(lines)

    def __str__(self) -> str:
        """The question, without its answers."""
        lines = [f"{self.title}  ({self.code})", "", *textwrap.wrap(self.setting, _WIDTH), ""]
        for number, part in enumerate(self.parts, 1):
            lines += textwrap.wrap(f"{number}. {part.prompt}", _WIDTH, subsequent_indent="   ")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Mark:
    """Whether an answer is right, and what there is to say about it."""

    given: float
    answer: float
    right: bool
    why: str


@dataclass(frozen=True, slots=True)
class Grade:
    """The marks of a question's parts."""

    question: Question
    marks: tuple[Mark, ...]

    @property
    def right(self) -> int:
        """Parts that are right."""
        return sum(mark.right for mark in self.marks)

    def __str__(self) -> str:
        """Right or wrong, why, the picture, and the rubric."""
        lines = []
        for number, mark in enumerate(self.marks, 1):
            verdict = "right" if mark.right else f"no: {write_number(mark.answer)}, not {write_number(mark.given)}"
            lines += textwrap.wrap(f"{number}. {verdict}. {mark.why}", _WIDTH, subsequent_indent="   ")
        lines.append(f"{self.right} of {len(self.marks)} right")
        return "\n".join([*lines, self.question.write_rubric()])


def write_number(value: float) -> str:
    """Whole where it is whole and can be read, else three digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < _LONG else f"{value:,.3g}"


def read_answers(text: str) -> tuple[float, ...]:
    """Numbers with spaces or semicolons between: `32 6.25`; a percent sign is dropped. Raises `ArgumentError`."""
    words: Sequence[str] = text.replace(";", " ").replace("%", " ").split()
    try:
        numbers = tuple(float(word.replace(",", "")) for word in words)
    except ValueError:
        numbers = (math.nan,)
    if not all(math.isfinite(number) for number in numbers):
        raise ArgumentError(f"expected numbers with spaces between, such as 32 6.25, got {text!r}")
    return numbers


def _mark(part: Part, given: float) -> Mark:
    if abs(given - part.answer) <= _CLOSE * abs(part.answer):
        return Mark(given, part.answer, right=True, why=part.why)
    for mistake in part.mistakes:
        if mistake.answer != part.answer and abs(given - mistake.answer) <= _CLOSE * abs(mistake.answer):
            return Mark(given, part.answer, right=False, why=f"{mistake.because} {part.why}")
    return Mark(given, part.answer, right=False, why=part.why)
