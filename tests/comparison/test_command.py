from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from sectorwise.analysis.comparison import compare_analyses
from sectorwise.report import comparison as report
from sectorwise.report import json as document
from sectorwise.report.page import Page, measure
from tests.cli.commands import run
from tests.comparison.kernels import EXAMPLE, ROOT, analyze_example

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

CHOSEN = ("--kernel", "transpose_tile", "--kernel", "transpose_padded")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    path = tmp_path / "transpose.json"
    path.write_text(document.render(analyze_example()), encoding="utf-8")
    return path


def test_report(
    stored: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "400")  # so that no line is cut or wrapped, however long the path of this checkout is
    outcome = run(capsys, "compare", stored, stored, *CHOSEN)
    assert (outcome.code, outcome.err) == (0, "")
    shown = outcome.out.replace(str(ROOT) + "/", "")
    assert re.search(r"bank conflicts +\d", shown)
    # What the models say may change; which rows there are, and what is counted, may not.
    masked = re.sub(r"[+-]?\d[\d.,]* ?(ns|us|%)|x \d[\d.]*|[\d.]+ times (as fast|slower)", "#", shown)
    masked = re.sub(r"(roofline bound|in flight an SM) .*", r"\1", masked)
    # Whether causes all but cancel is a matter of the models, too: then there are no shares.
    masked = re.sub(r"^ +they work against .*\n| +share$| +# of the change$", "", masked, flags=re.MULTILINE)
    masked = re.sub(r"( +#)+$", " #", masked, flags=re.MULTILINE)
    assert re.sub(r" +", " ", masked) == snapshot


def test_sources_and_documents_give_the_same(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [
        run(capsys, "compare", *sides, *CHOSEN, "--format", "json") for sides in ((EXAMPLE, stored), (stored, EXAMPLE))
    ]
    assert [outcome.code for outcome in outcomes] == [0, 0]
    assert outcomes[0].out == outcomes[1].out
    found = json.loads(outcomes[0].out)
    assert found["schema"] == "sectorwise.comparison/1"
    (change,) = found["kernels"]
    assert sum(cause["share"] for cause in change["causes"]) == pytest.approx(1)
    (line,) = [line for line in change["lines"] if line["before"]["line"] == 36]
    assert (line["before"]["wavefronts"], line["after"]["line"], line["after"]["wavefronts"]) == (262_144, 52, 8192)


def test_other_schema_is_refused_and_nothing_is_written(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"schema": "sectorwise.analysis/0"}')
    outcome = run(capsys, "compare", old, stored, "-o", tmp_path / "out.txt")
    assert (outcome.code, outcome.out) == (2, "")
    assert "'sectorwise.analysis/1', which is the only one supported, got 'sectorwise.analysis/0'" in outcome.err
    assert not (tmp_path / "out.txt").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--kernel", "nope"), "there is no kernel 'nope'; there are: transpose_naive"),
        (("--kernel", "a", "--kernel", "b", "--kernel", "c"), "got a, b, c"),
    ],
)
def test_kernels_that_cannot_be_chosen(
    stored: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    outcome = run(capsys, "compare", stored, stored, *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err


@pytest.mark.parametrize("width", [80, 120])
def test_pages_are_narrow_plain_and_coloured_alike(width: int) -> None:
    found = compare_analyses(analyze_example(), analyze_example())
    plain = report.render(found, Page(width=width))
    assert max(measure(line) for line in plain.splitlines()) <= width
    assert report.render(found, Page(width=width, unicode=False)).isascii()
    assert re.sub(r"\x1b\[[0-9;]*m", "", report.render(found, Page(width=width, color=True))) == plain
