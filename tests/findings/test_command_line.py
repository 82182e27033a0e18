"""Rules on the command line: selected, ignored, allowed, failed on, compared with a baseline, explained, listed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from sectorwise.rules.table import RULES
from tests.cli.commands import Outcome, run

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = """\
// sectorwise: launch columns<<<2, 32>>>(f32[2048], f32[2048])
extern "C" __global__ void columns(const float* in, float* out) {
    __shared__ float tile[32][32];
    int i = blockIdx.x * 1024 + threadIdx.x * 32;
    for (int k = 0; k < 32; ++k) tile[threadIdx.x][k] = in[i + k];
    __syncwarp();
    for (int k = 0; k < 32; ++k) out[blockIdx.x * 1024 + k * 32 + threadIdx.x] = tile[k][threadIdx.x];
}
"""
LOAD_LINE = "tile[threadIdx.x][k] = in[i + k];"


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "columns.cu"
    path.write_text(KERNEL, encoding="utf-8")
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> Outcome:
    return run(capsys, "check", "columns.cu", *arguments)


def list_codes(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    outcome = check(capsys, "--format", "json", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    (kernel,) = json.loads(outcome.out)["kernels"]
    return sorted({finding["code"] for finding in kernel["findings"] if finding["severity"] != "note"})


@pytest.mark.usefixtures("source")
def test_selecting_and_ignoring(capsys: pytest.CaptureFixture[str]) -> None:
    assert list_codes(capsys) == ["SW101", "SW202"]
    assert list_codes(capsys, "--select", "SW2") == ["SW202"]
    assert list_codes(capsys, "--select", "SW1,SW2", "--ignore", "store-bank-conflict") == ["SW101"]
    assert list_codes(capsys, "--ignore", "SW101", "--ignore", "SW202") == []


def test_a_comment_allows_what_its_line_does(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source.write_text(KERNEL.replace(LOAD_LINE, f"{LOAD_LINE}  // sectorwise: allow SW101"), encoding="utf-8")
    assert list_codes(capsys) == ["SW202"]
    source.write_text(KERNEL.replace(LOAD_LINE, f"{LOAD_LINE}  // sectorwise: allow SW1, SW202"), encoding="utf-8")
    assert list_codes(capsys) == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("allow SW211", "columns.cu:5: no rule is called 'SW211'; the nearest: SW201"),
        ("allow", "columns.cu:5: 'allow' names no code"),
    ],
)
def test_a_comment_that_allows_nothing_is_an_error(
    source: Path, capsys: pytest.CaptureFixture[str], comment: str, message: str
) -> None:
    source.write_text(KERNEL.replace(LOAD_LINE, f"{LOAD_LINE}  // sectorwise: {comment}"), encoding="utf-8")
    outcome = check(capsys)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {message}")


@pytest.mark.usefixtures("source")
def test_failing_on_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys).code == 0
    assert check(capsys, "--fail-on", "error").code == 0
    failed = check(capsys, "--fail-on", "warning", "--ignore", "SW4")
    assert (failed.code, failed.err) == (1, "failed:\n  2 warnings\n")
    assert "SW101 uncoalesced-access" in failed.out


def test_project_settings_and_options_over_them(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = source.parent / "pyproject.toml"
    settings.write_text('[tool.sectorwise]\nselect = ["SW2"]\nfail-on = "warning"\ndevice = "a100-80-sxm"\n')
    outcome = check(capsys, "--format", "json")
    document = json.loads(outcome.out)
    assert outcome.code == 1
    assert [finding["code"] for finding in document["kernels"][0]["findings"]] == ["SW202"]
    assert document["device"]["id"] == "a100-80-sxm"
    assert list_codes(capsys, "--select", "SW1", "--fail-on", "never") == ["SW101"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('selct = ["SW2"]', "has no key 'selct'; did you mean select?"),
        ('select = "SW2"', "select must be a list of codes, got 'SW2'"),
        ('fail-on = "warnings"', "fail-on must be one of error, warning, note, never, got 'warnings'"),
        ("select = [", "pyproject.toml: "),
    ],
)
def test_settings_of_no_use_are_told(
    source: Path, capsys: pytest.CaptureFixture[str], table: str, message: str
) -> None:
    (source.parent / "pyproject.toml").write_text(f"[tool.sectorwise]\n{table}\n")
    outcome = check(capsys)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err


def test_baseline_fails_only_on_what_got_worse(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(capsys, "--write-baseline", "baseline.json", "--ignore", "SW4").code == 0
    text = (source.parent / "baseline.json").read_text(encoding="utf-8")
    assert sum('"code"' in line for line in text.splitlines()) == text.count('"code"') == 2

    moved = KERNEL.replace("extern", "// A comment that moves every line.\n\nextern")
    source.write_text(moved, encoding="utf-8")
    assert check(capsys, "--baseline", "baseline.json", "--ignore", "SW4").code == 0

    worse = moved.replace("= tile[k][threadIdx.x]", "= tile[threadIdx.x][k]")
    source.write_text(worse, encoding="utf-8")
    outcome = check(capsys, "--baseline", "baseline.json", "--ignore", "SW4")
    assert outcome.code == 1
    # The compiler makes 8 loads of 16 bytes of each row: 2 warps x 8 x (32 - 4).
    assert outcome.err.splitlines()[1:] == [
        "  columns.cu:9: SW201 load-bank-conflict: new, 448 L1 wavefronts shared beyond the ideal",
        "  the source changed since the baseline",
    ]


def test_baseline_tells_what_got_better(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, "--write-baseline", "baseline.json", "--ignore", "SW4")
    coalesced = KERNEL.replace("threadIdx.x * 32;", "threadIdx.x;").replace("in[i + k]", "in[i + 32 * k]")
    source.write_text(coalesced, encoding="utf-8")
    outcome = check(capsys, "--baseline", "baseline.json", "--ignore", "SW4")
    assert (outcome.code, outcome.err) == (
        0,
        "1 finding of baseline.json got better or went away: --write-baseline keeps it so\n",
    )
    # What is not looked for has not gone.
    assert check(capsys, "--baseline", "baseline.json", "--select", "SW2").err == ""


def test_an_edited_line_is_no_new_finding_where_it_costs_no_more(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(capsys, "--write-baseline", "baseline.json", "--ignore", "SW4")
    source.write_text(KERNEL.replace("in[i + k]", "in[k + i]"), encoding="utf-8")
    outcome = check(capsys, "--baseline", "baseline.json", "--ignore", "SW4")
    assert (outcome.code, outcome.err) == (0, "")
    dearer = KERNEL.replace("in[i + k]", "in[k + i] + in[k + i + 1024 * (k == 5)]").replace("f32[2048]", "f32[4096]", 1)
    source.write_text(dearer, encoding="utf-8")
    assert "SW101 uncoalesced-access: new, " in check(capsys, "--baseline", "baseline.json", "--ignore", "SW4").err


def test_baseline_knows_numbers_that_are_better_when_they_are_larger(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A note on idle SMs: from 2 blocks of 132 to one is worse, and back is better."""
    arguments = ("--select", "SW404", "--fail-on", "note", "--baseline", "baseline.json")
    one = KERNEL.replace("<<<2, 32>>>", "<<<1, 32>>>")
    check(capsys, "--select", "SW404", "--write-baseline", "baseline.json")
    path = source.parent / "baseline.json"
    text = path.read_text(encoding="utf-8")
    assert '"excess": 130' in text
    path.write_text(text.replace("2x1x1 32x1x1", "1x1x1 32x1x1"), encoding="utf-8")
    source.write_text(one, encoding="utf-8")
    outcome = check(capsys, *arguments)
    assert "SW404 idle-multiprocessors: blocks short of the ideal: 130 in the baseline, now 131" in outcome.err


