"""The measured rows: which there are, which rows the exact tests take, and what a row says of its launch."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "h200"

EXACT_FAMILIES = (
    "global_load",
    "global_store",
    "struct_layout",
    "gemv",
    "shared_load",
    "shared_store",
    "matrix_load",
    "ldmatrix",
    "transpose",
    "gemm",
    "reduction",
    "local_memory",
    "l2_prefetch",
)
OPEN_FAMILIES = (
    "cp_async",
    "async_copy",
    "shared_masked",
    "shared_merge",
    "shared_random",
    "generic",
    "shared_atomic",
    "shared_atomics",
    "atomics_shared",
    "atomics_global",
    "global_atomic",
)
LARGER_EXACT_ROWS = ("t_gemv_tpc_14336",)
FURTHER_ROWS = (
    "t_fma_ilp1",
    "k_l2_twice_16",
    "k_l2_twice_44",
    "t_bank32",
    "t_bank1",
)
"""Rows that fill the GPU; what is free of noise is equal in them too."""

MOST_THREADS = 70_000

SITE_COUNTS = (
    "executed",
    "sectors",
    "sectors_ideal",
    "tag_requests",
    "wavefronts",
    "wavefronts_ideal",
    "sectors_local",
)
"""Names that a measured memory instruction and a site share; absent in a row means zero."""

EXACT_TOTALS = (
    "global_load_requests",
    "global_store_requests",
    "global_atom_requests",
    "global_red_requests",
    "global_load_sectors",
    "local_load_requests",
    "local_store_requests",
    "local_load_sectors",
    "local_store_sectors",
    "l1_tag_requests",
    "l2_theoretical_sectors",
    "l2_theoretical_sectors_ideal",
    "l2_theoretical_sectors_local",
    "shared_wavefronts",
    "shared_wavefronts_ideal",
)
"""Totals without noise: those of the source view, and requests and load sectors of the pipe."""

PIPE_TOTALS = ("shared_load_wavefronts", "shared_store_wavefronts", "shared_atom_wavefronts")
"""Wavefronts as the pipe counts them; replays disturb them in launches that fill the GPU, not in small ones."""


COUNTED_AGAIN: dict[str, int] = {
    case["name"]: case["measured"]["totals"]["instructions"]
    for case in json.loads(Path(__file__).with_name("counted_again.json").read_text())["cases"]
}
"""Instructions of two rows that have 3,072 more, one for each conversion F2F.F64.F32.

A later recording of the same launches, on another H200 with the same driver and profiler and with four contents,
has these numbers, and so has the source view's sum over all instructions; nor did fifty other launches with such
conversions count twice.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured launch."""

    family: str
    case: dict[str, Any]

    @property
    def name(self) -> str:
        name: str = self.case["name"]
        return name

    @property
    def threads(self) -> int:
        return math.prod([*self.case["grid"], *self.case["block"]])

    @property
    def instructions(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.case["measured"]["memory_instructions"]
        return listed

    @property
    def totals(self) -> dict[str, int]:
        totals: dict[str, int] = self.case["measured"]["totals"]
        return totals

    @property
    def warp_instructions(self) -> int:
        return COUNTED_AGAIN.get(self.name, self.totals["instructions"])

    @property
    def copies_async(self) -> bool:
        return any("LDGSTS" in instruction["sass"] for instruction in self.instructions)


@cache
def read_rows(family: str) -> tuple[Row, ...]:
    document = json.loads((FOLDER / f"{family}.json").read_text())
    return tuple(Row(family, case) for case in document["cases"])


def list_families() -> tuple[str, ...]:
    return tuple(sorted(path.name.removesuffix(".sm_90.cubin") for path in FOLDER.glob("*.sm_90.cubin")))


def list_exact_rows() -> tuple[Row, ...]:
    """The rows of which every count has to be equal."""
    rows = [row for family in list_families() for row in read_rows(family)]
    return tuple(
        row
        for row in rows
        if row.name in LARGER_EXACT_ROWS
        or (
            row.family in EXACT_FAMILIES
            and row.threads <= MOST_THREADS
            and not (row.family == "matrix_load" and row.copies_async)
        )
    )


def list_further_rows() -> tuple[Row, ...]:
    """Larger launches of other families."""
    return tuple(row for family in list_families() for row in read_rows(family) if row.name in FURTHER_ROWS)


def list_open_rows() -> tuple[Row, ...]:
    """The rows whose counting rules are still looked for."""
    rows = [row for family in OPEN_FAMILIES for row in read_rows(family)]
    apart = [row for row in read_rows("matrix_load") if row.copies_async]
    return tuple(row for row in (*rows, *apart) if row.threads <= MOST_THREADS)
