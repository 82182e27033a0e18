"""Generated kernels, executed here, against what an H200 wrote: bit for bit, with no GPU."""

from __future__ import annotations

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tools.fuzz.batches import FileRun, compare_with_record, find_trouble, run_file, seeds_of
from tools.fuzz.generate import generate

RECORD = Path(__file__).parent / "recorded" / "h200.json"
FEW = (0, 41, 83, 125, 166, 208, 300, 383)
"""Eight files, 256 kernels of all families; SECTORWISE_FUZZ=all replays everything that was recorded (an hour)."""


@cache
def read_record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text())
    return record


def _choose_files() -> tuple[int, ...]:
    if os.environ.get("SECTORWISE_FUZZ") == "all":
        return tuple(int(name) for name in read_record()["files"])
    return FEW


@cache
def run_once(number: int) -> FileRun:
    return run_file(number)


@pytest.mark.parametrize("number", _choose_files())
def test_kernels_write_what_the_gpu_wrote(number: int) -> None:
    run, record = run_once(number), read_record()
    made = hashlib.sha256(run.cubin).hexdigest()
    wanted = record["files"][f"{number:04d}"]["cubin_sha256"]
    # Another compiler would make other kernels: then the records have to be made anew.
    assert made == wanted, f"{run.compiler} makes another cubin than the recorded {record['compiler']}"
    assert [f"{each.seed}: {each.why}" for each in compare_with_record(run, record)] == []


def test_a_wrong_word_is_found_with_its_statement() -> None:
    """The comparison has teeth: a bit of a value, flipped, is found in that value."""
    run, record = run_once(FEW[0]), read_record()
    kernel, outcome = run.outcomes[1]
    assert not isinstance(outcome, str)
    assert find_trouble(outcome) is None
    output = kernel.outputs[3]
    outcome.words[output.slot, 5] ^= 1
    try:
        (difference,) = compare_with_record(run, record)
    finally:
        outcome.words[output.slot, 5] ^= 1
    assert difference.seed == kernel.seed
    assert difference.why.startswith(f"{output.name} differs first: ")


def test_a_seed_makes_the_same_kernel_every_time() -> None:
    for seed in seeds_of(3):
        assert generate(seed) == generate(seed)


def test_the_record_is_of_at_least_five_thousand_kernels() -> None:
    record = read_record()
    digests = [text[at : at + 16] for text in _texts(record) for at in range(0, len(text), 16)]
    seen = [each for each in digests if each != "0" * 16]
    assert len(seen) - len(record["excluded"]) > 5000
    assert len(set(seen)) > 0.95 * len(seen)


def _texts(record: dict[str, Any]) -> list[str]:
    return [kept["kernels"] for kept in record["files"].values()]
