"""Turns a command into a report of Nsight Compute, and each way in which that fails into what to do about it."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.errors import CountersForbiddenError, ProfilerError
from sectorwise.verify.counters import TIME_METRIC, TOTAL_COUNTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

OLDEST_VERSION: Final = (2021, 2)
"""The release that gave the source view's metrics their names (Nsight Compute release notes, 2021.2)."""

_PLACES: Final = (
    "/usr/local/cuda/bin/ncu",
    "/opt/nvidia/nsight-compute/*/ncu",
    "/usr/local/NVIDIA-Nsight-Compute*/ncu",
)
_MODULE_PLACES: Final = ("extras/python", "*/extras/python", "nsight-compute*/extras/python")
_VERSION: Final = re.compile(r"Version (\d+)\.(\d+)\.(\d+)")
_UNKNOWN_METRIC: Final = re.compile(r"[Ff]ailed to find metric|[Uu]nknown metric|[Ii]nvalid metric")
_SUM: Final = ".sum"
_SECTIONS: Final = ("SourceCounters", "LaunchStats")
_TIMEOUT_SECONDS: Final = 3600
_QUERY_TIMEOUT_SECONDS: Final = 120
_MOST_LINES: Final = 8
_GET = "Nsight Compute comes with the CUDA toolkit, or alone from developer.nvidia.com/nsight-compute"
_OTHERWISE = "or verify a report that was made elsewhere: --report profile.ncu-rep"


@dataclass(frozen=True, slots=True)
class Profiler:
    """Nsight Compute's command line: its executable and its version."""

    path: Path
    version: tuple[int, int, int]

    @property
    def name(self) -> str:
        """`Nsight Compute 2025.3.1`."""
        return f"Nsight Compute {'.'.join(map(str, self.version))}"

    @property
    def module_folders(self) -> tuple[Path, ...]:
        """Folders in which its own module for reading reports may lie."""
        home = self.path.resolve().parent
        found = [folder for base in (home, home.parent) for place in _MODULE_PLACES for folder in base.glob(place)]
        found += Path("/opt/nvidia/nsight-compute").glob("*/extras/python")
        return tuple(dict.fromkeys(found))


def find_profiler(given: Path | None = None) -> Profiler:
    """The Nsight Compute that was given, that of the PATH, or the newest of the usual places.

    Raises:
        ProfilerError: there is none, it does not run, or it is too old; the text says what to do.
    """
    path = given or _search()
    if path is None:
        raise ProfilerError(f"ncu is not found, neither on the PATH nor in the usual places. {_GET}; {_OTHERWISE}")
    try:
        said = subprocess.run(  # noqa: S603 - the profiler that was found, no shell
            [str(path), "--version"], capture_output=True, text=True, timeout=_QUERY_TIMEOUT_SECONDS, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ProfilerError(f"{path} cannot be run: {error}. {_GET}; {_OTHERWISE}") from None
    return Profiler(path, read_version(said, path))


def read_version(said: str, path: Path) -> tuple[int, int, int]:
    """The version in what `ncu --version` prints.

    Raises:
        ProfilerError: it is not Nsight Compute, or a release that lacks the source view's metrics.
    """
    found = _VERSION.search(said)
    if found is None:
        raise ProfilerError(f"{path} is not Nsight Compute: `--version` prints {said.strip()[:80]!r}. {_GET}")
    version = (int(found[1]), int(found[2]), int(found[3]))
    if version < OLDEST_VERSION:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise ProfilerError(
            f"{path} is Nsight Compute {'.'.join(map(str, version))}, which is too old: {oldest} is the first release "
            f"with the counters of the source view. {_GET}"
        )
    return version


def profile(profiler: Profiler, command: Sequence[str], report: Path) -> None:
    """Run a command under the profiler, which leaves its report at `report`.

    Raises:
        CountersForbiddenError: this user or machine may not read counters.
        ProfilerError: the profiler failed otherwise, or the command did under it; the text has its own words.
    """
    wanted = [counter.metric for counter in TOTAL_COUNTERS if counter.metric.endswith(_SUM)] + [TIME_METRIC]
    done = _profile_metrics(profiler, command, report, wanted)
    if done.returncode and _UNKNOWN_METRIC.search(done.stdout + done.stderr):
        # Asking what this GPU has takes seconds: only where some counter is not known.
        done = _profile_metrics(profiler, command, report, choose_metrics(profiler, wanted))
    said = f"{done.stdout}\n{done.stderr}"
    explain_failure(profiler, said)
    if done.returncode or not report.is_file():
        raise ProfilerError(f"{profiler.name} made no report:\n{_shorten(said)}")


def _profile_metrics(
    profiler: Profiler, command: Sequence[str], report: Path, metrics: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    options = ["--force-overwrite", "--export", str(report), "--clock-control", "none", "--target-processes", "all"]
    options += [word for section in _SECTIONS for word in ("--section", section)]
    return _run([str(profiler.path), *options, "--metrics", ",".join(metrics), *command], _TIMEOUT_SECONDS)


def explain_failure(profiler: Profiler, said: str) -> None:
    """Raise what the profiler's output says of why nothing was counted; return where it says nothing of the kind."""
    if "ERR_NVGPUCTRPERM" in said:
        raise CountersForbiddenError(
            "the driver lets only administrators read the GPU's counters (ERR_NVGPUCTRPERM): run verify as root, or "
            "let the administrator set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module "
            f"(developer.nvidia.com/ERR_NVGPUCTRPERM); {_OTHERWISE}"
        )
    if "Failed to initialize the profiler" in said or "LibraryNotLoaded" in said:
        raise CountersForbiddenError(
            f"{profiler.name} cannot reach the counters on this machine, as in many containers and sandboxes; "
            f"{_OTHERWISE}. Its words: {_shorten(said)}"
        )
    if re.search(r"not supported on (this )?(device|GPU)|[Uu]nsupported (GPU|device)", said):
        raise ProfilerError(f"{profiler.name} does not know this GPU, a newer release may: {_GET}\n{_shorten(said)}")
    if "No kernels were profiled" in said and "==ERROR==" not in said:
        raise ProfilerError(f"{profiler.name} saw no launch:\n{_shorten(said)}")


def choose_metrics(profiler: Profiler, wanted: Sequence[str]) -> list[str]:
    """Those of the metrics that this profiler knows for this GPU; all of them where it does not say."""
    known = set(_run([str(profiler.path), "--query-metrics"], _QUERY_TIMEOUT_SECONDS).stdout.split())
    return [metric for metric in wanted if not known or metric.removesuffix(_SUM) in known]


def _run(command: list[str], timeout_seconds: int) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - the profiler that was found, no shell
            command, capture_output=True, text=True, timeout=timeout_seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProfilerError(f"{command[0]} did not end within {timeout_seconds} s") from None
    except OSError as error:
        raise ProfilerError(f"{command[0]} cannot be run: {error.strerror}") from None


def _search() -> Path | None:
    found = shutil.which("ncu")
    if found is not None:
        return Path(found)
    places = [path for place in _PLACES for path in Path("/").glob(place.lstrip("/"))]
    return max(places, key=str, default=None)


def _shorten(said: str) -> str:
    """What matters of the profiler's output: its errors, or else its last lines."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if "==ERROR==" in line or line.startswith("error:")]
    return "\n".join(f"  {line}" for line in (errors or lines)[-_MOST_LINES:])
