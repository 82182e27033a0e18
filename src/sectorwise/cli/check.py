"""Turns a kernel file and its launches into a report on what each memory instruction costs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from sectorwise.analyze import DEFAULT_DEVICE, analyze
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.progress import show_progress
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.report import json, terminal
from sectorwise.report.page import Page


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--launch",
    "notations",
    multiple=True,
    metavar="TEXT",
    help="A launch, `kernel<<<grid, block>>>(f32[1024], n=5)`; may be repeated.",
)
@click.option(
    "--launches",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="A file with launches; may be repeated. Without either, the comments `// sectorwise: launch ...` count.",
)
@click.option("--kernel", metavar="NAME", help="Only the launches of this kernel.")
@click.option(
    "--device", metavar="NAME", help=f"The GPU to answer for.  [default: {DEFAULT_DEVICE}, or what a cubin is for]"
)
@click.option("-D", "--define", "macros", multiple=True, metavar="NAME[=VALUE]", help="A macro for the compiler.")
@click.option(
    "-I",
    "--include",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where headers are.",
)
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write there, not to stdout.",
)
@click.option(
    "--step-limit",
    type=click.IntRange(min=1),
    default=ExecutionOptions().step_limit,
    show_default=True,
    metavar="N",
    help="Give up on a warp after so many instructions.",
)
def check(
    source: Path,
    notations: tuple[str, ...],
    files: tuple[Path, ...],
    kernel: str | None,
    macros: tuple[str, ...],
    folders: tuple[Path, ...],
    device: str | None,
    form: str,
    output: Path | None,
    step_limit: int,
) -> None:
    """Execute the kernels of SOURCE (.cu or .cubin) and show what each memory instruction costs.

    Every lane of every launch is executed, on this machine: no GPU is needed.
    """
    with show_progress("executing") as progress:
        analysis = analyze(
            source,
            (*notations, *files) or None,
            device=device,
            kernel=kernel,
            macros=macros,
            include_folders=folders,
            options=ExecutionOptions(step_limit=step_limit),
            progress=progress,
        )
    if form == "json":
        text = json.render(analysis)
    else:
        text = terminal.render(analysis, Page() if output is not None else describe_page(sys.stdout))
    write_text(text, output)
