"""Turns files of seeds into batches for a GPU, results of a GPU into records, and records into tests without one."""

from __future__ import annotations

import hashlib
import json
import lzma
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tools.fuzz.catalogue.families import REWRITTEN_FROM, choose_character
from tools.fuzz.coverage import count_forms
from tools.fuzz.digests import digest, digest_slots
from tools.fuzz.generate import KERNELS_PER_FILE, FuzzKernel, generate
from tools.fuzz.on_engine import Outcome, compile_kernels, read_kernels, run_on_engine
from tools.fuzz.rewrites import restore, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sectorwise.binary.ir import Kernel

_ORDER = "lanes that part without a place to meet: which are together depends on whose side ran first"
EXCLUDED = {
    "668": _ORDER,
    "1054": _ORDER,
    "1594": _ORDER,
    "2991": "the compiler takes a transposed matrix for the same in all lanes, and lets lanes part in a loop for good",
    "6015": "the GPU faults: lanes that part in a function that calls itself come back at different times, and each of"
    " them multiplies a uniform register that all share",
    "9128": "the GPU hangs: the compiler counts a loop in a uniform register, lanes part in it without a place to meet,"
    " and both sides count",
}
"""Kernels by seed of which the GPU's results say nothing, and why. They are not prepared again."""


@dataclass(frozen=True, slots=True)
class FileRun:
    """What the engine made of the kernels of one file: `cubin`, the compiler, an outcome or an error for each."""

    number: int
    cubin: bytes
    compiler: str
    outcomes: tuple[tuple[FuzzKernel, Outcome | str], ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A kernel of which the engine and the GPU do not agree: `why` in one line."""

    seed: int
    family: str
    why: str


def seeds_of(number: int) -> range:
    """The seeds of a file."""
    return range(number * KERNELS_PER_FILE, (number + 1) * KERNELS_PER_FILE)


def run_file(number: int) -> FileRun:
    """Generate, compile and execute the kernels of a file."""
    kernels = [generate(seed) for seed in seeds_of(number)]
    plain, compiler = compile_kernels(kernels)
    compiled = read_kernels(plain)
    seeds = {each.name: each.seed for each in kernels if each.seed >= REWRITTEN_FROM and _is_own(each.seed)}
    if not seeds:
        return FileRun(number, plain, compiler, tuple((each, _try(each, compiled[each.name])) for each in kernels))
    cubin = rewrite(plain, compiled, seeds)
    rewritten = read_kernels(cubin)
    tried = [(each, _try(each, rewritten[each.name])) for each in kernels]
    # A comparison turned round can leave a loop without an end or an index without a bound: such kernels stay plain.
    spoilt = {each.name for each, outcome in tried if find_trouble(outcome) is not None}
    outcomes = ((each, _try(each, compiled[each.name]) if each.name in spoilt else outcome) for each, outcome in tried)
    return FileRun(number, restore(cubin, plain, spoilt), compiler, tuple(outcomes))


def _is_own(seed: int) -> bool:
    """Whether a seed is not that of an earlier kernel on other inputs."""
    return isinstance(choose_character(seed), str)


def _try(kernel: FuzzKernel, compiled: Kernel) -> Outcome | str:
    try:
        return run_on_engine(kernel, compiled)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in one kernel is what is looked for
        return f"{type(error).__name__}: {error}"


def find_trouble(outcome: Outcome | str) -> str | None:
    """Why an outcome is none to be compared, None if it is: a crash, something unknown, a fault."""
    if isinstance(outcome, str):
        return outcome
    execution = outcome.execution
    if execution.limitations:
        return execution.limitations[0].because
    if execution.hangs:
        return execution.hangs[0].message
    if execution.faults:
        return execution.faults[0].message
    return None


def write_batch(run: FileRun, folder: Path) -> None:
    """Write cubin and launches of a file for the GPU, with the forms of instructions that were executed."""
    folder.mkdir(parents=True, exist_ok=True)
    launches: list[dict[str, Any]] = []
    forms: dict[str, dict[str, int]] = {}
    for kernel, outcome in run.outcomes:
        trouble = find_trouble(outcome)
        if trouble is not None:
            print(f"{kernel.seed} {kernel.family}: {trouble}", flush=True)
        if str(kernel.seed) in EXCLUDED:
            continue
        expected = None if isinstance(outcome, str) else digest(outcome.words, outcome.scratch)
        launches.append(
            {
                "seed": kernel.seed,
                "name": kernel.name,
                "blocks": kernel.blocks,
                "threads": kernel.threads,
                "slots": kernel.slots,
                "expected": expected,
            }
        )
        if not isinstance(outcome, str):
            forms[str(kernel.seed)] = dict(count_forms(outcome.kernel, outcome.execution))
    path = folder / f"{run.number:04d}.json"
    path.with_suffix(".cubin.xz").write_bytes(lzma.compress(run.cubin, preset=2))
    batch = {
        "compiler": run.compiler,
        "cubin_sha256": hashlib.sha256(run.cubin).hexdigest(),
        "launches": launches,
        "forms": forms,
    }
    path.write_text(json.dumps(batch))


def make_record(batch: Path, found: dict[str, Any], date: str) -> dict[str, Any]:
    """What is kept of a GPU's results: the hash of each file's cubin, for each kernel a digest and a byte a slot."""
    files = {}
    for name, kernels in sorted(found["files"].items()):
        prepared = json.loads((batch / f"{name}.json").read_text())
        slots = found["slots"][name]
        files[name] = {
            "cubin_sha256": prepared["cubin_sha256"],
            "kernels": "".join(kernels.get(str(seed), "0" * 16) for seed in seeds_of(int(name))),
            "slots": [slots.get(str(seed), "") for seed in seeds_of(int(name))],
        }
    compiler = next(json.loads(path.read_text())["compiler"] for path in batch.glob("*.json"))
    return {
        "device": found["device"],
        "driver": found["driver"],
        "compiler": compiler,
        "target": "sm_90",
        "date": date,
        "kernels_per_file": KERNELS_PER_FILE,
        "excluded": EXCLUDED,
        "files": files,
    }


def compare_with_record(run: FileRun, record: dict[str, Any]) -> Iterator[Difference]:
    """Kernels of a file that the engine does not execute as the GPU did; those that no engine could are left out."""
    kept = record["files"][f"{run.number:04d}"]
    for place, (kernel, outcome) in enumerate(run.outcomes):
        if str(kernel.seed) in record["excluded"]:
            continue
        trouble = find_trouble(outcome)
        if trouble is not None or isinstance(outcome, str):
            yield Difference(kernel.seed, kernel.family, trouble or str(outcome))
            continue
        wanted = kept["kernels"][16 * place : 16 * (place + 1)]
        if digest(outcome.words, outcome.scratch) != wanted:
            yield Difference(kernel.seed, kernel.family, _locate(kernel, outcome, kept["slots"][place]))


def _locate(kernel: FuzzKernel, outcome: Outcome, wanted: str) -> str:
    """The first value that differs, with the statement that made it."""
    here = digest_slots(outcome.words).hex()
    for output in kernel.outputs:
        width = 2 if output.kind in "dg" else 1
        place = slice(2 * output.slot, 2 * (output.slot + width))
        if here[place] != wanted[place]:
            return f"{output.name} differs first: {find_statement(kernel, output.name)}"
    return "the scratch buffer differs"


def find_statement(kernel: FuzzKernel, name: str) -> str:
    """The statement that gives a value of the kernel its first content."""
    body = kernel.source[kernel.source.index('extern "C"') :]
    for line in body.splitlines():
        if f"({name})" in line.split(" : ")[0] or f" {name} = " in line or f" {name}; {name} = " in line:
            return line.strip()
    return name
