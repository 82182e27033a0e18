"""Turns folders of public CUDA files into a table of what the analysis makes of their kernels.

    python -m tools.survey_kernels ROWS.json FOLDER... --targets sm_90 sm_80 --files 60 --cubins CACHE --page PAGE.md

Each file is compiled with nvcc as it is; a file that does not compile is counted and left out. Launches are guessed
from the types of the parameters. Only names and results are kept. Rows that are there already are not made again,
and what was compiled once is not compiled again. Of a folder with more files than asked for, they are evenly spread.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import multiprocessing
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from tools.survey.analyse import survey_cubin

COMPILE_S = 120
ANALYSE_S = 900


def compile_file(path: Path, target: str, includes: list[Path]) -> bytes | None:
    """The cubin of a file, None where it does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "kernels.cubin"
        options = [f"-I{each}" for each in (path.parent, Path(__file__).parent / "survey" / "shims", *includes)]
        command = ["nvcc", "-cubin", f"-arch={target}", "-std=c++17", "-lineinfo", "-w", *options, "-o", str(output)]
        try:
            done = subprocess.run([*command, str(path)], capture_output=True, timeout=COMPILE_S, check=False)
        except subprocess.TimeoutExpired:
            return None
        return output.read_bytes() if done.returncode == 0 and output.exists() else None


def compile_once(path: Path, name: str, target: str, includes: list[Path], cache: Path | None) -> bytes | None:
    """As `compile_file`; what is in `cache` is taken from there, an empty file standing for what does not compile."""
    if cache is None:
        return compile_file(path, target, includes)
    kept = cache / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.{target}.cubin"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(compile_file(path, target, includes) or b"")
    return kept.read_bytes() or None


def _survey(cubin: bytes, name: str, target: str) -> list[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    pool = context.Pool(1)
    try:
        return pool.apply_async(survey_cubin, (cubin, name, target)).get(timeout=ANALYSE_S)
    except multiprocessing.TimeoutError:
        return [{"file": name, "target": target, "outcome": "too long"}]
    finally:
        pool.terminate()


def spread(paths: list[Path], count: int) -> list[Path]:
    """`count` of the paths, evenly spread; all where there are fewer."""
    return paths if len(paths) <= count else [paths[at * len(paths) // count] for at in range(count)]


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print counts, and each kernel with trouble."""
    kernels = [row for row in rows if "kernel" in row]
    print(Counter((row["target"], row["outcome"]) for row in rows))
    good = [row for row in kernels if row["outcome"] == "ok"]
    if not good:
        return
    memory, unknown = sum(row["memory"] for row in good), sum(row["unknown"] for row in good)
    print(
        f"{len(good)} kernels; memory instructions {memory}, unknown {unknown}, share executed "
        f"{median(row['executed_pct'] for row in good)} % (median)"
    )
    print(Counter(opcode for row in good for opcode in row["unknown_opcodes"]).most_common(40))
    for row in kernels:
        if row["outcome"] in ("crash", "refused") or row["unknown_opcodes"] or row["unknown"]:
            print(row["target"], row["file"][-50:], row["kernel"][:40], row["outcome"], row["detail"][:150])


COLUMNS = ("file", "kernel", "target", "outcome", "executed_pct", "memory", "analysed", "unknown", "not_issued")


def write_table(rows: list[dict[str, Any]]) -> str:
    """A line for each kernel, with commas between `COLUMNS`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([row[name] for name in COLUMNS] for row in rows if "kernel" in row)
    return text.getvalue()


def write_page(rows: list[dict[str, Any]]) -> str:
    """The results as a page of documentation."""
    kernels = [row for row in rows if "kernel" in row]
    good = [row for row in kernels if row["outcome"] == "ok"]
    sums = {name: sum(row[name] for row in good) for name in ("memory", "analysed", "unknown", "not_issued")}
    share = median(row["executed_pct"] for row in good)
    outcomes = ", ".join(f"{count} {name}" for name, count in Counter(row["outcome"] for row in kernels).items())
    lines = f"""# Public kernels that nobody here wrote

{len(kernels):,} kernels of public repositories, each counted once for each architecture that it was compiled for, as it
is (nvcc 13.0, `-cubin`), and launched with guessed arguments: sizes and shapes that are usual, buffers of 4 MiB.
`python -m tools.survey_kernels` makes this page and [public-kernels.csv](public-kernels.csv), which has every kernel;
only names and numbers are kept. Files that need more than nvcc finds here do not compile, and are left out.

- outcomes: {outcomes} (*step limit*: the guessed launches would run more than 100,000 instructions a warp)
- memory instructions in the disassembly:
  {sums["memory"]:,} = {sums["analysed"]:,} analysed + {sums["unknown"]:,} unknown + {sums["not_issued"]:,} not issued;
  unknown {100 * sums["unknown"] / max(1, sums["memory"]):.1f} %
- share of the instructions executed: {share:.0f} % (median)

| repository | target | kernels | crashes | memory | unknown | not issued | executed | opcodes not known |
|---|---|--:|--:|--:|--:|--:|--:|---|""".splitlines()
    groups = sorted({("/".join(row["file"].split("/")[:2]), row["target"]) for row in kernels})
    for repository, target in groups:
        here = [row for row in kernels if row["file"].startswith(repository + "/") and row["target"] == target]
        opcodes = sorted({opcode for row in here for opcode in row["unknown_opcodes"]})
        lines.append(
            f"| {repository} | {target} | {len(here)} | {sum(row['outcome'] == 'crash' for row in here)}"
            f" | {sum(row['memory'] for row in here):,} | {sum(row['unknown'] for row in here):,}"
            f" | {sum(row['not_issued'] for row in here):,}"
            f" | {median(row['executed_pct'] for row in here if row['outcome'] == 'ok'):.0f} % | {' '.join(opcodes)} |"
        )
    lines += ["", "## Kernels with something unknown, or not run to their end", ""]
    lines += ["| file | kernel | target | unknown | what |", "|---|---|---|--:|---|"]
    for row in kernels:
        if row["outcome"] != "ok" or row["unknown"] or row["unknown_opcodes"]:
            what = row["detail"].replace("|", "\\|") if row["outcome"] == "ok" else row["outcome"]
            lines.append(f"| {row['file']} | `{row['kernel']}` | {row['target']} | {row['unknown']} | {what} |")
    return "\n".join([*lines, ""])


def main() -> int:
    """Read the command line, survey, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--targets", nargs="+", default=["sm_90"])
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--cubins", type=Path, help="folder of what was compiled before")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--page", type=Path)
    parser.add_argument("--include", type=Path, action="append", default=[])
    given = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(given.rows.read_text()) if given.rows.exists() else []
    done = {(row["file"], row["target"]) for row in rows}
    for folder in given.folders:
        for path in spread(sorted(folder.rglob("*.cu")), given.files):
            name = f"{folder.name.replace('+', '/')}/{path.relative_to(folder)}"
            for target in given.targets:
                if (name, target) in done:
                    continue
                cubin = compile_once(path, name, target, given.include, given.cubins)
                if cubin is None:
                    found = [{"file": name, "target": target, "outcome": "does not compile"}]
                elif given.compile_only:
                    continue
                else:
                    found = _survey(cubin, name, target)
                rows += found
                print(name, target, Counter(row["outcome"] for row in found), flush=True)
                given.rows.write_text(json.dumps(rows))
    print_table(rows)
    if given.page:
        given.page.write_text(write_page(rows))
        given.page.with_suffix(".csv").write_text(write_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
