from __future__ import annotations

import click
import pytest

from sectorwise.errors import ArgumentError
from sectorwise.learn.answers import Given, read_answers
from sectorwise.learn.questions import QUESTIONS, ask
from tests.cli.commands import run

SEEDS = range(4)
MANY = range(40)
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
        answers = [part.answer for part in question.all_parts]
        grade = question.grade(*answers)
        assert grade.right == len(question.all_parts) > len(question.parts) >= 2
        assert all(part.why for part in question.all_parts)
        assert question.grade(*(part.write_answer() for part in question.all_parts)).right == grade.right
        assert len(set(question.rubric)) == 3
        wrong = question.grade(*(answer * 1.37 + 7.3 for answer in answers))
        assert wrong.right == 0
        assert all(len(line) <= 80 for line in f"{question}\n{grade}\n{wrong}".splitlines())


@pytest.mark.parametrize("code", QUESTIONS)
def test_mistakes_are_wrong_and_are_explained(code: str) -> None:
    for seed in SEEDS:
        question = ask(code, seed)
        said = " ".join(question.write_rubric().split())
        for number, part in enumerate(question.all_parts):
            for mistake in part.list_mistakes():
                answers = [each.answer for each in question.all_parts]
                answers[number] = mistake.answer
                mark = question.grade(*answers).marks[number]
                assert not mark.right
                assert mark.why == f"{mistake.because} {part.why}"
                assert f"for {number + 1}: {mistake.because}" in said


def test_the_mistakes_of_the_rubric_are_told() -> None:
    because = " ".join(
        mistake.because for code in QUESTIONS for part in ask(code).all_parts for mistake in part.list_mistakes()
    )
    for mistake in ("one thread's order", "N is contiguous there", "for scalar loads", "they must be added up"):
        assert mistake in because


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


