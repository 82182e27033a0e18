"""Turns the name of a table that people memorise into that table, computed for a device."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from sectorwise.advise.tables import make_table
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.report.advice import render_text

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "sectorwise.table/1"


@click.command()
@click.argument("name", metavar="access-patterns|tiling|devices")
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
@options.form(["terminal", "json"])
@options.output
def table(name: str, device: str, form: str, output: Path | None) -> None:
    """Print a table that people memorise, computed for a device."""
    found = make_table(name, device)
    if form == "json":
        text = json.dumps({"schema": SCHEMA, "title": found.title, "rows": found.to_records()}, indent=2) + "\n"
    else:
        text = render_text(str(found), describe_page(sys.stdout))
    write_text(text, output)
