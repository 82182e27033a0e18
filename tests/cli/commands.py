"""Runs command lines inside the process of the tests, as a shell would see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.cli.main import main

if TYPE_CHECKING:
    import pytest


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a command line left behind."""

    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    shown = capsys.readouterr()
    return Outcome(code, shown.out, shown.err)
