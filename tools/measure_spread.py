"""Turns launch files into how far apart the times of one launch lie when it is measured again and again.

Needs what `tools/record_truth.py` needs: an NVIDIA GPU with its driver, and `ncu` on the PATH or given with --ncu.

    python -m tools.measure_spread tests/measured/h200/transpose.json tests/measured/h200/gemm.json -o spread.json

Every case is launched --times times, one round after the other, each time under Nsight Compute with caches flushed, as
the rows were measured. What is written is an object with the GPU's `device`, the `date` and `times_ns`: by file and
case the times, in the order of the rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from tools.record_truth import MEMORY_TOTALS, find_cubin, profile, read_report

METRICS = [MEMORY_TOTALS["time_ns"]]


def repeat_cases(path: Path, times: int, pattern: str, folder: Path) -> Path:
    """Write a launch file in which the cases whose name fits follow each other so many times; its place."""
    document = json.loads(path.read_text())
    chosen = [case for case in document["cases"] if re.fullmatch(pattern, case["name"])]
    document["cases"] = [case for _ in range(times) for case in chosen]
    place = folder / path.name
    place.write_text(json.dumps(document))
    return place


def measure(path: Path, times: int, pattern: str, ncu: str) -> dict[str, list[int]]:
    """The times of each case of a file, in ns."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        launches = repeat_cases(path, times, pattern, folder)
        cases = json.loads(launches.read_text())["cases"]
        if not cases:
            return {}
        cubin = find_cubin(path, json.loads(path.read_text())["source"])
        profile(ncu, [launches], [cubin], folder, METRICS, source_view=False, only_view=False)
        rows = read_report(folder / "report.ncu-rep", ncu)
    found: dict[str, list[int]] = {}
    for case, row in zip(cases, rows, strict=True):
        found.setdefault(case["name"], []).append(row["totals"]["time_ns"])
    return found


def main() -> None:
    """Measure the cases of launch files, and write what was measured after each file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("launches", type=Path, nargs="+")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--cases", default=".*", help="names of cases, as a regular expression")
    parser.add_argument("--device", default="NVIDIA H200")
    parser.add_argument("--ncu", default="ncu")
    options = parser.parse_args()
    times_ns: dict[str, dict[str, list[int]]] = {}
    for path in options.launches:
        times_ns[f"{path.parent.name}/{path.stem}"] = measure(path, options.times, options.cases, options.ncu)
        document = {
            "device": options.device,
            "date": datetime.now(tz=UTC).date().isoformat(),
            "times_ns": times_ns,
        }
        options.output.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
