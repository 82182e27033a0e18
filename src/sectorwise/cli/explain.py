"""Turns the code of a rule into its manual page on the terminal."""

from __future__ import annotations

import sys
import textwrap
from itertools import groupby
from typing import TYPE_CHECKING

import click

from sectorwise.cli.output import describe_page
from sectorwise.report.page import Role, paint, tidy
from sectorwise.rules.selection import find_rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sectorwise.report.page import Page


@click.command()
@click.argument("codes", nargs=-1, required=True, metavar="CODE...")
def explain(codes: tuple[str, ...]) -> None:
    """Print the manual page of a rule: what it finds, why that costs, and what to write instead.

    CODE is a rule's code or name, or the beginning of codes: SW201, load-bank-conflict, SW2.
    """
    page = describe_page(sys.stdout)
    found = dict.fromkeys(rule for code in codes for rule in find_rules(code))
    pages = []
    for rule in found:
        title = paint(page, Role.TITLE, f"{rule.code} {rule.name}") + f" ({rule.severity})"
        pages.append("\n".join([title, "", *write_manual(rule.manual, page)]))
    click.echo("\n\n".join(pages))


def write_manual(manual: str, page: Page) -> Iterator[str]:
    """The lines of a manual page: paragraphs filled to the width of the page, code and lists as they are."""
    is_code = False
    for is_blank, group in groupby(manual.strip().splitlines(), key=lambda line: not line.strip()):
        lines = list(group)
        fences = sum(line.startswith("```") for line in lines)
        if is_blank or is_code or fences or lines[0].startswith(("#", "-", "|", " ")):
            yield from (tidy(page, line) for line in lines)
        else:
            yield from textwrap.wrap(tidy(page, " ".join(lines)), page.width, break_on_hyphens=False)
        is_code ^= fences % 2 == 1
