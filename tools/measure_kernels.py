"""Turns a machine with a GPU into the results that benchmarks/kernels/LOG.md waits for, in less than eight minutes.

    python tools/measure_kernels.py -o results

It runs the tests of the kernels on the GPU, times the table of goals beside PyTorch, times other plans of the products
whose choice is not certain, and verifies the counts of two ladders if Nsight Compute is there. What it writes, at most
eight files, is packed into `results.tar.gz`. A step that fails is noted in its file, and the next begins.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.errors import SectorwiseError
from sectorwise.kernels.bench import compare_plans, describe_run, measure_case
from sectorwise.kernels.bench_cases import list_cases
from sectorwise.kernels.launching import count_multiprocessors, make_current, open_library, read_capability
from sectorwise.kernels.plan import divide_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sectorwise.kernels.bench import BenchRow
    from sectorwise.kernels.bench_cases import BenchCase
    from sectorwise.kernels.plan import KernelPlan

ROOT = Path(__file__).parents[1]
TESTED = ("tests/kernels/test_movement.py", "tests/kernels/test_gemv.py")
ROWS_PLANS = ((1, 4, 128), (2, 4, 128), (1, 2, 256), (2, 2, 256), (2, 4, 64), (1, 8, 64), (1, 4, 256), (2, 4, 256))
"""Rows a block, loads a lane, threads: of gemv_rows."""

TENSOR_PLANS = (
    (1, 2, 4, 4),
    (1, 1, 4, 3),
    (1, 2, 8, 2),
    (1, 1, 8, 2),
    (1, 4, 4, 2),
    (1, 1, 16, 2),
    (2, 1, 8, 2),
    (2, 1, 4, 3),
)
"""Tiles of 16 rows a block, stages, warps, and blocks an SM: of gemv_tensor."""


def vary(plan: KernelPlan, rows: int) -> Iterator[KernelPlan]:
    """Other plans for the same product, the plan itself first."""
    yield plan
    name, _, inside = plan.kernel.partition("<")
    parts = [part.strip() for part in inside.rstrip(">").split(",")]
    if name == "gemv_rows":
        for share, loads, threads in ROWS_PLANS:
            kernel = f"gemv_rows<{', '.join(parts[:3])}, {share}, {loads}>"
            yield replace(plan, kernel=kernel, grid=(divide_up(rows, share), *plan.grid[1:]), block=(threads, 1, 1))
    elif name == "gemv_tensor":
        slice_bytes = plan.dynamic_shared_bytes // (int(parts[4]) * int(parts[5])) - 4096 * int(parts[3])
        for tiles, stages, warps, blocks in TENSOR_PLANS:
            yield replace(
                plan,
                kernel=f"gemv_tensor<{', '.join(parts[:3])}, {tiles}, {stages}, {warps}, {blocks}>",
                grid=(divide_up(rows, 16 * tiles), *plan.grid[1:]),
                block=(32 * warps, 1, 1),
                dynamic_shared_bytes=(4096 * tiles + slice_bytes) * stages * warps,
            )


def name_plan(plan: KernelPlan) -> str:
    """What tells a plan from others of the same product."""
    return f"{plan.kernel} {plan.grid[0]} x {plan.block[0]}{'' if plan.overlaps else ' alone'}"


def measure(cases: Sequence[BenchCase]) -> list[BenchRow]:
    """Rows of cases; one that fails is told and left out."""
    rows = []
    for case in cases:
        try:
            with make_current(0):
                rows.append(measure_case(open_library(), case))
            print(f"{rows[-1].name:<38}{rows[-1].kernel:<50}{rows[-1].us:9.2f} us", flush=True)
        except SectorwiseError as error:
            print(f"{case.name}: {error}", file=sys.stderr, flush=True)
    return rows


def compare(case: BenchCase) -> dict[str, float]:
    """Microseconds of other plans for a product, with and without overlapping."""
    plans = {}
    for plan in vary(case.plan, case.shape[0]):
        for overlaps in {plan.overlaps, False}:
            each = replace(plan, overlaps=overlaps)
            plans[name_plan(each)] = each
    try:
        with make_current(0):
            return compare_plans(open_library(), case, plans)
    except SectorwiseError as error:
        print(f"{case.name}: {error}", file=sys.stderr, flush=True)
        return {}


def run(folder: Path, name: str, *command: str, timeout_s: int = 120) -> None:
    """What a command prints, into a file."""
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout_s, stdin=subprocess.DEVNULL
        )
        text = f"{done.stdout}\n{done.stderr}\nexit code {done.returncode}\n"
    except (OSError, subprocess.TimeoutExpired) as error:
        text = f"{error}\n"
    (folder / name).write_text(text, encoding="utf-8")


def write_rows(folder: Path, name: str, rows: list[BenchRow]) -> None:
    """A document of rows."""
    (folder / name).write_text(json.dumps(describe_run(rows), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure all, and pack it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("results"))
    folder = parser.parse_args().output
    try:
        open_library()
    except SectorwiseError as error:
        sys.exit(f"error: {error}")
    folder.mkdir(parents=True, exist_ok=True)
    on_device = ("-m", "pytest", "-n0", "-q", "-p", "tools.kernels_on_device")
    run(folder, "tests.txt", sys.executable, *on_device, *TESTED)
    cases = list_cases(count_multiprocessors(0), read_capability(0))
    write_rows(folder, "table.json", measure(cases))
    products = [case for case in cases if re.match(r"gemv( x16)? (bf16|u4|e4m3) (1024|4096|8192|28672) ", case.name)]
    plans = {case.name: compare(case) for case in products}
    (folder / "plans.json").write_text(json.dumps(plans, indent=1) + "\n", encoding="utf-8")
    for name in ("transpose", "gemv"):
        verify = ("-m", "sectorwise", "verify", f"examples/ladder/{name}.cu")
        run(folder, f"verify_{name}.txt", sys.executable, *verify, timeout_s=60)
    (folder / "cases.json").write_text(
        json.dumps([{"name": case.name, "plan": asdict(case.plan)} for case in cases], indent=1) + "\n",
        encoding="utf-8",
    )
    with tarfile.open(folder.with_suffix(".tar.gz"), "w:gz") as archive:
        archive.add(folder, arcname=folder.name)


if __name__ == "__main__":
    main()
