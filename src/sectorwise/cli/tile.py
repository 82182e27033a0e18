"""Turns the shape of a matrix product into ranked tiles, or one tile into what it costs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from sectorwise.advise.tiles import judge_tile, plan_tiles
from sectorwise.cli import options
from sectorwise.cli.advise import parse_count, parse_shape
from sectorwise.cli.output import describe_page, write_text
from sectorwise.errors import ArgumentError
from sectorwise.report.advice import render_text
from sectorwise.report.json import to_plain

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = "sectorwise.tiles/1"


def parse_tile(text: str) -> tuple[int, int, int, int]:
    """BM, BN, BK and stages: `128,128,64,3`."""
    parts = text.replace("x", ",").split(",")
    if len(parts) not in {3, 4}:
        raise ArgumentError(f"--from: {text!r} is no tile; write BM,BN,BK,stages, such as 128,128,64,3")
    numbers = [parse_count(part, "--from") for part in parts]
    return numbers[0], numbers[1], numbers[2], numbers[3] if len(numbers) == 4 else 1


@click.command()
@click.argument("m", metavar="M")
@click.argument("n", metavar="N")
@click.argument("k", metavar="K")
@click.option("--dtype", default="fp16", show_default=True, metavar="TYPE", help="fp16, bf16, tf32, fp32, fp8, int8.")
@click.option("--from", "start", metavar="BM,BN,BK,STAGES", help="Judge this tile only.")
@click.option("--warp", metavar="WM,WN", help="With --from: the tile of a warp.")
@click.option("--thread", metavar="TM,TN", help="With --from: the tile of a lane, without tensor cores.")
@click.option("--cluster", metavar="N", help="With --from: blocks that fetch B together.")
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
@options.form(["terminal", "json"])
@options.output
def tile(
    m: str,
    n: str,
    k: str,
    dtype: str,
    start: str | None,
    warp: str | None,
    thread: str | None,
    cluster: str | None,
    device: str,
    form: str,
    output: Path | None,
) -> None:
    """Plan the tiles of C [M, N] = A [M, K] B [K, N]: what each level of memory needs, ranked by time."""
    extents = parse_count(m, "M"), parse_count(n, "N"), parse_count(k, "K")
    if start is None:
        if warp is not None or thread is not None or cluster is not None:
            raise click.UsageError("--warp, --thread and --cluster describe a tile that --from gives")
        plan = plan_tiles(*extents, dtype, device=device)
    else:
        plan = judge_tile(
            *extents,
            parse_tile(start),
            dtype,
            device=device,
            warp=None if warp is None else parse_shape(warp, "--warp"),
            thread=None if thread is None else parse_shape(thread, "--thread"),
            cluster=1 if cluster is None else parse_count(cluster, "--cluster"),
        )
    if form == "json":
        text = json.dumps({"schema": SCHEMA, "plan": to_plain(plan)}, indent=2, allow_nan=False) + "\n"
    else:
        text = render_text(str(plan), describe_page(sys.stdout))
    write_text(text, output)