def test_baseline_tells_a_changed_compiler(source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check(capsys, "--write-baseline", "baseline.json", "--ignore", "SW4")
    path = source.parent / "baseline.json"
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    compiler = document["compiler"]
    grown = document["findings"][0]["excess"]
    older = text.replace(compiler, "NVRTC 12.9").replace(f'"excess": {grown}', f'"excess": {grown - 1}')
    path.write_text(older, encoding="utf-8")
    outcome = check(capsys, "--baseline", "baseline.json", "--ignore", "SW4")
    assert outcome.code == 1
    assert f"{grown - 1:,} in the baseline, now {grown:,}" in outcome.err
    assert f"the compiler changed since the baseline (NVRTC 12.9 -> {compiler}), the source did not" in outcome.err
    assert path.read_text(encoding="utf-8") == older


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot read the baseline baseline.json: No such file or directory; --write-baseline"),
        ("{", "baseline.json is no baseline: "),
        ('{"schema": "sectorwise.baseline/9"}', "expected a baseline of schema 'sectorwise.baseline/1', got "),
        ('{"schema": "sectorwise.baseline/1", "findings": [{}]}', "baseline.json is no whole baseline: KeyError: "),
    ],
)
def test_baseline_of_no_use_is_told(
    source: Path, capsys: pytest.CaptureFixture[str], text: str | None, message: str
) -> None:
    path = source.parent / "baseline.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    outcome = check(capsys, "--baseline", "baseline.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert not path.exists() if text is None else path.read_text(encoding="utf-8") == text


@pytest.mark.usefixtures("source")
def test_github_commands_name_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = check(capsys, "--format", "github", "--select", "SW101")
    assert outcome.out == (
        "::warning file=columns.cu,line=5,title=SW101 uncoalesced-access::columns: global load of 4 B: lanes step "
        "128 B: 32 sectors for 128 useful bytes, 12 %25; 32 instructions alike%0Ahelp: let neighbouring lanes "
        "(threadIdx.x) take neighbouring addresses, or go through shared memory\n"
    )


def test_rules_are_listed_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    listed = run(capsys, "rules")
    assert listed.code == 0
    assert all(f"{rule.code} {rule.name} ({rule.severity}" in listed.out for rule in RULES)
    explained = run(capsys, "explain", "SW201")
    assert explained.out.startswith("SW201 load-bank-conflict (warning)\n")
    assert "float tile[32][33];" in explained.out
    assert run(capsys, "explain", "load-bank-conflict").out == explained.out
    unknown = run(capsys, "explain", "SW21")
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("error: no rule is called 'SW21'; the nearest: SW201 (load-bank-conflict)")
