from __future__ import annotations

import pytest

from sectorwise.errors import ArgumentError
from sectorwise.learn.question import read_answers
from sectorwise.learn.questions import QUESTIONS, ask
from tests.cli.commands import run

SEEDS = range(4)
WANTED = {
    "coalescing", "banks", "intensity", "swizzles", "sixty-percent", "records", "row-major", "int4", "batch", "columns",
    "tiny-k", "transpose", "doubling",
}  # fmt: skip


def test_there_are_more_than_twelve() -> None:
    assert set(QUESTIONS) == WANTED


@pytest.mark.parametrize("code", QUESTIONS)
def test_questions_vary_and_grade_their_own_answers(code: str) -> None:
    asked = [ask(code, seed) for seed in SEEDS]
    assert len({str(question) for question in asked}) > 1
    assert ask(code, 3) == ask(code, 3)
    for question in asked:
        answers = [part.answer for part in question.parts]
        grade = question.grade(*answers)
        assert grade.right == len(question.parts) >= 2
        assert all(part.why for part in question.parts)
        assert len(set(question.rubric)) == 3
        wrong = question.grade(*(answer * 1.5 + 7 for answer in answers))
        assert wrong.right == 0
        assert all(len(line) <= 80 for line in f"{question}\n{grade}\n{wrong}".splitlines())


@pytest.mark.parametrize("code", QUESTIONS)
def test_mistakes_are_wrong_and_are_explained(code: str) -> None:
    for seed in SEEDS:
        question = ask(code, seed)
        for number, part in enumerate(question.parts):
            for mistake in part.mistakes:
                if abs(mistake.answer - part.answer) <= 0.02 * abs(part.answer):
                    continue
                answers = [each.answer for each in question.parts]
                answers[number] = mistake.answer
                mark = question.grade(*answers).marks[number]
                assert not mark.right
                assert mark.why != part.why


def test_answers_follow_from_closed_forms() -> None:
    for seed in range(20):
        coalescing = ask("coalescing", seed)
        step = int(coalescing.parts[1].prompt.split("element ")[1].split(" i")[0])
        assert coalescing.parts[0].answer == 4
        assert coalescing.parts[1].answer == min(32, 4 * step)
        banks = ask("banks", seed)
        pitch = int(banks.setting.split("[32][")[1].split("]")[0])
        assert banks.parts[1].answer == len([row for row in range(32) if row * pitch % 32 == 0])
        waves = ask("sixty-percent", seed)
        blocks = int(waves.setting.split(", ")[1].split()[0])
        assert waves.parts[0].answer == pytest.approx(100 * (blocks % 132) / 132)
        tiny = ask("tiny-k", seed)
        assert tiny.parts[0].answer * tiny.parts[1].answer == 32
        assert 2 ** tiny.parts[2].answer == tiny.parts[0].answer


def test_answers_are_read_as_people_write_them() -> None:
    assert read_answers("32 6.25%; 8,192") == (32, 6.25, 8192)
    with pytest.raises(ArgumentError, match=r"expected numbers with spaces between, such as 32 6\.25, got 'many'"):
        read_answers("many")
    for text in ("inf", "32 nan", "1e400"):
        with pytest.raises(ArgumentError, match="expected numbers"):
            read_answers(text)
    assert "no: 4, not 1e+99." in str(ask("coalescing").grade(1e99, 32, 12.5))
    with pytest.raises(ArgumentError, match="asks for 3 numbers, 1 were given"):
        ask("coalescing").grade(4)
    with pytest.raises(ArgumentError, match="did you mean 'banks'"):
        ask("bank")


def test_the_command_asks_and_grades(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = [part.answer for part in ask("banks", 5).parts]
    outcome = run(capsys, "learn", "ask", "banks", "--seed", 5, "--answers", f"{right[0]} 77")
    assert outcome.code == 0
    assert "1. right. Bank = (byte / 4) mod 32." in outcome.out
    assert "1 of 2 right" in outcome.out
    assert "excellent: names the price of padding" in outcome.out
    replies = iter(["x", str(right[0]), str(right[1])])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(replies))
    outcome = run(capsys, "learn", "ask", "banks", "--seed", 5)
    assert "got 'x'" in outcome.out
    assert "2 of 2 right" in outcome.out
    replies = iter([f"{right[0]} {right[1]}"])
    assert "2 of 2 right" in run(capsys, "learn", "ask", "banks", "--seed", 5).out
    shown = run(capsys, "learn", "ask", "banks", "--show", "--seed", 5).out
    assert f"1. {right[0]:.0f}. Bank = (byte / 4) mod 32." in shown
    assert f"2. {right[1]:.0f}. Rows are " in shown
    assert "excellent: names the price of padding" in shown
    everything = run(capsys, "learn", "ask", "--show", "--seed", 1)
    assert everything.out.count("(the same again: ") == len(QUESTIONS)
    assert "right in all" not in everything.out
    silly = run(capsys, "learn", "ask", "banks", "--answers", "inf inf")
    assert (silly.code, silly.err.count("Traceback")) == (2, 0)
    assert run(capsys, "learn", "ask", "bank", "--answers", "1").code == 2
    assert run(capsys, "learn", "ask", "--answers", "1").code == 2
    overview = run(capsys, "learn")
    assert all(code in overview.out for code in QUESTIONS)
