"""Turns installed packages with Triton kernels into a table of what the analysis makes of them.

    python -m tools.survey_packages ROWS.json --page docs/public-triton.md [--package liger-kernel] [--case mm]

It needs PyTorch and the packages, which nothing else here does: `make test-torch` says how to have them. Each call of
`tools.survey.packages` is captured; rows that are there already are not made again. Only names and results are kept.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import sectorwise as sw
from tools.survey.packages import list_packages

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.analysis.captured import CapturedLaunch

LONGEST_S: Final = 400
_MEASURED: Final = """
160 of the cubins that PyTorch 2.9.0 and Triton 3.5.0 made were run on an H200 (Nsight Compute 2025.3.1, driver
580.159.04, 30 November 2026), with the same whole numbers in their buffers and zeros for floats: of 8,722 memory
instructions all numbers of the source view equal those counted here, but for the sectors of 20 copies of
`mm_kernel_general` and `bmm_kernel`, which the profiler counts otherwise in each run
([counting-rules.md](counting-rules.md), "Predicates of copies around L1"). Two things were learned there:
`topk_stage1_kernel` branches by `BRA.U`, which had been taken for a branch that parts lanes, and copies that fill zeros
count twice."""
DEVICE: Final = "h200"
Row = dict[str, Any]


class TooLongError(BaseException):
    """A call took longer than `LONGEST_S`; a package that catches all errors must not catch this."""


def survey_call(package: str, case: str, call: Callable[[], object]) -> list[Row]:
    """A row for each launch that a call made, and one for what ended it before its end."""
    started = time.process_time()
    base = {"package": package, "case": case, "versions": name_versions(package)}
    ended: list[Row] = []
    with sw.capture(device=DEVICE, frameworks=("triton", "torch")) as captured:
        signal.alarm(LONGEST_S)
        try:
            call()
        except TooLongError:
            ended = [{**base, "kernel": "-", "outcome": "too long", "because": f"more than {LONGEST_S} s"}]
        except Exception as error:  # noqa: BLE001 - crashes are what is looked for
            frames = traceback.extract_tb(error.__traceback__)
            ours = any(f"{os.sep}sectorwise{os.sep}" in each.filename for each in frames[-1:])
            what = "refused" if isinstance(error, sw.SectorwiseError) else "crash" if ours else "its own error"
            text = f"{type(error).__name__}: {error}".strip().splitlines()[0][:200]
            ended = [{**base, "kernel": "-", "outcome": what, "because": text}]
        finally:
            signal.alarm(0)
    rows = [{**base, **describe(launch)} for launch in captured.launches]
    if not rows and not ended:
        ended = [{**base, "kernel": "-", "outcome": "no launch", "because": "it launches no kernel of Triton's"}]
    for row in rows + ended:
        row["seconds"] = round(time.process_time() - started, 1)
    return rows + ended


def name_versions(package: str) -> str:
    """The package, PyTorch and Triton as they are installed."""
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in (package, "torch", "triton"))


def shorten(reason: str, kernel: str) -> str:
    """The first and the last line of a reason: of what Triton's compiler says, those between quote the kernel."""
    text = reason
    while text.startswith(f"{kernel}: "):
        text = text.removeprefix(f"{kernel}: ")
    first, *rest = [line.strip() for line in text.splitlines() if line.strip(" ^")]
    return f"{first} {rest[-1]}" if "Error(" in "".join(rest[-1:]) else first


def describe(launch: CapturedLaunch) -> Row:
    """What is known of one launch: the cubin by the beginning of its hash, and its memory instructions."""
    if launch.analysis is None:
        return {"kernel": launch.kernel, "outcome": "skipped", "because": shorten(launch.because, launch.kernel)}
    (kernel,) = launch.analysis.kernels
    coverage = kernel.coverage
    return {
        "kernel": launch.kernel,
        "outcome": "ok",
        "because": kernel.limitations[0].because[:160] if kernel.limitations else "",
        "cubin": hashlib.sha256(kernel.cubin).hexdigest()[:12],
        "blocks": coverage.blocks_total,
        "certainty": str(coverage.certainty),
        "memory": coverage.sites,
        "unknown": coverage.sites_unknown,
        "not_issued": coverage.sites_not_issued,
        "faults": len(kernel.faults),
    }


