"""The gains of remedies: what the model says of both sides, what an H200 took, and that the page shows both.

`gains/*.cu` are kernels as they were, `gains/*.after.cu` what a remedy made of them; `tools/write_gains.py` writes the
latter and the predictions, `tools/measure_gains.py` times both on a GPU. Every pair left the same bits there, too.
Further remedies turn one measured launch of `h200` into another: the same memory instructions with the same counts.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sectorwise.analyze import analyze
from sectorwise.launch.files import parse_launch_file
from tests.measured.compare import list_counted, list_measured
from tests.measured.rows import Row, read_rows
from tools.write_gains import PAIRS, RECORDED, analyze_recorded, find_remedy, predict_side, scale_remedy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FOLDER = Path(__file__).parent / "gains"
PAGE = (FOLDER.parents[2] / "docs" / "findings.md").read_text(encoding="utf-8")
SOURCES = {name: FOLDER / file for name, (file, _) in PAIRS.items()}


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


MEASURED, PREDICTED = read("measured")["pairs"], read("predicted")["pairs"]
LAUNCHES = {pair["name"]: pair for pair in read("pairs")["pairs"]}
RECORDED_PREDICTED = read("predicted")["recorded"]


def gain(pair: dict[str, Any]) -> float:
    return float(pair["before"]["time_ns"] / pair["after"]["time_ns"])


def test_more_than_ten_pairs_were_timed_and_left_the_same_bits() -> None:
    assert set(MEASURED) == set(PREDICTED) == set(LAUNCHES) == set(PAIRS)
    assert len({pair["source"] for pair in LAUNCHES.values()}) >= 9
    assert len(MEASURED) >= 10
    assert all(pair["same_outputs"] for pair in MEASURED.values())


def find_row(family: str, name: str) -> Row:
    return next(row for row in read_rows(family) if row.name == name)


def read_recorded(name: str) -> dict[str, Any]:
    """Times that the profiler recorded of both launches of a pair."""
    pair = RECORDED[name]
    rows = {side: find_row(pair.family, getattr(pair, side)) for side in ("before", "after")}
    return {side: {"time_ns": row.totals["time_ns"]} for side, row in rows.items()}


def write_cells(predicted: dict[str, Any], measured: dict[str, Any]) -> str:
    times = (f"{pair[side]['time_ns'] / 1000:.1f}" for pair in (predicted, measured) for side in ("before", "after"))
    before, after, was, became = times
    cells = (before, after, f"{gain(predicted):.2f}", was, became, f"{gain(measured):.2f}")
    return f"| {' | '.join(cells)} |"


@pytest.mark.parametrize("name", PAIRS)
def test_page_has_the_gain_as_predicted_and_as_measured(name: str) -> None:
    assert write_cells(PREDICTED[name], MEASURED[name]) in PAGE


@pytest.mark.parametrize("name", RECORDED)
def test_page_has_the_gain_of_recorded_launches(name: str) -> None:
    assert write_cells(RECORDED_PREDICTED[name], read_recorded(name)) in PAGE


def test_page_says_how_far_off_the_gains_are() -> None:
    pairs = [(PREDICTED[name], MEASURED[name]) for name in PAIRS]
    pairs += [(RECORDED_PREDICTED[name], read_recorded(name)) for name in RECORDED]
    errors = [abs(gain(predicted) / gain(measured) - 1) for predicted, measured in pairs]
    median, worst = statistics.median(errors), max(errors)
    assert f"the median gain is {100 * median:.0f} % off, the worst {100 * worst:.0f} %" in " ".join(PAGE.split())


def test_gains_are_those_of_ten_kernels_at_least() -> None:
    """Transposes of another size, of floats, are no further kernels."""
    further = {pair.before for pair in RECORDED.values()} - {"t_tr_naive", "t_tr_tile"}
    assert len({pair["source"] for pair in LAUNCHES.values()} | further) >= 10


@pytest.mark.parametrize("name", RECORDED)
def test_remedy_makes_one_measured_launch_into_another(name: str) -> None:
    """Its memory instructions, compiled today, have the counts that the profiler recorded, one by one."""
    pair = RECORDED[name]
    before, after = analyze_recorded(pair)
    assert sort_counts(list_counted(before)) == sort_counts(list_measured(find_row(pair.family, pair.before)))
    assert sort_counts(list_counted(after)) == sort_counts(list_measured(find_row(pair.family, pair.after)))
    assert (after.faults, after.limitations, after.hangs) == ((), (), ())


def sort_counts(counts: Sequence[Mapping[str, int | None]]) -> list[list[tuple[str, int | None]]]:
    """The compiler may order its instructions otherwise from one compilation to the next."""
    return sorted(sorted(each.items()) for each in counts)


@pytest.mark.parametrize("name", ["product", "waiting"])
def test_predictions_are_those_of_the_model_as_it_is(name: str) -> None:
    """If not: `python tools/write_gains.py predict tests/measured/gains`, and mend the page."""
    sides = {side: predict_side(FOLDER, LAUNCHES[name][side]) for side in ("before", "after")}
    assert gain(sides) == pytest.approx(gain(PREDICTED[name]), rel=0.02)
    for side, found in sides.items():
        assert found["sectors"] == PREDICTED[name][side]["sectors"]
        assert found["wavefronts"] == PREDICTED[name][side]["wavefronts"]


@pytest.mark.parametrize("name", ["matrices_padded", "points"])
def test_what_was_timed_is_what_the_remedy_makes_of_the_source(name: str) -> None:
    source = SOURCES[name]
    small, timed, remedy = find_remedy(source, PAIRS[name][1])
    text, launch = scale_remedy(source.read_text(encoding="utf-8"), small, timed, remedy)
    assert text == (FOLDER / f"{name}.after.cu").read_text(encoding="utf-8")
    after = LAUNCHES[name]["after"]
    assert (launch.kernel, [*launch.grid], [*launch.block]) == (after["kernel"], after["grid"], after["block"])


def test_transpose_that_was_timed_does_the_work_of_the_remedy(tmp_path: Path) -> None:
    """It has the number of columns where the remedy names the parameter that it came with."""
    small, timed, remedy = find_remedy(SOURCES["naive"], PAIRS["naive"][1])
    assert "(y + j) * n + x" in remedy.change
    source = tmp_path / "naive.cu"
    text, launch = scale_remedy(SOURCES["naive"].read_text(encoding="utf-8"), small, timed, remedy)
    source.write_text(text, encoding="utf-8")
    (today,) = analyze(source, launch, device="h200").kernels
    case = {key: LAUNCHES["naive"]["after"][key] for key in ("kernel", "grid", "block", "shared", "args")}
    cubin = FOLDER / "naive.after.sm_90.cubin"
    (measured,) = analyze(cubin, parse_launch_file(json.dumps({"cases": [case]}), cubin).cases, device="h200").kernels
    assert sort_counts(list_counted(today)) == sort_counts(list_counted(measured))
