"""What the README and the pages of `docs` show and claim is what happens, and what there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.launch.comments import find_launches
from sectorwise.launch.files import parse_launch_file
from sectorwise.launch.notation import parse_launch
from tests.cli.commands import run
from tests.machine.device.record import find_probes
from tests.measured.rows import list_exact_rows, list_families, list_further_rows, list_open_rows, read_rows
from tests.measured.test_rules import FOLDER, MODELLED
from tools.write_rules import render as render_rules

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAUNCHES = (ROOT / "docs" / "launches.md").read_text(encoding="utf-8")
LEFT_OUT = "..."


def find_blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_output_in_the_readme_is_real(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = find_blocks(README, "console")
    command, *shown = block.splitlines()
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "sectorwise"
    printed = f"\n{run(capsys, *arguments).out}"
    at = 0
    for piece in "\n".join(["", *shown, ""]).split(f"\n{LEFT_OUT}\n"):
        found = printed.find(piece.strip("\n"), at)
        assert found >= at, piece
        at = found + len(piece.strip("\n"))
    assert max(map(len, shown)) <= 80


def test_python_in_the_readme_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (block,) = find_blocks(README, "python")
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own page
    printed = capsys.readouterr().out.splitlines()
    stated = re.findall(r"print\(.*\)  # ([\d. ]*\d)", block)
    assert len(stated) == block.count("print(")
    assert stated == printed
    test = names["test_transpose_is_clean"]
    assert callable(test)
    test()


def test_numbers_in_the_readme_are_true() -> None:
    measured = [row for family in list_families() for row in read_rows(family)]
    compared = [*list_exact_rows(), *list_further_rows(), *list_open_rows()]
    recorded = [len(json.loads(path.read_text(encoding="utf-8"))["cases"]) for path in FOLDER.glob("*.json")]
    right, modelled = (sum(column) for column in zip(*MODELLED.values(), strict=True))
    words = " ".join(README.split())
    for claim in (
        f"{len(measured)} launches were measured",
        f"{len(compared)} of them, with {sum(len(row.instructions) for row in compared):,} memory instructions",
        f"The other {len(measured) - len(compared)} fill the GPU",
        f"{sum(recorded)} launches more",
        f"{right} of {modelled} are right",
        f"{len(find_probes())} probes of instructions",
    ):
        assert claim in words


def test_open_rules_are_all_right() -> None:
    scores = json.loads((ROOT / "tests" / "measured" / "open_rules.json").read_text(encoding="utf-8"))
    for score in scores.values():
        assert score["instructions_right"] == score["instructions"]


def test_launches_of_the_page_are_read() -> None:
    lines = [line.strip() for line in LAUNCHES.splitlines() if re.match(r" {4}\w.*<<<", line)]
    assert len(lines) >= 6
    for line in lines:
        assert parse_launch(line).arguments
    written = find_launches(LAUNCHES.replace("`", "\n"), "launches.md")
    assert [launch.kernel for launch in written] == ["produce", "consume", "copy"]


def test_launch_files_of_the_page_are_read_and_mean_the_same() -> None:
    short, long = (parse_launch_file(block, Path("cases.json")).cases for block in find_blocks(LAUNCHES, "json"))
    assert [case.case for case in short] == ["in order", "shuffled"]
    assert [argument.dtype for argument in short[1].arguments[:3] if hasattr(argument, "dtype")] == [
        "f32",
        "i32",
        "f32",
    ]
    assert (short[1].grid, short[1].block) == (long[0].grid, long[0].block)
    assert len(short[1].arguments) == len(long[0].arguments)


def test_page_of_rules_is_what_the_rules_say() -> None:
    assert (ROOT / "docs" / "rules.md").read_text(encoding="utf-8") == render_rules()


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        prose = re.sub(r"^ {4}.*$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
        for target in re.findall(r"\]\(([^)#:]+)\)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
