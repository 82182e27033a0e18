"""What people get wrong, and what they are told: expected, given, where. Exit code 2, and nothing half-written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import elftools
import msgspec
import numpy as np
import pytest

import sectorwise
from tests.cli.commands import run
from tests.measured.rows import FOLDER

COPY = """\
extern "C" __global__ void copy(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i];
}
"""
ARGUMENTS = "f32[1024], f32[1024], n=1024"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    path = tmp_path / "copy.cu"
    path.write_text(COPY)
    return path


def test_source_that_does_not_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.cu"
    path.write_text("// sectorwise: launch k<<<1, 32>>>(f32[32])\n__global__ void k(float* p) {\n    p[0] = valu;\n}\n")
    outcome = run(capsys, "check", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{path.name}(3)" in outcome.err or f"{path.name}:3" in outcome.err
    assert 'identifier "valu" is undefined' in outcome.err


@pytest.mark.parametrize(
    ("launch", "said"),
    [
        ("copy<<<4, 256>>>(f32[1024], f32[1024])", ["3 arguments", "2"]),
        (f"copy<<<4, 2048>>>({ARGUMENTS})", ["1,024", "2,048"]),
        (f"copy<<<4, 256, 300000>>>({ARGUMENTS})", ["300,000", "232,448"]),
        (f"copy<<<0, 256>>>({ARGUMENTS})", ["0"]),
        ("copy<<<4, 256>>>(f32[1024], f32[1024], i64(5))", ["i64", "4"]),
        ("copy<<<4, 256>>>(f32[1024], f32[1024], n=5000000000)", ["5000000000"]),
        ("copy<<<4, x>>>(f32[1024], f32[1024], n=4)", ["x"]),
        ("copy<<<4, 256>>(f32[1024])", ["expected '>>>'", "got '>>'"]),
    ],
)
def test_launch_that_does_not_fit(copy: Path, capsys: pytest.CaptureFixture[str], launch: str, said: list[str]) -> None:
    outcome = run(capsys, "check", copy, "--launch", launch)
    assert (outcome.code, outcome.out) == (2, "")
    message, shown, carets = outcome.err.splitlines()[:3]
    assert message.startswith("error: --launch: ")
    assert shown.strip() == launch
    assert set(carets.strip()) == {"^"}
    assert [word for word in said if word not in message.replace("2048", "2,048").replace("1024", "1,024")] == []


def test_caret_of_a_comment_names_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "copy.cu"
    path.write_text(f"\n// sectorwise: launch copy<<<4, 256>>>(f32[oops], f32[4], n=4)\n{COPY}")
    outcome = run(capsys, "check", path)
    assert outcome.code == 2
    message, shown, carets = outcome.err.splitlines()[:3]
    assert message.startswith("error: copy.cu:2: ")
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "oops"


def test_no_launch_says_how_to_give_one(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", copy)
    assert outcome.code == 2
    assert "no launch is known" in outcome.err
    assert "--launch 'kernel<<<grid, block>>>" in outcome.err
    assert "  // sectorwise: launch copy<<<grid, block>>>(in=f32[count], out=f32[count], n=value)\n" in outcome.err


def test_file_of_another_kind_is_refused_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, said in (("k.txt", "not .txt"), ("k.json", "sectorwise check kernel.cu --launches")):
        (tmp_path / name).write_text("")
        outcome = run(capsys, "check", tmp_path / name)
        assert outcome.code == 2
        assert said in outcome.err


def test_mangled_kernel_is_called_as_its_author_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "copy.cu"
    path.write_text(COPY.replace('extern "C" ', ""))
    outcome = run(capsys, "check", path, "--launch", "copy<<<4, 256>>>(f32[1024])")
    assert outcome.err.startswith("error: --launch: copy takes 3 arguments (const float*, float*, int), got 1\n")


def test_unknown_kernel_names_the_nearest(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", copy, "--launch", f"copi<<<4, 256>>>({ARGUMENTS})")
    assert outcome.code == 2
    assert "no kernel 'copi'" in outcome.err
    assert "the nearest: copy" in outcome.err


def test_kernel_without_a_launch_is_named(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", copy, "--launch", f"copy<<<4, 256>>>({ARGUMENTS})", "--kernel", "cop")
    assert outcome.code == 2
    assert outcome.err == "error: no launch of kernel 'cop'; the nearest: copy\n"


def test_unknown_device_names_the_nearest(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", copy, "--device", "h20")
    assert outcome.code == 2
    assert "h200-sxm" in outcome.err


@pytest.mark.parametrize("device", ["v100", "mi300x"])
def test_device_without_sass_says_what_still_works(copy: Path, capsys: pytest.CaptureFixture[str], device: str) -> None:
    outcome = run(capsys, "check", copy, "--device", device)
    assert outcome.code == 2
    assert "sectors, wavefronts, occupancy" in outcome.err


def test_cubin_of_another_architecture(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", FOLDER / "gemv.sm_90.cubin", "--launches", FOLDER / "gemv.json", "--device", "a100")
    assert (outcome.code, outcome.out) == (2, "")
    assert "sm_90" in outcome.err
    assert "8.0" in outcome.err or "sm_80" in outcome.err


@pytest.mark.parametrize("kept", [0, 3, 40, 64, 1000, 6000])
def test_truncated_cubin_names_the_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str], kept: int) -> None:
    path = tmp_path / "cut.cubin"
    path.write_bytes((FOLDER / "gemv.sm_90.cubin").read_bytes()[:kept])
    outcome = run(capsys, "check", path, "--launches", FOLDER / "gemv.json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "cut.cubin" in outcome.err
    assert "byte" in outcome.err
    assert "Traceback" not in outcome.err


def test_missing_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", tmp_path / "gone.cu")
    assert (outcome.code, outcome.out) == (2, "")
    assert "gone.cu" in outcome.err


def test_file_of_an_unknown_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kernel.txt"
    path.write_text(COPY)
    outcome = run(capsys, "check", path, "--launch", f"copy<<<4, 256>>>({ARGUMENTS})")
    assert outcome.code == 2
    assert ".cu" in outcome.err
    assert ".cubin" in outcome.err


def test_unknown_option_is_an_error_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = run(capsys, "check", "x.cu", "--lanch", "k<<<1, 1>>>()")
    assert outcome.code == 2
    assert "--launch" in outcome.err


def test_launch_file_that_is_no_json(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    launches = tmp_path / "launches.json"
    launches.write_text('{"cases": [}')
    outcome = run(capsys, "check", copy, "--launches", launches)
    assert outcome.code == 2
    assert "launches.json:1" in outcome.err
    assert "^" in outcome.err


def test_an_error_leaves_the_output_as_it_was(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    report.write_text("before")
    launch = "copy<<<4, 256>>>(f32[1024], f32[1024])"
    assert run(capsys, "check", copy, "--launch", launch, "-o", report).code == 2
    assert report.read_text() == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy.cu", "report.json"]


def test_output_that_cannot_be_written(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "no" / "folder" / "report.json"
    outcome = run(capsys, "check", copy, "--launch", f"copy<<<4, 256>>>({ARGUMENTS})", "-o", report)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"cannot write {report}: No such file or directory" in outcome.err


def test_endless_kernel_stops_at_the_step_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "endless.cu"
    path.write_text(
        "// sectorwise: launch spin<<<1, 32>>>(i32[1])\n"
        "__global__ void spin(volatile int* flag) {\n"
        "    for (int turn = 0; flag[0] != turn + 1; ++turn) {\n"
        "    }\n"
        "}\n"
    )
    outcome = run(capsys, "check", path, "--step-limit", "2000")
    assert (outcome.code, outcome.out) == (2, "")
    assert "endless.cu:3" in outcome.err
    assert "2,000" in outcome.err
    assert "raise the step limit" in outcome.err


def run_without(tmp_path: Path, missing_note: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """A machine that has Python and our plain dependencies, and nothing else: no compiler, no disassembler."""
    folder = tmp_path / f"packages-{missing_note}"
    folder.mkdir()
    for module in (click, elftools, msgspec, np, sectorwise):
        home = Path(str(module.__file__)).parent
        (folder / home.name).symlink_to(home)
        libraries = home.with_name(f"{home.name}.libs")
        if libraries.exists():
            (folder / libraries.name).symlink_to(libraries)
    program = "from sectorwise.cli.main import main; main()"
    environment = {"PATH": "", "PYTHONPATH": str(folder), "SECTORWISE_CACHE_DIR": "off"}
    command = [sys.executable, "-S", "-c", program, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_missing_compiler_names_the_extra(copy: Path, tmp_path: Path) -> None:
    outcome = run_without(tmp_path, "nvrtc", "check", copy, "--launch", f"copy<<<4, 256>>>({ARGUMENTS})")
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "NVRTC" in outcome.stderr
    assert "pip install 'sectorwise[cuda]'" in outcome.stderr


def test_missing_disassembler_names_the_extra(tmp_path: Path) -> None:
    cubin, launches = FOLDER / "gemv.sm_90.cubin", FOLDER / "gemv.json"
    outcome = run_without(tmp_path, "nvdisasm", "check", cubin, "--launches", launches)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "nvdisasm" in outcome.stderr
    assert "pip install 'sectorwise[cuda]'" in outcome.stderr
