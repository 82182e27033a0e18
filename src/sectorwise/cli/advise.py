"""Turns a record, a weight or a matrix into advice on how to lay it out and who should load what."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from sectorwise.advise.gemv import LAYOUTS, advise_gemv
from sectorwise.advise.records import ACCESSES, advise_records
from sectorwise.advise.transpose import advise_transpose
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError
from sectorwise.report.advice import render, render_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sectorwise.advise.ranking import Ranking

_SUFFIXES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def parse_count(text: str, name: str) -> int:
    """A whole number, plain or with K, M, G, powers of 1,024: `4096`, `4M`."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text.strip().replace("_", ""))
    if match is None:
        raise ArgumentError(f"{name}: {text!r} is no whole number; write 4096, or 4M")
    return int(match[1]) * _SUFFIXES[match[2]]


def parse_shape(text: str, name: str) -> tuple[int, int]:
    """Two whole numbers with a comma or an x between: `4096,4096`."""
    parts = re.split(r"\s*[,x]\s*", text.strip())
    if len(parts) != 2:
        raise ArgumentError(f"{name}: {text!r} is no shape; write two extents, such as 4096,4096")
    return parse_count(parts[0], name), parse_count(parts[1], name)


def _add_output(command: Callable[..., None]) -> Callable[..., None]:
    added = (
        click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`."),
        options.form(["terminal", "json"]),
        options.output,
    )
    for option in reversed(added):
        command = option(command)
    return command


def _write(ranking: Ranking[Any], form: str, output: Path | None) -> None:
    write_text(render_json(ranking) if form == "json" else render(ranking, describe_page(sys.stdout)), output)


@click.group()
def advise() -> None:
    """Say which of several ways is fastest before a kernel exists, with the numbers and the reasons."""


@advise.command(short_help="Compare an array of structs, a struct of arrays, blocks.")
@click.option("--record", required=True, metavar="FIELDS", help="Fields as in 'x:f4,y:f4,id:i8'; pos:f4[3] is three.")
@click.option(
    "--touch", required=True, multiple=True, metavar="FIELDS", help="What a kernel reads; * is all; again for another."
)
@click.option("--elements", default="4M", show_default=True, metavar="N", help="How many records.")
@click.option(
    "--access", "pattern", type=click.Choice(ACCESSES), default="stream", show_default=True, help="Which order."
)
@_add_output
def records(
    record: str, touch: tuple[str, ...], elements: str, pattern: str, device: str, form: str, output: Path | None
) -> None:
    """Compare an array of structs, a struct of arrays, and blocks of them."""
    count = parse_count(elements, "--elements")
    _write(advise_records(record, touch, elements=count, pattern=pattern, device=device), form, output)


@advise.command()
@click.option("--shape", required=True, metavar="N,K", help="Outputs and inputs: 4096,4096.")
@click.option("--dtype", default="bf16", show_default=True, metavar="TYPE", help="bf16, fp16, fp8, int8, int4, fp32.")
@click.option("--layout", type=click.Choice(LAYOUTS), default="NK", show_default=True, help="NK: rows of K contiguous.")
@click.option("--batch", type=int, default=1, show_default=True, metavar="N", help="Vectors at once.")
@_add_output
def gemv(shape: str, dtype: str, layout: str, batch: int, device: str, form: str, output: Path | None) -> None:
    """Compare the mappings of threads to the weight of y = W x."""
    n, k = parse_shape(shape, "--shape")
    _write(advise_gemv(n, k, dtype, layout, batch=batch, device=device), form, output)


@advise.command(short_help="Compare the ways of transposing a matrix.")
@click.option("--shape", required=True, metavar="ROWS,COLUMNS", help="Of the matrix, in C order: 4096,4096.")
@click.option("--dtype", default="f32", show_default=True, metavar="TYPE", help="f64, f32, bf16, i8, ...")
@_add_output
def transpose(shape: str, dtype: str, device: str, form: str, output: Path | None) -> None:
    """Compare the ways of transposing a matrix: naive, in tiles, padded, swizzled, vectorised."""
    rows, columns = parse_shape(shape, "--shape")
    _write(advise_transpose(rows, columns, dtype, device=device), form, output)
