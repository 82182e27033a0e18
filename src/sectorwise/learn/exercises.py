"""Turns a kernel that a person has mended into a verdict: the same outputs, and the counter that had to fall."""

from __future__ import annotations

import re
import textwrap
import tomllib
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Final

from sectorwise.device import load_device, require_sass
from sectorwise.errors import ArgumentError
from sectorwise.examine import make_runner
from sectorwise.frontends.base import CompileRequest
from sectorwise.launch.comments import find_launches
from sectorwise.layout.reader import suggest
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.remedies.workshop import Change, Refusal, Workshop, prove
from sectorwise.source import read_source

if TYPE_CHECKING:
    from pathlib import Path

    from sectorwise.launch.config import LaunchConfig
    from sectorwise.model.kernel_model import KernelModel

_MARK: Final = re.compile(r"sectorwise:\s*exercise\s+([\w-]+)")


@dataclass(frozen=True, slots=True)
class Exercise:
    """A kernel with one fault: `total` is a counter of its launch, `most` what it is at most without the fault."""

    name: str
    title: str
    source: str
    total: str
    most: int
    hint: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a mended kernel did: `before` and `after` are the counter, `wrong` says what is not as it was."""

    exercise: Exercise
    before: int
    after: int | None
    wrong: str | None

    @property
    def passed(self) -> bool:
        """Whether the outputs are equal and the counter is low enough."""
        return self.wrong is None and self.after is not None and self.after <= self.exercise.most

    def __str__(self) -> str:
        """In words, at most 80 columns; paths stay whole."""
        wrap = partial(textwrap.wrap, width=80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        return "\n".join(line for text in self._list_texts() for line in wrap(text))

    def _list_texts(self) -> list[str]:
        name = self.exercise.total.replace("_", " ")
        if self.wrong is not None:
            return [f"{self.exercise.name}: not yet: {self.wrong}."]
        counts = f"{name}: {self.before:,} before, {self.after:,} now, {self.exercise.most:,} at most"
        if self.passed:
            return [f"{self.exercise.name}: solved. The outputs are equal; {counts}."]
        return [
            f"{self.exercise.name}: not yet. The outputs are equal, but {counts}.",
            f"Hint: {self.exercise.hint}",
        ]


@cache
def list_exercises() -> tuple[Exercise, ...]:
    """All exercises, in order."""
    text = resources.files("sectorwise").joinpath("learn", "exercises.toml").read_text(encoding="utf-8")
    return tuple(
        Exercise(
            name,
            entry["title"],
            f"// sectorwise: exercise {name}\n{entry['source']}",
            entry["total"],
            entry["most"],
            entry["hint"],
        )
        for name, entry in tomllib.loads(text).items()
    )


def find_exercise(name: str) -> Exercise:
    """The exercise of that name; raises `ArgumentError` with the nearest."""
    for exercise in list_exercises():
        if exercise.name == name:
            return exercise
    raise ArgumentError(f"there is no exercise '{name}'{suggest(name, [each.name for each in list_exercises()])}")


def check_exercise(path: Path, *, device: str = "h200") -> Verdict:
    """Execute a mended exercise and the original, and compare outputs and counters.

    The file says which exercise it is in its first comment. Raises `ArgumentError` where it does not, and whatever the
    compiler or the launch is refused for.
    """
    text = read_source(path).text
    mark = _MARK.search(text)
    if mark is None:
        raise ArgumentError(
            f"{path} does not say which exercise it is: keep its comment '// sectorwise: exercise NAME'"
        )
    exercise = find_exercise(mark[1])
    spec = load_device(device)
    run = make_runner(path, CompileRequest(require_sass(spec)), spec, ExecutionOptions())
    original = run(exercise.source, _find_launch(exercise.source, exercise.name))
    workshop = Workshop(text, original.bound.launch, run)
    trial = prove(workshop, Change(exercise.title, "", text, _find_launch(text, str(path))), original)
    before = _read_total(original, exercise.total)
    if isinstance(trial, Refusal):
        return Verdict(exercise, before, None, trial.because)
    return Verdict(exercise, before, _read_total(trial.model, exercise.total), None)


def _find_launch(text: str, origin: str) -> LaunchConfig:
    launches = find_launches(text, origin)
    if len(launches) != 1:
        raise ArgumentError(f"{origin}: expected one comment '// sectorwise: launch ...', found {len(launches)}")
    return launches[0]


def _read_total(model: KernelModel, name: str) -> int:
    value = getattr(model.totals, name)
    if value is None:
        raise ArgumentError(f"{name} is not known: an address of the kernel depends on something unknown")
    return int(value)
