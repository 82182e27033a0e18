"""Turns measured launches and the models into the tables of errors that docs/model-errors.md publishes.

Run from the repository's root:

    python -m tools.model_errors --judge h200 corpus    run the models on sets of rows, and keep what they say
    python -m tools.model_errors --ablate               the same without one term at a time, for corpus and larger rows
    python -m tools.model_errors --write                write the tables into the document

What the models said is kept in tests/measured/predictions.json; a test judges some of the rows anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from sectorwise.model.bounds import Obstacle
from tools.judge_rows import FOLDERS, Judged, judge_row, judge_time_without, list_families, open_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sectorwise.device import DeviceSpec
    from tools.judge_rows import Change, Row

PREDICTIONS = Path("tests/measured/predictions.json")
ABLATIONS = Path("tests/measured/ablations.json")
DOCUMENT = Path("docs/model-errors.md")
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"

QUANTITIES = ("L1 hits", "L2 sectors", "DRAM read", "DRAM written", "time")
MEDIAN, WORST = 0.05, 0.20
GOALS = {"time": (0.12, 0.35)}
GAVE_CONSTANTS = frozenset(
    {
        "k_ld_f32_gather",
        "k_mm_tile16",
        "k_mm_tile32",
        "t_chunk8",
        "t_aos48_all",
        "t_sum_block",
        "t_read_stride2",
        "t_gather_hash",
        "t_read_stride32",
        "k_red_same",
        "blur_rows",
        "grey",
        "heat2d",
        "interleaved_to_planes",
        "life",
        "median3x3",
        "wave_fourth_order",
    }
)
"""Launches from which a constant of a device file was read off."""


def _share_nothing(device: DeviceSpec) -> DeviceSpec:
    return device if device.caches is None else replace(device, caches=replace(device.caches, merge_most=1))


def _make_l1_direct(device: DeviceSpec) -> DeviceSpec:
    return device if device.caches is None else replace(device, caches=replace(device.caches, l1_ways=1))


CHANGES: dict[str, Change] = {
    "no sharing of requests on the way to the L2": _share_nothing,
    "an L2 in one piece": lambda device: replace(device, l2_partitions=1),
    "an L2 of half the size": lambda device: replace(device, l2_bytes=device.l2_bytes // 2),
    "DRAM read by sectors of 32 bytes": lambda device: replace(device, dram_fetch_bytes=32),
    "an L1 of one way": _make_l1_direct,
}
WITHOUT = {f"time without {obstacle.value}": frozenset({obstacle}) for obstacle in Obstacle}
"""Terms of the models that can be taken away, each by itself: of the caches, and of the time alone."""


def judge_set(rows: str, families: Iterable[str] | None = None) -> list[Judged]:
    """What the models say of all rows of a set."""
    judged = []
    for family in families or list_families(rows):
        for row in open_rows(rows, family):
            judged += list(judge_row(row))
        print(rows, family, len(judged), file=sys.stderr)
    return judged


def judge_without_terms(rows: str) -> list[tuple[str, Judged]]:
    """What the models say of a set's rows without each term, and with all."""
    judged = []
    for family in list_families(rows):
        for row in open_rows(rows, family):
            judged += ablate_row(row)
        print(rows, family, len(judged), file=sys.stderr)
    return judged


def ablate_row(row: Row) -> list[tuple[str, Judged]]:
    """What the models say of a row with all terms, and without each."""
    names = {without: name for name, without in WITHOUT.items()}
    judged = [("all terms", each) for each in judge_row(row)]
    for name, change in CHANGES.items():
        judged += [(name, each) for each in judge_row(row, change)]
    return judged + [(names[without], each) for without, each in judge_time_without(row, names)]


def read_predictions() -> list[Judged]:
    """What was kept."""
    return [Judged(**each) for each in json.loads(PREDICTIONS.read_text())]


def keep_predictions(judged: list[Judged]) -> None:
    """Keep what the models say of some sets in place of what they said before."""
    anew = {each.rows for each in judged}
    kept = [each for each in read_predictions() if each.rows not in anew] if PREDICTIONS.exists() else []
    lines = [json.dumps(_round(each)) for each in [*kept, *judged]]
    PREDICTIONS.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def _round(each: Judged) -> dict[str, object]:
    return {key: round(value) if isinstance(value, float) else value for key, value in asdict(each).items()}


def write_tables(judged: list[Judged], ablations: dict[str, dict[str, float]]) -> str:
    """The document's tables: errors by set, time, ablation, families, rows."""
    parts = ["## Errors", "", *write_summary(judged)]
    parts += ["", *compare_times([each for each in judged if each.quantity == "time"])]
    if ablations:
        parts += ["", "## Without one term", "", *write_ablations(ablations)]
    parts += ["", "## Family by family", "", *write_families(judged)]
    parts += ["", "## Row by row", "", "Rows above the floors, worst first:", "", *write_rows(judged)]
    return "\n".join(parts)


def write_summary(judged: list[Judged]) -> list[str]:
    """Errors by quantity and set; of launches above the floors."""
    lines = [
        "| quantity | rows | launches | median error | worst | within the goal | goal |",
        "|---|---|---|---|---|---|---|",
    ]
    for quantity in QUANTITIES:
        goal = GOALS.get(quantity, (MEDIAN, WORST))
        for name, chosen in _list_sets(judged):
            errors = [each.error for each in chosen if each.quantity == quantity and each.counts]
            if errors:
                within = sum(error <= goal[1] for error in errors)
                lines.append(
                    f"| {quantity} | {name} | {len(errors)} | {100 * median(errors):.1f} % | {100 * max(errors):.0f} % "
                    f"| {within} of {len(errors)} | median {100 * goal[0]:.0f} %, worst {100 * goal[1]:.0f} % |"
                )
    return lines


