"""What the page on advice shows is what is printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli.commands import run

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "advice.md").read_text(encoding="utf-8")


def find_blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_outputs_are_real(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = find_blocks("console")
    assert len(blocks) == 3
    for block in blocks:
        command, *shown = block.splitlines()
        printed = f"\n{run(capsys, *shlex.split(command.removeprefix('$ sectorwise '))).out}"
        at = 0
        for piece in "\n".join(["", *shown, ""]).split("\n...\n"):
            found = printed.find(piece.strip("\n"), at)
            assert found >= at, piece
            at = found + len(piece.strip("\n"))


def test_python_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = find_blocks("python")
    exec(compile(block, "advice.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (\d+)", block)


def test_commands_of_the_page_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    commands = re.findall(r"^    sectorwise (.*)$", PAGE, re.MULTILINE)
    assert len(commands) == 3
    for command in commands[2:]:
        assert run(capsys, *shlex.split(command)).code == 0
