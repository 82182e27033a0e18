"""Every way in which nothing can be counted has its own message, and says what to do."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from sectorwise.errors import CountersForbiddenError, DeviceRunError, MissingToolError, ProfilerError, ReportError
from sectorwise.verify import driver
from sectorwise.verify.profiler import Profiler, explain_failure, find_profiler, profile
from sectorwise.verify.reader import read_apart
from sectorwise.verify.reports import read_report
from tests.cli.commands import run

if TYPE_CHECKING:
    from pathlib import Path

PERMISSION = (
    "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA "
    "GPU Performance Counters on the target device 0."
)
SANDBOX = "==ERROR== Failed to initialize the profiler: LibraryNotLoaded"
NEW_GPU = "==ERROR== Profiling is not supported on device 0. Review the list of supported GPUs"
SOURCE = 'extern "C" __global__ void copy(const int* a, int* b) { b[threadIdx.x] = a[threadIdx.x]; }'


def write_program(folder: Path, script: str) -> Path:
    path = folder / "ncu"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_version_is_read_and_an_old_one_refused(tmp_path: Path) -> None:
    new = write_program(tmp_path, "echo 'NVIDIA (R) Nsight Compute'; echo 'Version 2025.3.1.0 (build 36398880)'")
    assert find_profiler(new).name == "Nsight Compute 2025.3.1"
    old = write_program(tmp_path, "echo 'Version 2020.1.0 (Build 28)'")
    with pytest.raises(ProfilerError, match=r"Nsight Compute 2020\.1\.0, which is too old: 2021\.2 is the first"):
        find_profiler(old)
    other = write_program(tmp_path, "echo 'usage: ncu [FILE]'")
    with pytest.raises(ProfilerError, match="is not Nsight Compute: `--version` prints 'usage"):
        find_profiler(other)


def test_without_a_profiler_it_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sectorwise.verify.profiler._PLACES", ())
    with pytest.raises(ProfilerError, match=r"ncu is not found.*CUDA toolkit.*--report profile\.ncu-rep"):
        find_profiler()
    with pytest.raises(ProfilerError, match="cannot be run"):
        find_profiler(tmp_path / "nothing")


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (PERMISSION, CountersForbiddenError, "ERR_NVGPUCTRPERM.*as root.*NVreg_RestrictProfilingToAdminUsers=0"),
        (SANDBOX, CountersForbiddenError, "cannot reach the counters on this machine, as in many containers"),
        (NEW_GPU, ProfilerError, "does not know this GPU, a newer release may"),
        ("==WARNING== No kernels were profiled.", ProfilerError, "saw no launch"),
    ],
)
def test_each_failure_says_what_to_do(tmp_path: Path, said: str, kind: type[ProfilerError], words: str) -> None:
    with pytest.raises(kind, match=words) as raised:
        explain_failure(Profiler(tmp_path / "ncu", (2025, 3, 1)), said)
    assert type(raised.value) is kind


def test_what_the_program_said_is_passed_on(tmp_path: Path) -> None:
    path = write_program(
        tmp_path, "echo 'error: launch 0 (k) failed on the GPU: CUDA_ERROR_ILLEGAL_ADDRESS' >&2; exit 2"
    )
    with pytest.raises(ProfilerError, match=r"made no report:\n  error: launch 0 \(k\) failed.*ILLEGAL_ADDRESS"):
        profile(Profiler(path, (2025, 3, 1)), ["program"], tmp_path / "out.ncu-rep")


def test_a_counter_that_a_gpu_lacks_is_left_out(tmp_path: Path) -> None:
    """The profiler refuses a metric; what it knows is asked for, and the run is repeated with that."""
    asked = tmp_path / "asked"
    path = write_program(
        tmp_path,
        f"""
case "$*" in
  *--query-metrics*) echo 'smsp__inst_executed  warps'; exit 0 ;;
  *op_atom*) echo '==ERROR== Failed to find metric l1tex__x'; exit 1 ;;
esac
echo "$@" > {asked}
touch "$3"
""",
    )
    report = tmp_path / "out.ncu-rep"
    profile(Profiler(path, (2025, 3, 1)), ["program", "plan"], report)
    words = asked.read_text().split()
    assert words[words.index("--metrics") + 1] == "smsp__inst_executed.sum"
    assert words[-2:] == ["program", "plan"]
    assert words[:3] == ["--force-overwrite", "--export", str(report)]


def test_without_a_driver_the_command_says_what_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(driver, "_LIBRARY", "libcuda-that-is-not-there.so")
    path = tmp_path / "copy.cu"
    path.write_text(SOURCE)
    outcome = run(capsys, "verify", path, "--launch", "copy<<<1, 32>>>(i32[32], i32[32])")
    assert (outcome.code, outcome.out) == (2, "")
    assert "there is no NVIDIA driver on this machine" in outcome.err
    assert "--report profile.ncu-rep" in outcome.err
    with pytest.raises(DeviceRunError):
        driver.open_driver()


def test_files_that_are_no_reports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="there is no file"):
        read_report(tmp_path / "missing.ncu-rep")
    for name, content in {"empty": b"", "text": b"hello\n" * 1000}.items():
        path = tmp_path / f"{name}.ncu-rep"
        path.write_bytes(content)
        with pytest.raises(ReportError, match=r"holds no launch of a kernel|cannot be read as a report"):
            read_report(path)


def test_without_the_reader_it_says_which_extra_brings_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ncu_report", None)
    path = tmp_path / "some.ncu-rep"
    path.write_bytes(b"")
    with pytest.raises(MissingToolError, match=r"pip install 'sectorwise\[verify\]'"):
        read_report(path)


def test_options_of_a_run_are_refused_beside_a_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    outcome = run(capsys, "verify", tmp_path / "a.cu", "--report", tmp_path / "a.ncu-rep", "--outputs")
    assert outcome.code == 2
    assert "--outputs, --ncu and --keep-report are for launches on this machine" in outcome.err


def test_a_report_is_kept_only_where_the_profiler_would_leave_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for kept, words in {"kept": "files that end in .ncu-rep", "nowhere/kept.ncu-rep": "there is no folder"}.items():
        outcome = run(capsys, "verify", tmp_path / "a.cu", "--keep-report", tmp_path / kept)
        assert (outcome.code, outcome.out) == (2, "")
        assert words in " ".join(outcome.err.split())


def test_a_reader_that_crashes_or_refuses_takes_nothing_along(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The module that reads reports is replaced by one that ends its process, as the real one did on a GPU machine."""
    path = tmp_path / "some.ncu-rep"
    path.write_bytes(b"NVR\x00")
    crashing = tmp_path / "crashing"
    crashing.mkdir()
    (crashing / "ncu_report.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(crashing), *sys.path]))
    with pytest.raises(ReportError, match=r"NVIDIA's ncu_report crashed on it \(SIGSEGV\)"):
        read_apart(path)
    (crashing / "ncu_report.py").write_text("def load_report(path):\n    raise RuntimeError('version 99 is unknown')\n")
    with pytest.raises(ReportError, match="cannot be read as a report of Nsight Compute: version 99 is unknown"):
        read_apart(path)
    (crashing / "ncu_report.py").write_text("raise ModuleNotFoundError(name='ncu_report')\n")
    with pytest.raises(MissingToolError, match=r"sectorwise\[verify\]"):
        read_apart(path)
