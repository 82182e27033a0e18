"""Turns a profiler's report into plain data in a process of its own: `python -m sectorwise.verify.reader FILE RESULT`.

NVIDIA's module for reading reports is machine code that ends the whole process where a report is broken, or where other
libraries that were loaded by then do not suit it (seen with that of Nsight Compute 2025.3).
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sectorwise.analysis.profile import Profile
from sectorwise.errors import MissingToolError, ReportError, SectorwiseError
from sectorwise.verify.reports import read_report

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT_SECONDS: Final = 1800
_ERRORS: Final[dict[str, type[SectorwiseError]]] = {
    "ReportError": ReportError,
    "MissingToolError": MissingToolError,
}
_PLACES: Final = (
    "opt/nvidia/nsight-compute/*/extras/python",
    "usr/local/cuda/nsight-compute*/extras/python",
    "usr/local/NVIDIA-Nsight-Compute*/extras/python",
)


def read_apart(path: Path, module_folders: Sequence[Path] = ()) -> Profile:
    """The launches of a report, as `read_report` gives them.

    Where the PyPI package `ncu-report` is not installed, its like is looked for in `module_folders` and where Nsight
    Compute usually lies.

    Raises:
        ReportError: the file is not there, or cannot be read; also where the module that reads it crashes on it.
        MissingToolError: nothing is installed that can read reports.
    """
    usual = [folder for place in _PLACES for folder in sorted(Path("/").glob(place), reverse=True)]
    with tempfile.TemporaryDirectory(prefix="sectorwise-report-") as name:
        result = Path(name) / "profile.pickle"
        command = [
            sys.executable,
            "-m",
            "sectorwise.verify.reader",
            str(path),
            str(result),
            *map(str, (*module_folders, *usual)),
        ]
        try:
            done = subprocess.run(  # noqa: S603 - our own module, no shell
                command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise ReportError(f"{path} could not be read within {_TIMEOUT_SECONDS} s") from None
        if not result.is_file():
            raise ReportError(f"{path} cannot be read: {_explain_end(done)}")
        found = pickle.loads(result.read_bytes())  # noqa: S301 - our own process wrote it a moment ago
    if isinstance(found, Profile):
        return found
    kind, text = found
    raise _ERRORS.get(kind, ReportError)(text)


def _explain_end(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        name = signal.Signals(-done.returncode).name
        return (
            f"NVIDIA's ncu_report crashed on it ({name}). Either it is no whole report of Nsight Compute, or another "
            "release of the reader is needed: pip install --upgrade ncu-report"
        )
    return (done.stderr.strip().splitlines() or [f"reading it ended with status {done.returncode}"])[-1]


def main() -> int:
    """Read the report of the command line and leave the result, or the error, in the file beside it."""
    path, result, *folders = (Path(word) for word in sys.argv[1:])
    found: Profile | tuple[str, str]
    try:
        found = read_report(path, folders)
    except SectorwiseError as error:
        found = (type(error).__name__, str(error))
    result.write_bytes(pickle.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
