"""The page of the models' errors: its tables are what the kept predictions give, and these are what the models say."""

from __future__ import annotations

from statistics import median

import pytest

from sectorwise.analysis.describe_pace import TIME_ERROR
from tools.judge_rows import judge_row, open_rows
from tools.model_errors import (
    DOCUMENT,
    GAVE_CONSTANTS,
    correlate_ranks,
    make_document,
    read_predictions,
)

AGAIN = (
    ("h200", "l2_prefetch", frozenset({"k_pref_128b", "k_pref_256b"})),
    ("h200", "l2_reuse", frozenset({"k_l2_twice_16"})),
    ("h200", "streams", frozenset({"t_read_stride2"})),
)
"""Rows that are judged anew: of prefetches, of the L2's capacity, of time; others take longer."""


def test_the_page_has_the_tables_of_the_predictions() -> None:
    assert DOCUMENT.read_text() == make_document()


@pytest.mark.parametrize(("rows", "family", "names"), AGAIN, ids=[family for _, family, _ in AGAIN])
def test_predictions_are_what_the_models_say(rows: str, family: str, names: frozenset[str]) -> None:
    kept = {
        (each.row, each.quantity): each for each in read_predictions() if (each.rows, each.family) == (rows, family)
    }
    judged = [each for row in open_rows(rows, family, names) for each in judge_row(row)]
    assert {each.row for each in judged} == names
    for each in judged:
        assert round(each.predicted) == kept[each.row, each.quantity].predicted
        assert each.measured == kept[each.row, each.quantity].measured


@pytest.mark.parametrize("quantity", ["L1 hits", "L2 sectors", "DRAM read", "DRAM written"])
def test_measured_launches_are_within_the_goal_in_the_median(quantity: str) -> None:
    chosen = [e for e in read_predictions() if e.rows == "h200" and e.quantity == quantity and e.counts]
    assert len(chosen) >= 10
    assert median(each.error for each in chosen) <= 0.05


def test_time_is_within_the_goal_in_the_median_and_beats_the_naive_guess_two_to_one() -> None:
    times = [each for each in read_predictions() if each.rows == "h200" and each.quantity == "time"]
    assert median(each.error for each in times) <= 0.12
    apart = [each for each in times if each.row not in GAVE_CONSTANTS]
    guesses = [abs((each.baseline or 0) - each.measured) / each.measured for each in apart]
    assert median(guesses) > 2 * median(each.error for each in apart)
    everything = [each for each in read_predictions() if each.quantity == "time"]
    assert correlate_ranks([e.predicted for e in everything], [e.measured for e in everything]) > 0.97
    assert round(median(each.error for each in everything), 2) == TIME_ERROR.median
    assert TIME_ERROR.source.startswith(f"{len(everything)} launches")