def test_follow_ups_follow_from_closed_forms() -> None:
    for seed in range(20):
        swizzles = ask("swizzles", seed).follow_ups[0]
        row = int(swizzles.prompt.split("in row ")[1].split(",")[0])
        assert swizzles.answer == (8 if row % 4 else 0)
        records = ask("records", seed)
        assert records.follow_ups[0].answer == min(64, 64 * int(records.setting.split()[3]) * 4 // 64)
        columns = ask("columns", seed)
        assert columns.follow_ups[0].answer == 4 * columns.parts[2].answer
        assert ask("tiny-k", seed).follow_ups[0].answer == 16
        assert ask("transpose", seed).follow_ups[0].answer == (2 if "8-byte" in ask("transpose", seed).setting else 1)
        warps = ask("sixty-percent", seed)
        width = int(warps.follow_ups[0].prompt.split("one ")[1].split("-byte")[0])
        assert warps.follow_ups[0].answer == warps.parts[2].answer * 32 * width / 1000


def test_answers_are_read_as_people_write_them() -> None:
    assert read_answers("32 6.25%; 8,192") == (Given(32), Given(6.25, "%"), Given(8192))
    assert read_answers("32 B 4KiB, 1/16 12.5 percent 2^10") == (
        Given(32, "B"), Given(4, "KiB"), Given(0.0625), Given(12.5, "%"), Given(1024),
    )  # fmt: skip
    assert read_answers("- 16 sectors s 64*2 FLOP/byte") == (None, Given(16), None, Given(128))
    with pytest.raises(ArgumentError, match=r"expected one number or more, such as 32 6\.25, got 'many'"):
        read_answers("many")
    for text in ("inf", "32 nan", "1e400", "1/0", "1,5", "9^9^9^9", "1.2.3", "32 bananas", "%", "-1^0.5"):
        with pytest.raises(ArgumentError, match="expected one number or more"):
            read_answers(text)
    assert "no: 4, not 1e+99." in str(ask("coalescing").grade(1e99, 32, 12.5))
    with pytest.raises(ArgumentError, match="asks for 3 numbers, or 4 with what follows; 1 were given"):
        ask("coalescing").grade(4)
    with pytest.raises(ArgumentError, match="expected one number, got '4 5'"):
        ask("coalescing").grade("4 5", 1, 1)
    with pytest.raises(ArgumentError, match="did you mean 'banks'"):
        ask("bank")


@pytest.mark.parametrize(
    ("given", "wanted", "unit", "means"),
    [
        ("12.5", 12.5, "%", True),
        ("12.5 %", 12.5, "%", True),
        ("1/8", 12.5, "%", True),
        ("0.125", 12.5, "%", True),
        ("0.125 %", 12.5, "%", False),
        ("12.5", 0.125, "", False),
        ("12.5 %", 0.125, "", True),
        ("189 %", 1.886, "", True),
        ("4 KiB", 4096, "B", True),
        ("4 KB", 4096, "B", False),
        ("4096", 4096, "B", True),
        ("48 KiB", 49.152, "KB", True),
        ("49152 B", 49.152, "KB", True),
        ("49.2", 49.152, "KB", True),
        ("49152", 49.152, "KB", False),
        ("32 B", 32, "", True),
        ("31", 32, "", False),
        ("0", 0, "", True),
        ("0.1", 0, "", False),
    ],
)
def test_equal_answers_are_equal_however_they_are_written(given: str, wanted: float, unit: str, *, means: bool) -> None:
    (read,) = read_answers(given)
    assert read is not None
    assert read.means(wanted, unit) == means


def test_the_command_asks_and_grades(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    right = [part.answer for part in ask("banks", 5).parts]
    outcome = run(capsys, "learn", "ask", "banks", "--seed", 5, "--answers", f"{right[0]} 77")
    assert outcome.code == 0
    assert "1. right. Bank = (byte / 4) mod 32." in outcome.out
    assert "1 of 2 right" in outcome.out
    assert "excellent: names the price of padding" in outcome.out
    follow_up = str(ask("banks", 5).follow_ups[0].answer)
    replies = iter(["y", str(right[0]), str(right[1]), follow_up])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(replies))
    outcome = run(capsys, "learn", "ask", "banks", "--seed", 5)
    assert "got 'y'" in outcome.out
    assert "3. Follow-up. Each lane loads 16 bytes" in outcome.out
    assert "3 of 3 right" in outcome.out
    replies = iter([f"{right[0]} {right[1]} 99", "s"])
    skipped = run(capsys, "learn", "ask", "banks", "--seed", 5).out
    assert "2 of 3 right" in skipped
    assert "3. skipped: 4." in skipped
    shown = run(capsys, "learn", "ask", "banks", "--show", "--seed", 5).out
    assert f"1. {right[0]:.0f}. Bank = (byte / 4) mod 32." in shown
    assert f"2. {right[1]:.0f}. Rows are " in shown
    assert "excellent: names the price of padding" in shown
    everything = run(capsys, "learn", "ask", "--show", "--seed", 1)
    assert everything.out.count("(the same again: ") == len(QUESTIONS)
    assert "right in all" not in everything.out
    silly = run(capsys, "learn", "ask", "banks", "--answers", "inf inf")
    assert (silly.code, silly.out, silly.err.count("Traceback")) == (2, "", 0)
    assert run(capsys, "learn", "ask", "bank", "--answers", "1").code == 2
    assert run(capsys, "learn", "ask", "--answers", "1").code == 2
    overview = run(capsys, "learn")
    assert all(code in overview.out for code in QUESTIONS)


def test_the_command_is_left_at_any_time(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*replies: str) -> str:
        left = iter(replies)

        def prompt(*_: object, **__: object) -> str:
            reply = next(left)
            if reply == "^D":
                raise click.Abort
            return reply

        monkeypatch.setattr("click.prompt", prompt)
        outcome = run(capsys, "learn", "ask", "banks", "coalescing", "--seed", 5)
        assert (outcome.code, outcome.err) == (0, "")
        return outcome.out

    assert answer("q").endswith("0 of 0 right in all\n")
    assert answer("^D").endswith("0 of 0 right in all\n")
    half = answer("quit 5", "0", "q")
    assert "got 'quit 5'" in half
    assert "2. skipped: " in half
    assert "What is coalescing?" not in half
    assert half.endswith(" of 2 right in all\n")
    assert "What is coalescing?" in answer("s s", "s", "q")
    last = answer("s s", "4", "s", "s", "s", "s")
    assert last.endswith("1 of 7 right in all\n")


def test_numbers_vary_from_seed_to_seed() -> None:
    kinds = {code: len({str(ask(code, seed)) for seed in MANY}) for code in QUESTIONS}
    assert min(kinds.values()) >= 3
    assert sum(kinds.values()) > 10 * len(kinds)
