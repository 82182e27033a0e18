"""Turns a question's numbers and a person's answers into a grade with the reason for each."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.errors import ArgumentError
from sectorwise.learn.answers import Given, read_answers, write_number
from sectorwise.report.page import Page
from sectorwise.report.pictures import draw_picture

if TYPE_CHECKING:
    from sectorwise.findings import Picture

_WIDTH: Final = 80


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong answer that people give, and what lies behind it."""

    answer: float
    because: str


@dataclass(frozen=True, slots=True)
class Part:
    """One number that is asked for: the model's answer, why it is that, and what people answer instead.

    The `unit` is that of the answer where it could be given in another: `%`, or one of `answers.SIZES`.
    """

    prompt: str
    answer: float
    why: str
    mistakes: tuple[Mistake, ...] = ()
    unit: str = ""

    def list_mistakes(self) -> tuple[Mistake, ...]:
        """The mistakes that are not, with these numbers, the right answer; of two with one answer the first."""
        wrong = [each for each in self.mistakes if not Given(each.answer).means(self.answer, "")]
        return tuple({each.answer: each for each in reversed(wrong)}.values())[::-1]

    def write_answer(self) -> str:
        """The model's answer with its unit."""
        return str(Given(self.answer, self.unit))


@dataclass(frozen=True, slots=True)
class Question:
    """A question with varying numbers; `rubric` says what a weak, a good and an excellent answer in words contains.

    The `follow_ups` are asked when the parts have been answered.
    """

    code: str
    title: str
    setting: str
    parts: tuple[Part, ...]
    rubric: tuple[str, str, str]
    follow_ups: tuple[Part, ...] = ()
    picture: Picture | None = None

    @property
    def all_parts(self) -> tuple[Part, ...]:
        """The parts, then the follow-ups."""
        return self.parts + self.follow_ups

    def grade(self, *answers: float | str | Given | None) -> Grade:
        """Grade one answer for each part, and if given, for each follow-up: 12.5, "12.5 %" or "1/8"; None skips one.

        Raises `ArgumentError` for another number of answers, and for one that is no number.
        """
        if len(answers) not in {len(self.parts), len(self.all_parts)}:
            more = f", or {len(self.all_parts)} with what follows" if self.follow_ups else ""
            raise ArgumentError(f"{self.code} asks for {len(self.parts)} numbers{more}; {len(answers)} were given")
        pairs = zip(self.all_parts, answers, strict=False)
        return Grade(self, tuple(_mark(part, _take(answer)) for part, answer in pairs))

    def write_answers(self) -> str:
        """The model's answer to each part and follow-up, and why."""
        texts = [f"{number}. {part.write_answer()}. {part.why}" for number, part in enumerate(self.parts, 1)]
        lines = [line for text in texts for line in textwrap.wrap(text, _WIDTH, subsequent_indent="   ")]
        return "\n".join([*lines, *self.list_follow_ups()])

    def write_rubric(self) -> str:
        """The picture, what answers in words contain, and what people get wrong."""
        lines = []
        if self.picture is not None:
            lines += ["", *(f"  {line}" for line in draw_picture(self.picture, Page(_WIDTH)))]
        lines += ["", "In words:"]
        for level, text in zip(("weak", "good", "excellent"), self.rubric, strict=True):
            lines += _wrap_label(level, text)
        mistakes = [
            f"{write_number(mistake.answer)} for {number}: {mistake.because}"
            for number, part in enumerate(self.all_parts, 1)
            for mistake in part.list_mistakes()
        ]
        if mistakes:
            lines += ["", "Common mistakes:"]
            lines += [line for text in mistakes for line in _wrap_label("", text)]
        return "\n".join(lines)

    def write_part(self, index: int) -> str:
        """One part or follow-up with its number."""
        begin = "Follow-up. " if index >= len(self.parts) else ""
        text = f"{index + 1}. {begin}{self.all_parts[index].prompt}"
        return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent="   "))

    def list_follow_ups(self) -> list[str]:
        """Lines that ask each follow-up and answer it."""
        lines: list[str] = []
        for number, part in enumerate(self.follow_ups, len(self.parts) + 1):
            text = f"{number}. Follow-up. {part.prompt} {part.write_answer()}. {part.why}"
            lines += textwrap.wrap(text, _WIDTH, subsequent_indent="   ")
        return lines

    def __str__(self) -> str:
        """The question, without its answers."""
        lines = [f"{self.title}  ({self.code})", "", *textwrap.wrap(self.setting, _WIDTH), ""]
        return "\n".join([*lines, *(self.write_part(index) for index in range(len(self.parts)))])


@dataclass(frozen=True, slots=True)
class Mark:
    """Whether an answer is right, and what there is to say about it; `given` is None where it was skipped."""

    given: Given | None
    part: Part
    right: bool
    why: str

    def __str__(self) -> str:
        """Right or wrong, and why."""
        if self.given is None:
            return f"skipped: {self.part.write_answer()}. {self.why}"
        verdict = "right" if self.right else f"no: {self.part.write_answer()}, not {self.given}"
        return f"{verdict}. {self.why}"


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
            lines += textwrap.wrap(f"{number}. {mark}", _WIDTH, subsequent_indent="   ")
        if len(self.marks) == len(self.question.parts):
            lines += self.question.list_follow_ups()
        lines.append(f"{self.right} of {len(self.marks)} right")
        return "\n".join([*lines, self.question.write_rubric()])


def _take(answer: float | str | Given | None) -> Given | None:
    if isinstance(answer, str):
        read = read_answers(answer)
        if len(read) != 1:
            raise ArgumentError(f"expected one number, got {answer!r}")
        return read[0]
    return Given(float(answer)) if isinstance(answer, (int, float)) else answer


def _mark(part: Part, given: Given | None) -> Mark:
    if given is None:
        return Mark(None, part, right=False, why=part.why)
    if given.means(part.answer, part.unit):
        return Mark(given, part, right=True, why=part.why)
    for mistake in part.list_mistakes():
        if given.means(mistake.answer, part.unit):
            return Mark(given, part, right=False, why=f"{mistake.because} {part.why}")
    return Mark(given, part, right=False, why=part.why)


def _wrap_label(label: str, text: str) -> list[str]:
    begin = f"  {label:>9}: " if label else "  "
    return textwrap.wrap(f"{begin}{text}", _WIDTH, subsequent_indent=" " * (13 if label else 4))
