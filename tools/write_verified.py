"""Turns documents of `sectorwise verify --format json` into a small record of them, and that into the table of a page.

    python -m tools.write_verified record runs.json -o tests/verify/h200.json
    python -m tools.write_verified page tests/verify/h200.json docs/verify.md

`runs.json` says what no document says, and which documents there are, as paths beside it: `date`, `driver`, `profiler`,
`compilers`, and `runs`, each with `kernels` (the text of its row), `document`, and, for a source of this repository
that the tests execute again, `source`. `page` replaces what stands between two comments of the page.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any, Final

Json = dict[str, Any]

BEGIN: Final = "<!-- written by tools/write_verified.py from tests/verify/h200.json -->"
END: Final = "<!-- end of what is written -->"
_HEAD: Final = """| kernels | launches | instructions | numbers equal | not equal | buffers and variables |
|---|---|---|---|---|---|"""
_SHOWN: Final = ("noise", "inexact", "different")
_WORDS: Final = {"noise": "noise", "inexact": "not exact", "different": "wrong"}
_KEPT: Final = ("name", "verdict", "predicted", "counted", "certainty")


def condense_launch(kernel: Json, *, rows: bool) -> Json:
    """A launch of a document: how many numbers are equal, which are not; with `rows`, what was counted, by line."""
    quantities = [
        (place, quantity)
        for place, listed in [
            *((f"{site['sass']}", site["quantities"]) for site in kernel["sites"]),
            ("", kernel["totals"]),
        ]
        for quantity in listed
    ]
    verdicts = Counter(quantity["verdict"] for _, quantity in quantities)
    buffers = kernel["outputs"]
    launch = {
        "kernel": kernel["name"],
        "case": kernel["case"],
        "grid": kernel["launch"]["grid"],
        "block": kernel["launch"]["block"],
        "dynamic_shared_bytes": kernel["launch"]["dynamic_shared_bytes"],
        "instructions": len(kernel["sites"]),
        "verdicts": dict(sorted(verdicts.items())),
        "not_equal": [
            {"at": place, **{name: quantity[name] for name in _KEPT}}
            for place, quantity in quantities
            if quantity["verdict"] in _SHOWN
        ],
        "buffers": None if buffers is None else len(buffers),
        "buffers_rounded": sum(buffer["rounded"] > 0 for buffer in buffers or ()),
        "buffers_differing": sum(buffer["differing"] > 0 for buffer in buffers or ()),
        "notes": kernel["notes"],
        "time_ns": kernel["time_ns"],
    }
    return {**launch, "counted": sum_by_line(kernel["sites"])} if rows else launch


def sum_by_line(sites: list[Json]) -> list[Json]:
    """What was counted, summed over the instructions of one source line that access memory in one way."""
    sums: dict[tuple[int, str, str, int], Counter[str]] = defaultdict(Counter)
    for site in sites:
        key = (site["location"]["line"], site["space"], site["operation"], site["width_bytes"])
        for quantity in site["quantities"]:
            sums[key][quantity["name"]] += quantity["counted"] or 0
    return [
        {"line": line, "space": space, "operation": operation, "width_bytes": width, **dict(sorted(counts.items()))}
        for (line, space, operation, width), counts in sorted(sums.items())
    ]


def condense_run(run: Json, document: Json) -> Json:
    """One run: its row's text, and its launches."""
    source = run.get("source")
    launches = [condense_launch(kernel, rows=source is not None) for kernel in document["kernels"]]
    named = {} if source is None else {"source": source}
    return {"kernels": run["kernels"], **named, "gpu": document["counted_on"], "launches": launches}


def record(path: Path) -> Json:
    """The record of all runs that a file lists."""
    listed = json.loads(path.read_text(encoding="utf-8"))
    runs = [condense_run(run, json.loads((path.parent / run["document"]).read_text())) for run in listed["runs"]]
    return {**{name: listed[name] for name in ("date", "driver", "profiler", "compilers")}, "runs": runs}


def write_table(recorded: Json) -> str:
    """The table: a row for each run."""
    return "\n".join([_HEAD, *(write_row(run) for run in recorded["runs"])])


def write_row(run: Json) -> str:
    """One run: how much of it was compared, and what is not equal, in words."""
    launches = run["launches"]
    verdicts = sum((Counter(launch["verdicts"]) for launch in launches), Counter[str]())
    instructions = sum(launch["instructions"] for launch in launches)
    cells = [run["kernels"], str(len(launches)), f"{instructions:,}", f"{verdicts['equal']:,}"]
    return f"| {' | '.join([*cells, write_rest(launches, verdicts), write_buffers(launches)])} |"


def write_rest(launches: list[Json], verdicts: Counter[str]) -> str:
    """What is not equal, and why that proves nothing, if it does not; the first of each kind as an example."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for launch in launches:
        for each in launch["not_equal"]:
            is_partial = each["verdict"] == "inexact" and each["certainty"] is None
            kind = "unknown in part" if is_partial else _WORDS[each["verdict"]]
            kinds[kind].append(
                f"`{each['name']}` of `{launch['kernel']}`, {each['counted']:,} for {each['predicted']:,}"
            )
    parts = [
        f"{len(texts)}, {kind}: {'' if len(texts) == 1 else 'as '}{texts[0]}" for kind, texts in sorted(kinds.items())
    ]
    if verdicts["not_predicted"]:
        parts.append(f"{verdicts['not_predicted']} not predicted")
    return "; ".join(parts) or "0"


def write_buffers(launches: list[Json]) -> str:
    """How many buffers were compared, and how."""
    compared = sum(launch["buffers"] or 0 for launch in launches)
    differing = sum(launch["buffers_differing"] for launch in launches)
    rounded = sum(launch["buffers_rounded"] for launch in launches)
    unknown = sum(launch["buffers"] is None for launch in launches)
    words = f"{differing} of {compared} differ" if differing else f"all {compared} equal"
    words += f", {rounded} within rounding" if rounded else ""
    return words + (f"; of {unknown} launches not known" if unknown else "")


def replace_table(page: str, table: str) -> str:
    """The page with the table between its comments.

    Raises:
        ValueError: the page has no such comments.
    """
    before, found, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        message = f"the page has no {BEGIN!r}"
        raise ValueError(message)
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Record, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("record", "page"))
    parser.add_argument("file", type=Path)
    parser.add_argument("page", type=Path, nargs="?")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.what == "record":
        options.output.write_text(json.dumps(record(options.file), indent=1) + "\n", encoding="utf-8")
        return
    recorded = json.loads(options.file.read_text(encoding="utf-8"))
    page = options.page.read_text(encoding="utf-8")
    options.page.write_text(replace_table(page, write_table(recorded)), encoding="utf-8")


if __name__ == "__main__":
    main()
