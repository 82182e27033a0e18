"""Turns the results of `sectorwise kernels bench` into the tables of docs/kernels.md.

python -m tools.write_kernels benchmarks/kernels/h200.json docs/kernels.md
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

Row = dict[str, Any]

PRODUCTS: Final = "| product, N x K | inputs | overlapping | alone | TB/s | PyTorch | goal |"
MOVES: Final = "| moved | ours | TB/s | memcpy | PyTorch | goal |"
_TYPES: Final = {"bf16": "bfloat16", "u4": "INT4", "e4m3": "FP8", "i8": "INT8"}


def list_products(rows: list[Row]) -> Iterator[str]:
    """A line of each product with vectors."""
    for row in rows:
        found = re.fullmatch(r"gemv (?:x(\d+) )?(\w+) (\d+ x \d+)", row["name"])
        if found:
            inputs, kind, shape = found.groups()
            times = (_show(row["us"]), _show(row["alone_us"]), f"{row['tbps']:.2f}", _show(row["peer_us"]))
            yield _line(f"{_TYPES[kind]} {shape}", inputs or "1", *times, _show_goal(row))


def list_moves(rows: list[Row]) -> Iterator[str]:
    """A line of each copy and transpose."""
    for row in rows:
        if row["name"].startswith(("copy", "transpose")):
            name = re.sub(r"transpose (\d+) bit ", r"transpose, \1 bits, ", row["name"])
            times = (_show(row["us"]), f"{row['tbps']:.2f}", _show(row["memcpy_us"]), _show(row["peer_us"]))
            yield _line(name, *times, _show_goal(row))


def write_tables(page: str, rows: list[Row]) -> str:
    """The page with its two tables made anew."""
    for head, lines in ((PRODUCTS, list_products(rows)), (MOVES, list_moves(rows))):
        before, found, rest = page.partition(head)
        if not found:
            raise SystemExit(f"the page has no table that begins with {head}")
        after = re.sub(r"\A\n(?:\|.*\n)*", "", rest)
        page = "\n".join((before + head, "|" + "---|" * (head.count("|") - 1), *lines, after))
    return page


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _show(us: float | None) -> str:
    """Three digits, all of a whole number."""
    if us is None:
        return "-"
    return f"{us:.0f} us" if us >= 100 else f"{us:.{1 if us >= 10 else 2}f} us"


def _show_goal(row: Row) -> str:
    if row["goal_us"] is not None:
        goal = f"{row['goal_us']:g} us"
    elif row["goal_tbps"] is not None:
        goal = f"{row['goal_tbps']:.2f} TB/s"
    else:
        goal = f"{row['goal_of_peer']:g} x peer"
    return goal if row["reached"] else f"{goal}, **not reached**"


def main() -> None:
    """Read the command line and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    rows = json.loads(given.results.read_text(encoding="utf-8"))["rows"]
    given.page.write_text(write_tables(given.page.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
