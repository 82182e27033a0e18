"""Kernels that stand for statements of docs/textbook.md count what the profiler showed, instruction by instruction."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sectorwise.analyze import analyze
from sectorwise.launch.files import read_launch_file
from tests.measured.compare import count_site
from tests.measured.rows import EXACT_TOTALS, SITE_COUNTS

FOLDER = Path(__file__).parent / "textbook"
ROWS = (
    "s_thread_a_row_much_l1", "s_gemv_int4", "s_records_ten", "s_records_one", "s_words_0_and_4224",
    "s_words_0_and_4228", "s_stage_590", "s_stage_128", "s_stage_128_twice", "s_stage_227k", "s_stage_113k",
    "s_stage_114k", "s_copy_32", "s_gemv_reduced", "s_gemv_unreduced", "s_chunks_4k",
)  # fmt: skip
TOTALS = (*EXACT_TOTALS, "instructions")


MAPPINGS = (
    "m_row_vector_1", "m_row_scalar_1", "m_row_vector_2", "m_row_vector_4", "m_row_scalar_4", "m_row_split_2",
    "m_row_split_4", "m_columns_1", "m_columns_8", "m_columns_32",
)  # fmt: skip

SPLITS = ("m_few_warps", "m_few_last_16", "m_few_last_64", "m_few_atomics_16", "m_few_atomics_64", "m_clear")
MEETINGS = {"m_few_last_16": 128, "m_few_last_64": 512}
"""Instructions that the SMs' counter has beyond the source view, which has ours: one for each warp whose lanes come to
a WARPSYNC in two groups; here a warp of each block does."""


@cache
def read_measured(family: str) -> dict[str, dict[str, Any]]:
    cases = json.loads((FOLDER / f"{family}.json").read_text(encoding="utf-8"))["cases"]
    return {case["name"]: case["measured"] for case in cases}


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *(("statements", name) for name in ROWS),
        *(("mappings", name) for name in MAPPINGS),
        *(("splits", name) for name in SPLITS),
    ],
)
def test_every_instruction_counts_what_was_measured(family: str, name: str) -> None:
    (launch,) = (each for each in read_launch_file(FOLDER / f"{family}.json").cases if each.case == name)
    (kernel,) = analyze(FOLDER / f"{family}.sm_90.cubin", launch, device="h200", follow_caches=False).kernels
    measured = read_measured(family)[name]
    listed = [{key: each.get(key, 0) for key in SITE_COUNTS} for each in measured["memory_instructions"]]
    assert [count_site(site) for site in kernel.sites] == listed
    totals = {key: measured["totals"][key] for key in TOTALS if key in measured["totals"]}
    counted = {key: getattr(kernel.totals, key) for key in totals}
    assert {**counted, "instructions": counted["instructions"] + MEETINGS.get(name, 0)} == totals
