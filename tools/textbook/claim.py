"""Turns a statement, what is computed for it and what was measured into one record of the page."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
FOLDERS = (ROOT / "tests" / "measured" / "h200", ROOT / "tests" / "measured" / "textbook")


@dataclass(frozen=True, slots=True)
class Number:
    """A number of a claim: its name, how it is found, and what it has to be, exactly or within a part of it."""

    name: str
    find: Callable[[], float]
    stated: float
    within: float = 0.0

    def holds(self) -> bool:
        """Whether what is found is what is stated."""
        return abs(self.find() - self.stated) <= self.within * abs(self.stated)


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, whether it holds, and the numbers that say so; `command` finds the computed ones again.

    Where nothing is measured `unmeasured` says why there is nothing to measure.
    """

    code: str
    statement: str
    verdict: str
    truth: str
    command: str
    computed: tuple[Number, ...]
    measured: tuple[Number, ...] = ()
    unmeasured: str = ""


@cache
def read_rows() -> dict[str, dict[str, Any]]:
    """Every measured launch by its name."""
    rows: dict[str, dict[str, Any]] = {}
    for folder in FOLDERS:
        for path in sorted(folder.glob("*.json")):
            document = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(document, dict) and "cases" in document:
                rows |= {case["name"]: case["measured"] for case in document["cases"]}
    return rows


def total(row: str, name: str) -> float:
    """A counter of a measured launch."""
    value: float = read_rows()[row]["totals"][name]
    return value


def ratio(row: str, other: str, name: str = "time_ns") -> float:
    """A counter of one launch over that of another."""
    return total(row, name) / total(other, name)


def held(row: str, name: str) -> float:
    """What the profiler said of a launch itself: its registers, shared memory, limits."""
    value: float = read_rows()[row]["launch"][name]
    return value


def executed(row: str, opcode: str) -> float:
    """How often warps issued the memory instructions whose opcode begins like this."""
    listed = read_rows()[row]["memory_instructions"]
    return float(sum(each["executed"] for each in listed if each["sass"].startswith(opcode)))


def request(row: str, opcode: str, name: str) -> float:
    """What one request of the first instruction counts whose opcode begins like this."""
    for each in read_rows()[row]["memory_instructions"]:
        if re.match(rf"(@!?U?P\d+ )?{re.escape(opcode)}\b", each["sass"]):
            value: float = each[name] / each["executed"]
            return value
    raise KeyError(f"{row} has no {opcode}")
