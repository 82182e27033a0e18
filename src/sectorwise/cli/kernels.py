"""Turns the kernels of the package into a table of their times on this machine's GPU, beside their peers'."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sectorwise.kernels.bench import BenchRow


@click.group()
def kernels() -> None:
    """The package's own kernels, for arrays on a GPU."""


@kernels.command()
@click.option("--select", default="", metavar="TEXT", help="Only what has this in its name: 'gemv bf16', 'transpose'.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.json", help="Also write."
)
def bench(select: str, output: Path | None) -> None:
    """Time them: weights rotated past L2, CUDA graphs replayed in turns with PyTorch's where it is installed."""
    from sectorwise.cli.output import write_text
    from sectorwise.kernels.bench import describe_run, measure_cases

    rows: list[BenchRow] = []
    for row in measure_cases(select):
        if not rows:
            click.echo(f"{'':<38}{'us':>9}{'alone':>9}{'TB/s':>7}{'peer us':>9}{'goal':>12}")
        rows.append(row)
        click.echo(render_row(row))
    if output is not None:
        write_text(json.dumps(describe_run(rows), indent=2, allow_nan=False) + "\n", output)


def render_row(row: BenchRow) -> str:
    """One line of the table: `ok` or `slow` where there is a goal or a peer to hold it against.

    `alone` is a launch that does not overlap with the one before.
    """
    alone = "-" if row.alone_us is None else f"{row.alone_us:.2f}"
    peer = "-" if row.peer_us is None else f"{row.peer_us:.2f}"
    goal = f"{row.goal_of_peer:g} x peer" if row.goal_us is None and row.goal_tbps is None else ""
    goal = f"{row.goal_us:.2f} us" if row.goal_us is not None else goal
    goal = f"{row.goal_tbps:.2f} TB/s" if row.goal_tbps is not None else goal
    verdict = {True: "  ok", False: "  slow", None: ""}[row.reached]
    return f"{row.name:<38}{row.us:>9.2f}{alone:>9}{row.tbps:>7.2f}{peer:>9}{goal:>12}{verdict}"
