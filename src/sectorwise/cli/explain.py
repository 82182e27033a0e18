"""Turns the code of a rule into its manual page on the terminal."""

from __future__ import annotations

import sys

import click

from sectorwise.cli.output import describe_page
from sectorwise.report.page import Role, paint, tidy
from sectorwise.rules.selection import find_rules


@click.command()
@click.argument("codes", nargs=-1, required=True, metavar="CODE...")
def explain(codes: tuple[str, ...]) -> None:
    """Print the manual page of a rule: what it finds, why that costs, and what to write instead.

    CODE is a rule's code or name, or the beginning of codes: SW201, load-bank-conflict, SW2.
    """
    page = describe_page(sys.stdout)
    found = dict.fromkeys(rule for code in codes for rule in find_rules(code))
    for rule in found:
        click.echo(paint(page, Role.TITLE, f"{rule.code} {rule.name}") + f" ({rule.severity})\n")
        click.echo("\n".join(tidy(page, line) for line in rule.manual.strip().splitlines()) + "\n")