def write_page(rows: list[Row]) -> str:
    """The results as a page of documentation."""
    good = [row for row in rows if row["outcome"] == "ok"]
    bad = [row for row in rows if row["outcome"] != "ok"]
    memory, unknown = (sum(row[name] for row in good) for name in ("memory", "unknown"))
    versions = sorted({row["versions"] for row in rows}, reverse=True)
    crashes = sum(row["outcome"] == "crash" for row in bad)
    lines = f"""# Triton kernels of packages that nobody here wrote

{len({row["cubin"] for row in good})} distinct cubins: each call below was captured on a machine without a GPU, as
`sectorwise run` does it, at the first configuration of kernels that are tuned, for an H200. Calls and shapes are those
of `tools/survey/packages.py`; this page is made by `python -m tools.survey_packages ROWS.json --page
docs/public-triton.md`, in an environment as `make test-torch` sets it up. Only names and numbers are kept.
{_MEASURED}

- launches: {len(good)} analysed, {len(bad)} not, each listed with its reason; {crashes} crashes
- memory instructions: {memory:,} analysed or unknown, {unknown:,} unknown ({100 * unknown / max(1, memory):.1f} %)
- certainty: {", ".join(f"{count} {name}" for name, count in Counter(row["certainty"] for row in good).items())}
- launches whose tensor cores read shared memory by themselves (HGMMA), which is counted by its size and said: \
{sum("HGMMA" in row["because"] for row in good)}
- accesses outside of the arguments' memory: {sum(row["faults"] > 0 for row in good)} launches

| versions | calls | launches | cubins | memory instructions | unknown | not issued |
|---|--:|--:|--:|--:|--:|--:|""".splitlines()
    for version in versions:
        here = [row for row in good if row["versions"] == version]
        sums = [sum(row[name] for row in here) for name in ("memory", "unknown", "not_issued")]
        calls = len({row["case"] for row in rows if row["versions"] == version})
        lines.append(
            f"| {version} | {calls} | {len(here)} | {len({row['cubin'] for row in here})}"
            f" | {sums[0]:,} | {sums[1]:,} | {sums[2]:,} |"
        )
    lines += ["", "## What was not analysed, and why", ""]
    lines += ["| versions | call | kernel | what | reason |", "|---|---|---|---|---|"]
    lines += [
        f"| {row['versions']} | {row['case']} | {_code(row['kernel'])} | {row['outcome']} | {_cell(row['because'])} |"
        for row in bad
    ] or ["| | | | nothing | |"]
    lines += ["", "## Every launch", ""]
    lines += ["| versions | call | kernel | cubin | blocks | memory | unknown | certainty |"]
    lines += ["|---|---|---|---|--:|--:|--:|---|"]
    lines += [
        f"| {row['versions']} | {row['case']} | {_code(row['kernel'])} | {row['cubin']} | {row['blocks']:,}"
        f" | {row['memory']} | {row['unknown']} | {row['certainty']} |"
        for row in good
    ]
    return "\n".join([*lines, ""])


def _code(name: str) -> str:
    return f"`{name}`"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:160]


def main() -> int:
    """Read the command line, survey, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--package", action="append")
    parser.add_argument("--case", action="append")
    parser.add_argument("--again", action="append", default=[], help="outcomes to try again, such as `crash`")
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _stop)
    os.environ.setdefault("GEMS_VENDOR", "nvidia")
    warnings.simplefilter("ignore")
    rows: list[Row] = json.loads(given.rows.read_text()) if given.rows.exists() else []
    here = {package: name_versions(package) for package in list_packages()}
    again = {(row["versions"], row["case"]) for row in rows if row["outcome"] in given.again}
    rows = [row for row in rows if (row["versions"], row["case"]) not in again]
    done = {(row["versions"], row["case"]) for row in rows}
    for package, list_calls in list_packages().items():
        if given.package and package not in given.package:
            continue
        with sw.capture(device=DEVICE, frameworks=("triton", "torch")):
            calls = list_calls()
        for case, call in calls.items():
            if (here[package], case) in done or (given.case and case not in given.case):
                continue
            found = survey_call(package, case, call)
            rows += found
            print(package, case, [(row["kernel"], row["outcome"], row.get("unknown")) for row in found], flush=True)
            given.rows.write_text(json.dumps(rows, indent=1))
    if given.page:
        given.page.write_text(write_page(rows))
    return 0


def _stop(*_signal: object) -> None:
    raise TooLongError


if __name__ == "__main__":
    sys.exit(main())
