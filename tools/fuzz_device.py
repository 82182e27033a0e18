"""Turns seeds into kernels that the engine and a GPU execute, and compares what they write, bit for bit.

python -m tools.fuzz_device prepare BATCH --files 0:200 --jobs 2     generate, compile, execute here
python -m tools.fuzz_device pack BATCH FUZZ.tar                      the batch, and all that runs it, as one file
python -m tools.fuzz.on_device BATCH RESULTS [SECONDS]               execute on the GPU (driver and NumPy, no more)
python -m tools.fuzz_device compare BATCH RESULTS                    what differs, with the first statement
python -m tools.fuzz_device record BATCH RESULTS RECORD.json         keep the GPU's results, small
python -m tools.fuzz_device replay RECORD.json [--files 0:8]         execute again, compare with the record
python -m tools.fuzz_device reproduce SEED                           print one kernel, and its SASS as executed
python -m tools.fuzz_device coverage BATCH docs/coverage.md          write the table of executed forms
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import multiprocessing
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tools.fuzz.batches import (
    compare_with_record,
    find_statement,
    find_trouble,
    make_record,
    run_file,
    write_batch,
)
from tools.fuzz.coverage import Coverage, add_forms, write_table
from tools.fuzz.generate import generate
from tools.fuzz.on_engine import compile_kernels, read_kernels, run_on_engine
from tools.fuzz.parcels import pack_batch, read_results

if TYPE_CHECKING:
    import numpy as np


def _prepare_file(task: tuple[int, Path]) -> int:
    number, folder = task
    write_batch(run_file(number), folder)
    return number


def prepare(batch: Path, files: range, jobs: int) -> int:
    """Write the batch of these files."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for number in pool.imap_unordered(_prepare_file, [(number, batch) for number in files]):
            print(f"file {number}", flush=True)
    return 0


def compare(batch: Path, results: Path) -> int:
    """Print the kernels that differ, each with its first value that does."""
    found, differing = read_results(results)
    count = 0
    for path in sorted(batch.glob("*.json")):
        for launch in json.loads(path.read_text())["launches"]:
            gpu = found["files"].get(path.stem, {}).get(str(launch["seed"]))
            if gpu is not None and gpu == launch["expected"]:
                continue
            count += 1
            name = f"{launch['seed']}_words"
            words = differing.get(name)
            print(explain(launch["seed"], words) if gpu is not None else f"{launch['seed']}: no result of the GPU")
    print(f"{count} kernels differ")
    return min(count, 1)


def explain(seed: int, gpu: np.ndarray[tuple[int, ...], np.dtype[np.uint32]] | None) -> str:
    """The first value of a kernel in which the engine and the GPU differ, with both values and its statement."""
    kernel = generate(seed)
    cubin, _ = compile_kernels([kernel])
    outcome = run_on_engine(kernel, read_kernels(cubin)[kernel.name])
    head = f"{seed} {kernel.family}: "
    trouble = find_trouble(outcome)
    if trouble is not None or gpu is None:
        return head + (trouble or "differs")
    for output in kernel.outputs:
        rows = slice(output.slot, output.slot + (2 if output.kind in "dg" else 1))
        differs = (outcome.words[rows] != gpu[rows]).any(axis=0)
        if differs.any():
            thread = int(differs.argmax())
            here, there = (" ".join(f"{word:08x}" for word in each[rows, thread]) for each in (outcome.words, gpu))
            statement = find_statement(kernel, output.name)
            return f"{head}thread {thread} and {int(differs.sum()) - 1} more: {here}, GPU {there}: {statement}"
    return head + "the scratch buffer differs, or nothing any more"


def record(batch: Path, results: Path, target: Path) -> int:
    """Keep the GPU's results."""
    today = dt.datetime.now(dt.UTC).date().isoformat()
    target.write_text(json.dumps(make_record(batch, read_results(results)[0], today), indent=0))
    return 0


def replay(path: Path, files: range | None) -> int:
    """Execute recorded kernels again."""
    kept = json.loads(path.read_text())
    numbers = [int(name) for name in kept["files"] if files is None or int(name) in files]
    differences = 0
    for number in numbers:
        run = run_file(number)
        if hashlib.sha256(run.cubin).hexdigest() != kept["files"][f"{number:04d}"]["cubin_sha256"]:
            print(f"file {number}: {run.compiler} makes another cubin than {kept['compiler']} did")
        for difference in compare_with_record(run, kept):
            differences += 1
            print(f"{difference.seed} {difference.family}: {difference.why}", flush=True)
    print(f"{len(numbers) * kept['kernels_per_file']} kernels, {differences} differ")
    return min(differences, 1)


def reproduce(seed: int) -> int:
    """Print a kernel, its SASS with the warps and lanes that executed each instruction, and what was not known."""
    kernel = generate(seed)
    cubin, _ = compile_kernels([kernel])
    outcome = run_on_engine(kernel, read_kernels(cubin)[kernel.name])
    print(kernel.source)
    for each in outcome.kernel.instructions:
        counts = f"{outcome.execution.issued[each.index]:6} {outcome.execution.lanes[each.index]:7}"
        print(f"{each.offset:06x} {counts}  {each.text}")
    print(find_trouble(outcome) or "nothing unknown")
    return 0


def coverage(batch: Path, target: Path) -> int:
    """Write the table of forms of a batch."""
    counted = Coverage()
    kernels, compiler = 0, ""
    for path in sorted(batch.glob("*.json")):
        prepared = json.loads(path.read_text())
        compiler = prepared["compiler"]
        for forms in prepared["forms"].values():
            kernels += 1
            add_forms(counted, forms)
    target.write_text(write_table(counted, kernels, compiler))
    return 0


def _read_range(text: str) -> range:
    first, _, last = text.partition(":")
    return range(int(first), int(last or int(first) + 1))


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("prepare", "compare", "record", "replay", "reproduce", "coverage", "pack"):
        command = commands.add_parser(name)
        if name == "reproduce":
            command.add_argument("seed", type=int)
            continue
        command.add_argument(
            "paths", type=Path, nargs={"compare": 2, "coverage": 2, "pack": 2, "record": 3}.get(name, 1)
        )
        command.add_argument("--files", type=_read_range)
        command.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    match given.command:
        case "prepare":
            return prepare(given.paths[0], given.files or range(4), given.jobs)
        case "compare":
            return compare(*given.paths)
        case "record":
            return record(*given.paths)
        case "replay":
            return replay(given.paths[0], given.files)
        case "pack":
            print(f"{pack_batch(*given.paths)} files of kernels")
            return 0
        case "coverage":
            return coverage(*given.paths)
        case _:
            return reproduce(given.seed)


if __name__ == "__main__":
    sys.exit(main())
