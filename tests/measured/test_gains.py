"""The gains of remedies: what the model says of both sides, what an H200 took, and that the page shows both.

`gains/*.cu` are kernels as they were, `gains/*.after.cu` what a remedy made of them; `tools/write_gains.py` writes the
latter and the predictions, `tools/measure_gains.py` times both on a GPU. Every pair left the same bits there, too.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from tools.write_gains import PAIRS, find_remedy, predict_side, scale_remedy

FOLDER = Path(__file__).parent / "gains"
PAGE = (FOLDER.parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
SOURCES = {name: FOLDER / file for name, (file, _) in PAIRS.items()}


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


MEASURED, PREDICTED = read("measured")["pairs"], read("predicted")["pairs"]
LAUNCHES = {pair["name"]: pair for pair in read("pairs")["pairs"]}


def gain(pair: dict[str, Any]) -> float:
    return float(pair["before"]["time_ns"] / pair["after"]["time_ns"])


def test_more_than_ten_pairs_were_timed_and_left_the_same_bits() -> None:
    assert set(MEASURED) == set(PREDICTED) == set(LAUNCHES) == set(PAIRS)
    assert len({pair["source"] for pair in LAUNCHES.values()}) >= 9
    assert len(MEASURED) >= 10
    assert all(pair["same_outputs"] for pair in MEASURED.values())


@pytest.mark.parametrize("name", PAIRS)
def test_page_has_the_gain_as_predicted_and_as_measured(name: str) -> None:
    measured, predicted = MEASURED[name], PREDICTED[name]
    times = (f"{pair[side]['time_ns'] / 1000:.1f}" for pair in (predicted, measured) for side in ("before", "after"))
    before, after, was, became = times
    cells = (before, after, f"{gain(predicted):.2f}", was, became, f"{gain(measured):.2f}")
    assert f"| {' | '.join(cells)} |" in PAGE


def test_page_says_how_far_off_the_gains_are() -> None:
    errors = [abs(gain(PREDICTED[name]) / gain(MEASURED[name]) - 1) for name in PAIRS]
    median, worst = statistics.median(errors), max(errors)
    assert f"the median gain is {100 * median:.0f} % off, the worst {100 * worst:.0f} %" in " ".join(PAGE.split())


@pytest.mark.parametrize("name", ["product", "waiting"])
def test_predictions_are_those_of_the_model_as_it_is(name: str) -> None:
    """If not: `python tools/write_gains.py predict tests/measured/gains`, and mend the page."""
    sides = {side: predict_side(FOLDER, LAUNCHES[name][side]) for side in ("before", "after")}
    assert gain(sides) == pytest.approx(gain(PREDICTED[name]), rel=0.02)
    for side, found in sides.items():
        assert found["sectors"] == PREDICTED[name][side]["sectors"]
        assert found["wavefronts"] == PREDICTED[name][side]["wavefronts"]


@pytest.mark.parametrize("name", ["naive", "matrices_padded", "points"])
def test_what_was_timed_is_what_the_remedy_makes_of_the_source(name: str) -> None:
    source = SOURCES[name]
    small, timed, remedy = find_remedy(source, PAIRS[name][1])
    text, launch = scale_remedy(source.read_text(encoding="utf-8"), small, timed, remedy)
    assert text == (FOLDER / f"{name}.after.cu").read_text(encoding="utf-8")
    after = LAUNCHES[name]["after"]
    assert (launch.kernel, [*launch.grid], [*launch.block]) == (after["kernel"], after["grid"], after["block"])