def _list_sets(judged: list[Judged]) -> list[tuple[str, list[Judged]]]:
    h200 = [each for each in judged if each.rows == "h200"]
    fitted = {(each.rows, each.family) for each in judged if _gave(each)}
    return [
        ("h200", h200),
        ("h200, without those that gave constants", [each for each in h200 if each.row not in GAVE_CONSTANTS]),
        ("corpus, given", [each for each in judged if each.rows == "corpus"]),
        ("corpus, held out", [each for each in judged if each.rows == "held out"]),
        ("families left out of the fit", [each for each in judged if (each.rows, each.family) not in fitted]),
    ]


def _gave(each: Judged) -> bool:
    """Whether a constant was read off this launch."""
    return each.row in GAVE_CONSTANTS


def compare_times(times: list[Judged]) -> list[str]:
    """Rank correlation, and the naive guess beside the estimate, by set."""
    lines = ["| rows | launches | rank correlation | median error | of the naive guess | times better |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, chosen in [*_list_sets(times), ("all", times)]:
        if len(chosen) > 2:
            guesses = [abs((each.baseline or 0.0) - each.measured) / each.measured for each in chosen]
            own = correlate_ranks([each.predicted for each in chosen], [each.measured for each in chosen])
            typical, naive = median(each.error for each in chosen), median(guesses)
            lines.append(
                f"| {name} | {len(chosen)} | {own:.3f} | {100 * typical:.1f} % | {100 * naive:.1f} % "
                f"| {naive / typical:.1f} |"
            )
    return lines


def correlate_ranks(one: list[float], other: list[float]) -> float:
    """Spearman's rank correlation."""
    ranks = [np.argsort(np.argsort(np.asarray(values))).astype(float) for values in (one, other)]
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def sum_up_ablations(judged: list[tuple[str, Judged]]) -> dict[str, dict[str, float]]:
    """Median and worst error by ablation and quantity, of rows that count with all terms."""
    counting = {(e.family, e.row, e.quantity) for name, e in judged if name == "all terms" and e.counts}
    table: dict[str, dict[str, float]] = {}
    for name in ("all terms", *CHANGES, *WITHOUT):
        table[name] = {}
        for quantity in QUANTITIES:
            errors = [
                each.error
                for other, each in judged
                if other == name and each.quantity == quantity and (each.family, each.row, quantity) in counting
            ]
            if errors:
                table[name][quantity] = round(median(errors), 4)
                table[name][f"{quantity}, worst"] = round(max(errors), 4)
    return table


def write_ablations(ablations: dict[str, dict[str, float]]) -> list[str]:
    """Median and worst error with one term taken away."""
    lines = [f"| of the given corpus | {' | '.join(QUANTITIES)} |", "|---" * (1 + len(QUANTITIES)) + "|"]
    for name, row in ablations.items():
        cells = [f"{100 * row[q]:.1f} %, {100 * row[f'{q}, worst']:.0f} %" if q in row else "-" for q in QUANTITIES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def write_families(judged: list[Judged]) -> list[str]:
    """Median and worst error of each family; those that gave no constant are as if they had been left out."""
    lines = [f"| family | gave constants | {' | '.join(QUANTITIES)} |", "|---" * (2 + len(QUANTITIES)) + "|"]
    for rows, family in sorted({(each.rows, each.family) for each in judged}):
        chosen = [each for each in judged if (each.rows, each.family) == (rows, family)]
        cells = []
        for quantity in QUANTITIES:
            errors = [each.error for each in chosen if each.quantity == quantity and each.counts]
            cells.append(f"{100 * median(errors):.1f} %, {100 * max(errors):.0f} %" if errors else "-")
        if any(cell != "-" for cell in cells):
            gave = "yes" if any(_gave(each) for each in chosen) else "no"
            lines.append(f"| {family} ({rows}) | {gave} | {' | '.join(cells)} |")
    return lines


def write_rows(judged: list[Judged]) -> list[str]:
    """Every row above the floors."""
    lines = ["| rows | family | launch | quantity | predicted | measured | error |", "|---|---|---|---|---|---|---|"]
    counting = sorted((e for e in judged if e.counts), key=lambda one: (-round(one.error, 4), one.row, one.quantity))
    lines += [
        f"| {each.rows} | {each.family} | {each.row} | {each.quantity} | {each.predicted:,.0f} "
        f"| {each.measured:,.0f} | {100 * each.error:.1f} % |"
        for each in counting
    ]
    return lines


def put_into(document: str, tables: str) -> str:
    """The document with its tables replaced."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables}\n{END}{after}"


def make_document() -> str:
    """The document as it should be."""
    ablations = json.loads(ABLATIONS.read_text()) if ABLATIONS.exists() else {}
    return put_into(DOCUMENT.read_text(), write_tables(read_predictions(), ablations))


def main() -> None:
    """Judge, ablate, or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", nargs="*", choices=[*FOLDERS], help="sets of rows")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    for rows in options.judge or ():
        keep_predictions(judge_set(rows))
    if options.ablate:
        ABLATIONS.write_text(json.dumps(sum_up_ablations(judge_without_terms("corpus")), indent=1) + "\n")
    if options.write:
        DOCUMENT.write_text(make_document())
    elif options.judge is None and not options.ablate:
        print("\n".join(write_summary(read_predictions())))


if __name__ == "__main__":
    main()
