"""Lists where the profiler's source view and its own pipe counters differ, and holds the page of the rules to it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests.measured.rows import MOST_THREADS
from tests.measured.test_copy_passes import PATTERNS

FOLDER = Path(__file__).parent
PAGE = (FOLDER.parents[1] / "docs" / "counting-rules.md").read_text(encoding="utf-8")

Case = dict[str, Any]
Count = Callable[[Case], int | None]
"""A count of a recorded launch; None where it is not recorded, or does not apply."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One quantity as both judges count it, and the words for it on the page."""

    words: str
    source_view: Count
    pipe: Count


def opcode(listed: dict[str, Any]) -> str:
    words = [word for word in listed["sass"].split() if not word.startswith("@")]
    return str(words[0])


def add(case: Case, prefixes: tuple[str, ...], count: str) -> int | None:
    """What the source view shows of instructions that begin so; None where the launch has none of them."""
    listed = [each for each in case["measured"]["memory_instructions"] if opcode(each).startswith(prefixes)]
    return sum(each.get(count, 0) for each in listed) if listed else None


def total(name: str) -> Count:
    return lambda case: case["measured"]["totals"].get(name, 0)


def without_generic(count: Count) -> Count:
    """Launches without generic accesses, whose passes the counters of shared memory have in them."""
    generic = ("LD.", "ST.", "LD ", "ST ")
    return lambda case: None if any(opcode(each).startswith(generic) for each in listed(case)) else count(case)


def listed(case: Case) -> list[dict[str, Any]]:
    instructions: list[dict[str, Any]] = case["measured"]["memory_instructions"]
    return instructions


def is_local(case: Case) -> bool:
    return any(each.get("sectors_local") for each in listed(case))


def count_copy_passes_in_pipe(case: Case) -> int | None:
    for part, others in (PATTERNS[family] for family in PATTERNS if case["family"] == family):
        copies = [opcode(each) for each in listed(case) if opcode(each).startswith("LDGSTS")]
        if part in case["name"] and copies and not any("BYPASS" in each for each in copies):
            return int(case["measured"]["totals"]["shared_wavefronts_hardware"]) - others
    return None


LOADS: Final = ("LDG", "LDGSTS", "LD.E", "LD ")
JUDGED: Final = (
    Judged(
        "passes of shared loads",
        without_generic(lambda case: add(case, ("LDS", "LDSM"), "wavefronts")),
        total("shared_load_wavefronts"),
    ),
    Judged(
        "passes of shared stores",
        without_generic(lambda case: add(case, ("STS.", "STS ", "STS", "STSM"), "wavefronts")),
        total("shared_store_wavefronts"),
    ),
    Judged(
        "passes of shared atomics", lambda case: add(case, ("ATOMS",), "wavefronts"), total("shared_atom_wavefronts")
    ),
    Judged(
        "passes of generic loads",
        lambda case: None if add(case, ("LD.",), "wavefronts") is None else add(case, ("LD.", "LDS"), "wavefronts"),
        total("shared_load_wavefronts"),
    ),
    Judged("passes of copies through L1", lambda case: add(case, ("LDGSTS",), "wavefronts"), count_copy_passes_in_pipe),
    Judged(
        "sectors of copies around L1",
        lambda case: add(case, LOADS, "sectors") if add(case, ("LDGSTS.E.BYPASS",), "sectors") is not None else None,
        total("global_load_sectors"),
    ),
    Judged(
        "sectors of other global loads",
        lambda case: (
            None
            if is_local(case) or add(case, ("LDGSTS.E.BYPASS",), "sectors") is not None
            else add(case, LOADS, "sectors")
        ),
        total("global_load_sectors"),
    ),
    Judged(
        "sectors of local loads",
        without_generic(lambda case: add(case, ("LDL",), "sectors_local")),
        total("local_load_sectors"),
    ),
    Judged(
        "sectors of generic accesses to local memory",
        lambda case: add(case, ("LD.", "LDL"), "sectors_local") if add(case, ("LD.",), "sectors_local") else None,
        total("local_load_sectors"),
    ),
)


def read_cases() -> list[Case]:
    cases = []
    for path in sorted((*FOLDER.glob("h200/*.json"), *FOLDER.glob("rules/*.json"))):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and "cases" in document:
            family = f"{path.parent.name}/{path.stem}"
            cases += [{**case, "family": family} for case in document["cases"]]
    return [
        case
        for case in cases
        if math.prod([*case["grid"], *case["block"]]) <= MOST_THREADS and case["measured"].get("memory_instructions")
    ]


def compare(judged: Judged, cases: list[Case]) -> tuple[int, list[str]]:
    """How many launches have the quantity, and the names of those in which the judges differ."""
    pairs = [(case["name"], judged.source_view(case), judged.pipe(case)) for case in cases]
    known = [(name, left, right) for name, left, right in pairs if left is not None and right is not None]
    return len(known), [name for name, left, right in known if left != right]


@pytest.mark.parametrize("judged", JUDGED, ids=lambda judged: judged.words)
def test_differences_are_those_of_the_page(judged: Judged) -> None:
    known, different = compare(judged, read_cases())
    print(judged.words, known, different[:12])  # noqa: T201 - the names to look at
    assert f"| {judged.words} | {len(different)} of {known} |" in PAGE
