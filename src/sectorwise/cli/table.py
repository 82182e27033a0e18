"""Turns the name of a table that people memorise into that table, computed for a device."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from sectorwise.advise.tables import make_table
from sectorwise.cli.output import describe_page, write_text
from sectorwise.report.advice import render_text

SCHEMA = "sectorwise.table/1"
_DEFAULT = click.core.ParameterSource.DEFAULT


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
@click.option(
    "--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True, help="Output."
)
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write there.")
def table(name: str, device: str, form: str, output: Path | None) -> None:
    """Print a table: access-patterns, tiling or devices."""
    if name == "devices" and click.get_current_context().get_parameter_source("device") is not _DEFAULT:
        raise click.UsageError("the table of devices has all of them: it takes no --device")
    found = make_table(name, device)
    if form == "json":
        text = json.dumps({"schema": SCHEMA, "title": found.title, "rows": found.to_records()}, indent=2) + "\n"
    else:
        text = render_text(str(found), describe_page(sys.stdout))
    write_text(text, output)
