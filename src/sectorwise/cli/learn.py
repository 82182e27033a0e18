"""Turns questions and exercises into a conversation on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError
from sectorwise.learn.answers import Given, read_answers
from sectorwise.learn.exercises import check_exercise, find_exercise, list_exercises
from sectorwise.learn.questions import QUESTIONS, ask
from sectorwise.report.page import Page, tidy

if TYPE_CHECKING:
    from sectorwise.learn.question import Grade, Question


@click.group(invoke_without_command=True)
@click.pass_context
def learn(context: click.Context) -> None:
    """Questions and exercises that the models grade; without a command: what there is."""
    if context.invoked_subcommand is not None:
        return
    lines = ["Questions: sectorwise learn ask CODE"]
    lines += [f"  {code:<15} {ask(code).title}" for code in QUESTIONS]
    _show("\n".join([*lines, "", *_list_exercises()]))


@learn.command("ask")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@click.option("--seed", type=int, help="The same numbers again.  [default: others each time]")
@click.option("--answers", metavar="NUMBERS", help="Answer at once: '32 12.5%'. With one CODE only.")
@click.option("--show", is_flag=True, help="Show the answers instead of asking.")
def ask_questions(codes: tuple[str, ...], seed: int | None, answers: str | None, *, show: bool) -> None:
    """Ask these questions, or all of them, and grade what is answered.

    Numbers may have units and be fractions: 32, 32 B, 4 KiB, 12.5 %, 1/8. While it asks, s skips a number, q leaves.
    """
    if answers is not None and len(codes) != 1:
        raise click.UsageError("--answers goes with one CODE")
    for code in codes:
        ask(code)
    right = parts = 0
    for code in codes or tuple(QUESTIONS):
        number = seed if seed is not None else _draw_seed()
        question = ask(code, number)
        given = None if answers is None else question.grade(*read_answers(answers))
        _show(f"{question}\n\n")
        again = f"\n(the same again: sectorwise learn ask {code} --seed {number})\n\n"
        if show:
            _show(f"{question.write_answers()}\n{question.write_rubric()}\n{again}")
            continue
        grade, leaves = (given, False) if given is not None else _converse(question)
        if grade is not None:
            right, parts = right + grade.right, parts + len(grade.marks)
            _show(f"{grade}\n{again}")
        if leaves:
            break
    if len(codes) != 1 and not show:
        _show(f"{right} of {parts} right in all")


@learn.command()
@click.argument("name", required=False)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="[default: NAME.cu]"
)
def start(name: str | None, output: Path | None) -> None:
    """Write the source of an exercise; without a NAME: which there are."""
    if name is None:
        _show("\n".join(_list_exercises()))
        return
    exercise = find_exercise(name)
    path = output or Path(f"{name}.cu")
    if path.exists():
        raise ArgumentError(f"{path} is there already: go on with it, or name another with -o FILE")
    write_text(exercise.source, path)
    _show(f"mend {path} ({exercise.title}), then sectorwise learn check {path}")


@learn.command(short_help="Grade a mended exercise by its outputs and counters.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
def check(file: Path, device: str) -> None:
    """Grade a mended exercise by its outputs and counters; exits with 1 while it is not solved."""
    verdict = check_exercise(file, device=device)
    _show(str(verdict))
    if not verdict.passed:
        sys.exit(1)


def _list_exercises() -> list[str]:
    begin = "Exercises: sectorwise learn start NAME, edit, sectorwise learn check FILE"
    return [begin, *(f"  {each.name:<15} {each.title}" for each in list_exercises())]


def _converse(question: Question) -> tuple[Grade | None, bool]:
    """The grade of what is answered, None where nothing is, and whether the person leaves."""
    given = _ask_parts(question)
    leaves = len(given) < len(question.all_parts)
    if leaves and not any(given):
        return None, True
    wanted = len(question.all_parts if len(given) > len(question.parts) else question.parts)
    return question.grade(*given, *[None] * (wanted - len(given))), leaves


def _ask_parts(question: Question) -> list[Given | None]:
    """What is answered, None for what is skipped; fewer than there are parts where the person leaves."""
    given: list[Given | None] = []
    _show("(s skips, q leaves; 12.5 %, 1/8, 4 KiB are numbers too)")
    while len(given) < len(question.all_parts):
        number = len(given)
        if number >= len(question.parts):
            _show(question.write_part(number))
        try:
            text = str(click.prompt(f"{number + 1}", prompt_suffix="> "))
        except click.Abort:
            click.echo()
            return given
        if text.strip().lower() in {"q", "quit", "exit"}:
            return given
        try:
            read = read_answers(text)
        except ArgumentError as error:
            _show(str(error))
            continue
        # Of many numbers in one line those count that were asked for.
        most = len(question.parts if number < len(question.parts) else question.all_parts) - number
        given += read[:most]
    return given


def _draw_seed() -> int:
    import secrets

    return secrets.randbelow(10_000)


def _show(text: str) -> None:
    page: Page = describe_page(sys.stdout)
    click.echo("\n".join(tidy(page, line) for line in text.splitlines()))
