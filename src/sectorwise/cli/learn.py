"""Turns questions and exercises into a conversation on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError
from sectorwise.learn.exercises import check_exercise, find_exercise, list_exercises
from sectorwise.learn.question import Question, read_answers
from sectorwise.learn.questions import QUESTIONS, ask
from sectorwise.report.page import Page, tidy


@click.group(invoke_without_command=True)
@click.pass_context
def learn(context: click.Context) -> None:
    """Questions and exercises that the models grade; without a command: what there is."""
    if context.invoked_subcommand is not None:
        return
    lines = ["Questions: sectorwise learn ask CODE"]
    lines += [f"  {code:<15} {ask(code).title}" for code in QUESTIONS]
    lines += ["", "Exercises: sectorwise learn start NAME, edit, sectorwise learn check FILE"]
    lines += [f"  {each.name:<15} {each.title}" for each in list_exercises()]
    _show("\n".join(lines))


@learn.command("ask")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
@click.option("--seed", type=int, help="The same numbers again.  [default: others each time]")
@click.option("--answers", metavar="NUMBERS", help="Answer at once: '32 6.25'. With one CODE only.")
@click.option("--show", is_flag=True, help="Show the answers instead of asking.")
def ask_questions(codes: tuple[str, ...], seed: int | None, answers: str | None, *, show: bool) -> None:
    """Ask these questions, or all of them, and grade what is answered."""
    if answers is not None and len(codes) != 1:
        raise click.UsageError("--answers goes with one CODE")
    right = parts = 0
    for code in codes or tuple(QUESTIONS):
        number = seed if seed is not None else _draw_seed()
        question = ask(code, number)
        _show(f"{question}\n")
        if show:
            said = f"{question.write_answers()}\n{question.write_rubric()}"
        else:
            grade = question.grade(*_read(question, answers))
            right, parts = right + grade.right, parts + len(grade.marks)
            said = str(grade)
        _show(f"{said}\n\n(the same again: sectorwise learn ask {code} --seed {number})\n")
    if len(codes) != 1 and not show:
        _show(f"{right} of {parts} right in all")


@learn.command()
@click.argument("name")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="[default: NAME.cu]"
)
def start(name: str, output: Path | None) -> None:
    """Write the source of an exercise."""
    exercise = find_exercise(name)
    path = output or Path(f"{name}.cu")
    if path.exists():
        raise ArgumentError(f"{path} is there already")
    write_text(exercise.source, path)
    _show(f"{exercise.title}: mend {path}, then sectorwise learn check {path}")


@learn.command(short_help="Grade a mended exercise by its outputs and counters.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
def check(file: Path, device: str) -> None:
    """Grade a mended exercise by its outputs and counters; exits with 1 while it is not solved."""
    verdict = check_exercise(file, device=device)
    _show(str(verdict))
    if not verdict.passed:
        sys.exit(1)


def _read(question: Question, answers: str | None) -> tuple[float, ...]:
    if answers is not None:
        return read_answers(answers)
    given: list[float] = []
    while len(given) < len(question.parts):
        text = click.prompt(f"{len(given) + 1}", prompt_suffix="> ")
        try:
            given += read_answers(text)[: len(question.parts) - len(given)]
        except ArgumentError as error:
            _show(str(error))
    return tuple(given)


def _draw_seed() -> int:
    import secrets

    return secrets.randbelow(10_000)


def _show(text: str) -> None:
    page: Page = describe_page(sys.stdout)
    click.echo("\n".join(tidy(page, line) for line in text.splitlines()))
