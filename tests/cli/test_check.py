from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from sectorwise.cli.progress import draw_bar
from tests.cli.commands import run
from tests.measured.rows import FOLDER

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = "examples/transpose.cu"


@pytest.fixture
def at_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.usefixtures("at_root")
def test_example_report(capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    outcome = run(capsys, "check", EXAMPLE)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == snapshot


@pytest.mark.usefixtures("at_root")
def test_example_document_says_what_the_comments_promise(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", EXAMPLE, "--format", "json")
    document = json.loads(outcome.out)
    schema = json.loads(resources.files("sectorwise.report").joinpath("analysis.schema.json").read_text())
    jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
    naive, tile, padded = document["kernels"]
    worst = [max(site["sectors"] / site["executed"] for site in kernel["sites"]) for kernel in (naive, tile, padded)]
    assert worst[0] == 32
    assert worst[1:] == [4, 4]
    conflicts = [
        k["totals"]["shared_wavefronts"] / (k["totals"]["shared_wavefronts_ideal"] or 1) for k in (naive, tile, padded)
    ]
    assert conflicts == [0, 16.5, 1]
    assert [kernel["limitations"] for kernel in document["kernels"]] == [[], [], []]
    assert {site["location"]["file"] for site in naive["sites"]} == {EXAMPLE}


@pytest.mark.usefixtures("at_root")
def test_measured_cubin_with_its_launch_file(capsys: pytest.CaptureFixture[str]) -> None:
    family = FOLDER.relative_to(ROOT) / "transpose"
    outcome = run(
        capsys,
        *("check", f"{family}.sm_90.cubin", "--launches", f"{family}.json"),
        *("--kernel", "k_tr_pad", "--format", "json"),
    )
    assert (outcome.code, outcome.err) == (0, "")
    document = json.loads(outcome.out)
    assert [kernel["case"] for kernel in document["kernels"]] == ["k_tr_pad"]
    assert document["tool"]["compiler"] is None
    assert {site["location"]["file"] for site in document["kernels"][0]["sites"]} == {f"{family}.cu"}


@pytest.mark.usefixtures("at_root")
def test_output_goes_to_a_file_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    outcome = run(capsys, "check", EXAMPLE, "--output", report)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert report.read_text(encoding="utf-8").startswith("sectorwise ")
    assert "\x1b" not in report.read_text(encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["report.txt"]
    assert report.stat().st_mode & 0o777 == 0o666 & ~read_umask()


def read_umask() -> int:
    import os

    umask = os.umask(0o022)
    os.umask(umask)
    return umask


@pytest.mark.usefixtures("at_root")
def test_output_through_a_link_keeps_the_link(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("before")
    link.symlink_to(target)
    assert run(capsys, "check", EXAMPLE, "--format", "json", "-o", link).code == 0
    assert link.is_symlink()
    assert json.loads(target.read_text(encoding="utf-8"))["schema"] == "sectorwise.analysis/1"


@pytest.mark.usefixtures("at_root")
def test_output_to_a_device_writes_to_the_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "check", EXAMPLE, "-o", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def call(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    command = [sys.executable, "-c", "from sectorwise.cli.main import main; main()", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_answer_comes_soon_and_a_pipe_gets_no_bar_and_no_colours(tmp_path: Path) -> None:
    started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    outcome = call("check", EXAMPLE, SECTORWISE_CACHE_DIR=str(tmp_path))
    # Two seconds on an idle machine. Not by the clock: tests share theirs.
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - started < 10
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert "\x1b" not in outcome.stdout
    assert "\r" not in outcome.stdout


def test_terminal_without_unicode_gets_ascii() -> None:
    outcome = call("check", EXAMPLE, PYTHONIOENCODING="ascii")
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.isascii()


def test_full_disk_behind_stdout_is_an_error_not_a_crash() -> None:
    command = [sys.executable, "-c", "from sectorwise.cli.main import main; main()", "check", EXAMPLE]
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        outcome = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (2, "error: cannot write to stdout: No space left on device\n")


def test_help_needs_no_numpy() -> None:
    script = (
        "import sys; from sectorwise.cli.main import main\ntry: main(['--help'])\nfinally: print(sorted(sys.modules))"
    )
    outcome = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0
    assert "check" in outcome.stdout
    assert "'numpy'" not in outcome.stdout


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version").out.startswith("sectorwise 0.")


@pytest.mark.parametrize(
    ("done", "total", "seconds", "bar"),
    [
        (0, 10, 3.0, f"run [{'':30}]   0 %"),
        (5, 10, 6.0, f"run [{'#' * 15:30}]  50 %, 6 s left"),
        (10, 10, 6.0, f"run [{'#' * 30}] 100 %, 0 s left"),
        (0, 0, 6.0, f"run [{'#' * 30}] 100 %, 0 s left"),
    ],
)
def test_bar(done: int, total: int, seconds: float, bar: str) -> None:
    assert draw_bar("run", done, total, seconds) == bar


def test_terminal_gets_a_bar_while_it_waits_and_colours() -> None:
    import os
    import pty

    main_end, end = pty.openpty()
    family = "tests/measured/h200/gemm"
    arguments = ("check", f"{family}.sm_90.cubin", "--launches", f"{family}.json")
    program = (
        "import sectorwise.cli.progress as progress; progress._SHOW_AFTER_SECONDS = 0\n"
        "from sectorwise.cli.main import main; main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], cwd=ROOT, env=environment, stdout=end, stderr=end
    ) as process:
        os.close(end)
        shown = b""
        while chunk := read_terminal(main_end):
            shown += chunk
    os.close(main_end)
    assert process.returncode == 0
    bars, _, report = shown.decode().rpartition("\r\x1b[2K")
    assert "executing [" in bars
    assert "s left" in bars
    assert "\x1b[1mk_mm_tile16<<<(16, 16), (16, 16)>>>\x1b[0m" in report
    assert "executing" not in report


def read_terminal(end: int) -> bytes:
    """What a terminal was sent, and nothing once its program has ended."""
    import os

    try:
        return os.read(end, 65536)
    except OSError:  # Linux answers so when nobody holds the other end any more
        return b""
