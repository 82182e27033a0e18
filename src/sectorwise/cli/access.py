"""Turns an index expression or a layout into a report on what one access of a warp costs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from sectorwise.advise.access import OPERATIONS, SPACES, access_cpu
from sectorwise.advise.access import access as find_access
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.report.access import render, render_json

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("where", metavar="EXPRESSION")
@click.option("--width", type=int, default=4, show_default=True, metavar="BYTES", help="Bytes a lane.")
@click.option("--unit", type=int, default=1, show_default=True, metavar="BYTES", help="EXPRESSION counts in these.")
@click.option("--space", type=click.Choice(SPACES), default="global", show_default=True, help="The memory.")
@click.option("--operation", type=click.Choice(OPERATIONS), default="load", show_default=True, help="What is done.")
@click.option("--mask", metavar="CONDITION", help="Lanes that access: 'i < 24', or bits: 0x00ffffff.")
@click.option("--warps", type=int, default=1, show_default=True, metavar="N", help="Sum over so many warps.")
@click.option("--block", type=int, default=0, show_default=True, metavar="N", help="The value of `block`.")
@click.option("--cpu", "count", type=int, metavar="N", help="N accesses of one CPU core instead: lines of 64 bytes.")
@options.form(["terminal", "json"])
@options.output
def access(
    where: str,
    width: int,
    unit: int,
    space: str,
    operation: str,
    mask: str | None,
    warps: int,
    block: int,
    count: int | None,
    form: str,
    output: Path | None,
) -> None:
    """Show what an access costs whose lanes go where EXPRESSION says: sectors, lines, wavefronts, and a picture.

    EXPRESSION is a byte offset (times --unit) over `i`, the lane, and `warp`, `thread`, `block`, with C's operators:
    'i*12', '(i/8)*4096 + i%8*4', 'Swizzle<3,4,3>(i*128)'; or a layout in CuTe's notation: '(32,4):(4,128)'.
    """
    if count is not None:
        cost = access_cpu(where, width, unit=unit, count=count)
        text = render_json(cost) if form == "json" else render(cost, describe_page(sys.stdout))
    else:
        found = find_access(
            where,
            width,
            space=space,
            operation=operation,
            mask=mask,
            unit=unit,
            warps=warps,
            block=block,
        )
        text = render_json(found) if form == "json" else render(found, describe_page(sys.stdout))
    write_text(text, output)
