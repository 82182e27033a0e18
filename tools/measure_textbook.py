"""Turns the launches of tests/measured/textbook into rows of this machine's GPU, beside those that are recorded.

Needs a GPU of compute capability 9.0 and Nsight Compute's `ncu`, about a minute, and of this project nothing else:

    python -m tools.measure_textbook [claims | statements | mappings | splits | tensor] ... [-o FOLDER]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "measured" / "textbook"
CUBINS = {
    "claims": "claims.sm_90.cubin",
    "statements": "statements.sm_90.cubin",
    "mappings": "mappings.sm_90.cubin",
    "splits": "splits.sm_90.cubin",
    "tensor": "tensor.sm_90a.cubin",
}


def measure(family: str, folder: Path, ncu: str) -> None:
    """Record the launches of a family under the profiler, into `FAMILY.json` of a folder."""
    command = [sys.executable, str(Path(__file__).with_name("record_truth.py")), str(FOLDER / f"{family}.json")]
    command += ["--cubin", str(FOLDER / CUBINS[family]), "--memory", "--ncu", ncu, "-o", str(folder / f"{family}.json")]
    subprocess.run(command, check=True)


def read_times(path: Path) -> dict[str, float]:
    """The time of each launch of a file of rows, in us."""
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case["measured"]["totals"]["time_ns"] / 1000 for case in cases}


def compare(recorded: dict[str, float], found: dict[str, float]) -> str:
    """A line for each launch: what is recorded, what was found, and the one over the other."""
    lines = [f"{'launch':<30} {'recorded':>12} {'found':>12} {'ratio':>6}"]
    for name, time_us in recorded.items():
        lines.append(f"{name:<30} {time_us:>9,.1f} us {found[name]:>9,.1f} us {found[name] / time_us:>6.2f}")
    return "\n".join(lines)


def main() -> None:
    """Measure, and print times beside those recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(CUBINS)}; all of them")
    parser.add_argument("-o", "--output", type=Path, metavar="FOLDER", help="keep the rows there")
    parser.add_argument("--ncu", default="ncu", help="the profiler")
    options = parser.parse_args()
    if unknown := [name for name in options.families if name not in CUBINS]:
        parser.error(f"there is no family {unknown[0]!r}: expected one of {', '.join(CUBINS)}")
    with tempfile.TemporaryDirectory() as name:
        folder = options.output or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        for family in options.families or CUBINS:
            measure(family, folder, options.ncu)
            print(compare(read_times(FOLDER / f"{family}.json"), read_times(folder / f"{family}.json")), flush=True)


if __name__ == "__main__":
    main()
