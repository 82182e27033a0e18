"""Turns the list of rules into a table on the terminal."""

from __future__ import annotations

import sys
import textwrap

import click

from sectorwise.cli.output import describe_page
from sectorwise.report.page import Page, Role, paint, tidy
from sectorwise.rules.table import RULES


@click.command()
def rules() -> None:
    """List the rules: code, severity, name, and what each finds."""
    page = describe_page(sys.stdout)
    click.echo("\n".join(write_table(page)))


def write_table(page: Page) -> list[str]:
    """Two or more lines for each rule, in the order of the codes."""
    lines = []
    for rule in RULES:
        lines.append(
            paint(page, Role.TITLE, f"{rule.code} {rule.name}")
            + f" ({rule.severity}{', with --caches' if rule.follows_caches else ''})"
        )
        lines += textwrap.wrap(
            tidy(page, rule.summary), page.width, initial_indent="      ", subsequent_indent="      "
        )
    return lines
