"""A launch that hangs fails what it has to fail, everywhere: the command, pytest, SARIF, comparisons, a GPU's run."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from sectorwise.analysis.comparison import compare_analyses
from sectorwise.analysis.reading import read_analysis
from sectorwise.analyze import analyze
from sectorwise.errors import DeviceRunError
from sectorwise.report import comparison as report
from sectorwise.report import sarif
from sectorwise.report.assertions import check_clean
from sectorwise.report.html import page as html
from sectorwise.report.json import render as render_json
from sectorwise.report.page import Page, Role
from sectorwise.verify import run as story
from sectorwise.verify.driver import Gpu
from sectorwise.verify.profiler import Profiler
from tests.cli.commands import run

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis, KernelAnalysis

SOURCE = """\
extern "C" __global__ void meet(unsigned* arrived, float* out, unsigned all) {
    __shared__ float tile[32][32];
    if (threadIdx.x == 0) {
        atomicAdd(arrived, 1u);
        while (*(volatile unsigned*)arrived < all) {}
    }
    __syncthreads();
    for (int i = 0; i < 8; ++i) tile[threadIdx.x][i] = i;
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = tile[threadIdx.x / 4][threadIdx.x % 8];
}
"""
MEETS = "meet<<<4, 32>>>(u32[1], f32[128], 4)"
HANGS = "meet<<<4, 32>>>(u32[1], f32[128], 5)"
MAY_HANG = "meet<<<300, 1024>>>(u32[1], f32[10592], 300)"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hangs") / "meet.cu"
    path.write_text(SOURCE, encoding="utf-8")
    return path


@cache
def look(path: Path, launch: str) -> Analysis:
    return analyze(path, launch, follow_caches=True, remedies=True)


def only(analysis: Analysis) -> KernelAnalysis:
    (kernel,) = analysis.kernels
    return kernel


def test_a_hang_is_an_error_with_its_line_and_no_time(source: Path) -> None:
    kernel = only(look(source, HANGS))
    worst = kernel.findings[0]
    assert (worst.code, worst.rule, worst.severity) == ("SW903", "endless-wait", "error")
    assert worst.location is not None
    assert worst.location.line == 5
    assert worst.message == (
        "4 warps repeat a loop here in which nothing changes any more: the launch hangs; others wait at barriers for"
        " these"
    )
    assert [finding.code for finding in kernel.findings].count("SW903") == 1
    assert kernel.time is None
    assert all(not finding.remedies for finding in kernel.findings)
    assert kernel.limitations == ()


def test_what_ends_has_a_time_and_no_such_finding(source: Path) -> None:
    kernel = only(look(source, MEETS))
    assert kernel.hangs == ()
    assert "SW903" not in {finding.code for finding in kernel.findings}
    assert kernel.time is not None


@pytest.mark.parametrize(("launch", "fail_on", "code"), [(HANGS, "error", 1), (MEETS, "error", 0), (HANGS, "never", 0)])
def test_check_fails_on_it(
    capsys: pytest.CaptureFixture[str], source: Path, launch: str, fail_on: str, code: int
) -> None:
    outcome = run(capsys, "check", source, "--launch", launch, "--fail-on", fail_on)
    assert outcome.code == code
    words = " ".join(outcome.out.split())  # a long path makes lines of this
    assert ("SW903 endless wait: " in words) == (launch == HANGS)
    assert ("`sectorwise explain SW903`" in words) == (launch == HANGS)


def test_a_hang_that_is_not_certain_is_a_warning(source: Path) -> None:
    """300 blocks of 32 warps wait for each other, of which two at a time fit each of 132 SMs."""
    kernel = only(analyze(source, MAY_HANG))
    (finding,) = [each for each in kernel.findings if each.code == "SW903"]
    assert finding.severity == "warning"
    assert "which do not fit beside, ends it" in finding.message
    assert {hang.is_certain for hang in kernel.hangs} == {False}


def test_a_wait_for_the_host_can_be_allowed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "waits.cu"
    wait = "while (*(volatile unsigned*)arrived < all) {}"
    source.write_text(SOURCE.replace(wait, f"{wait}  // sectorwise: allow SW903"), encoding="utf-8")
    assert run(capsys, "check", source, "--launch", HANGS, "--fail-on", "error").code == 0


def test_no_promise_of_cleanness_holds(source: Path) -> None:
    with pytest.raises(AssertionError, match="SW903 endless-wait"):
        check_clean(look(source, HANGS), fail_on="error", allow_unknown=True)
    check_clean(look(source, MEETS), fail_on="error")


def test_the_document_has_it_and_can_be_read_again(source: Path, tmp_path: Path) -> None:
    analysis = look(source, HANGS)
    text = render_json(analysis)
    schema = json.loads(resources.files("sectorwise.report").joinpath("analysis.schema.json").read_text("utf-8"))
    jsonschema.validate(json.loads(text), schema, cls=jsonschema.Draft202012Validator)
    (entry,) = json.loads(text)["kernels"]
    spin = entry["hangs"][0]
    assert (spin["code"], spin["waiting"], spin["warps"], spin["is_certain"]) == ("SW903", "loop", 4, True)
    assert {each["waiting"] for each in entry["hangs"]} == {"loop", "lanes"}
    document = tmp_path / "hang.json"
    document.write_text(text, encoding="utf-8")
    assert only(read_analysis(document)).hangs == only(analysis).hangs
    del entry["hangs"]
    document.write_text(json.dumps({**json.loads(text), "kernels": [entry]}), encoding="utf-8")
    assert only(read_analysis(document)).hangs == ()


def test_code_scanning_and_pages_have_it(source: Path) -> None:
    (result,) = [
        each for each in json.loads(sarif.render(look(source, HANGS)))["runs"][0]["results"] if each["level"] == "error"
    ]
    assert result["ruleId"] == "SW903"
    assert "SW903" in html.render(look(source, HANGS))


@pytest.mark.parametrize(
    ("before", "after", "said", "role"),
    [
        (MEETS, HANGS, "hangs after: it has no time, and `check` says where", Role.BAD),
        (HANGS, HANGS, "hangs after, as it did before: it has no time, and `check` says where", Role.BAD),
        (HANGS, MEETS, "ends after, and hung before: there is no time to compare with", Role.UNKNOWN),
    ],
)
def test_what_hangs_is_never_better(source: Path, before: str, after: str, said: str, role: Role) -> None:
    (change,) = compare_analyses(look(source, before), look(source, after)).kernels
    assert report.describe_verdict(change) == said
    assert report.judge(change) is role


def test_comparisons_name_it_among_what_changed(source: Path) -> None:
    shown = report.render(compare_analyses(look(source, MEETS), look(source, HANGS)), Page())
    assert ["hangs", "no", "yes"] in [line.split() for line in shown.splitlines()]


def test_no_gpu_is_given_what_would_not_return(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_given: object, **_named: object) -> None:
        raise AssertionError("it was launched")

    monkeypatch.setattr(story, "open_driver", lambda: None)
    monkeypatch.setattr(story, "describe_gpu", lambda _driver: Gpu("NVIDIA H200", (9, 0), "580"))
    monkeypatch.setattr(story, "find_profiler", lambda _ncu: Profiler(Path("ncu"), (2025, 3, 1)))
    monkeypatch.setattr(story, "_count", launch)
    with pytest.raises(DeviceRunError, match=r"meet is not launched on the GPU: .*meet\.cu:5: 4 warps repeat a loop"):
        story.verify_here(lambda _device: look(source, HANGS))
