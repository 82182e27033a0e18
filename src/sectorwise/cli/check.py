"""Turns a kernel file and its launches into a report on what each memory instruction costs."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sectorwise.analyze import DEFAULT_DEVICE, analyze
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.progress import show_progress
from sectorwise.cli.settings import FAIL_ON, read_settings
from sectorwise.cli.sizes import parse_size
from sectorwise.cli.verdict import describe_better, judge
from sectorwise.frontends.choose import choose_frontend
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.report.page import Page

if TYPE_CHECKING:
    from sectorwise.analysis.baseline import Baseline, Comparison
    from sectorwise.analysis.data import Analysis

EXIT_FINDINGS: Final = 1

_FORMATS: Final = {"terminal": "terminal", "html": "html.page", "json": "json", "sarif": "sarif", "github": "github"}
"""Formats, and the modules whose `render` writes them."""


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--launch",
    "notations",
    multiple=True,
    metavar="TEXT",
    help="A launch, `kernel<<<grid, block>>>(f32[1024], n=5)`; may be repeated.",
)
@options.launches
@click.option(
    "--config",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of an autotuned Triton kernel only this configuration, from 0 on.  [default: each, and a table]",
)
@options.kernel
@click.option(
    "--device",
    metavar="NAME",
    help="The GPU to answer for: h200, h100-sxm, a100-80-sxm, rtx4090, b200, ...  "
    f"[default: {DEFAULT_DEVICE}, or what a cubin is for]",
)
@options.define
@options.include
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: `SW2,SW301`; may be repeated.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules; may be repeated.")
@click.option(
    "--remedies",
    is_flag=True,
    help="Look for changes that cost less and change no value, by compiling and executing them; takes longer.",
)
@click.option(
    "--fail-on",
    type=click.Choice(FAIL_ON),
    help="Exit with 1 on findings of this severity or worse.  [default: never; with a baseline: warning]",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Fail only on what is new or got worse since this file.",
)
@click.option(
    "--write-baseline",
    "baseline_to_write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the findings to such a file.",
)
@options.form(_FORMATS)
@options.output
@click.option(
    "--caches",
    is_flag=True,
    help="Follow L1, L2 and DRAM too: modelled traffic and time, about a second a launch; html does anyway.",
)
@click.option(
    "--cache",
    type=click.Choice(("cold", "warm", "chain")),
    help="What the L2 holds before a launch: nothing, what the same launch left, or what launches before it left of "
    "buffers that have the same name there; implies --caches.  [default: cold]",
)
@click.option(
    "--all-blocks",
    is_flag=True,
    help="Run every block that no proof covers, however long it takes: nothing is sampled.",
)
@click.option(
    "--memory",
    metavar="SIZE",
    help="What running may take of memory, 512M or 4G; the counts are the same.  [default: what it needs]",
)
@options.step_limit
def check(
    source: Path,
    notations: tuple[str, ...],
    files: tuple[Path, ...],
    config: int | None,
    kernel: str | None,
    macros: tuple[str, ...],
    folders: tuple[Path, ...],
    device: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    remedies: bool,
    fail_on: str | None,
    baseline: Path | None,
    baseline_to_write: Path | None,
    form: str,
    output: Path | None,
    caches: bool,
    cache: str | None,
    all_blocks: bool,
    memory: str | None,
    step_limit: int,
) -> None:
    """Execute the kernels of SOURCE and show what each memory instruction costs.

    SOURCE is CUDA C++ (.cu), Python (.py, or .py::kernel), PTX, a cubin, or a library or wheel, whose kernels are
    listed first.

    Every lane of every launch is executed, on this machine: no GPU is needed. Launches stand in comments of SOURCE,

    \b
        // sectorwise: launch copy<<<4, 256>>>(f32[1024], f32[1024], n=1024)

    or in the options --launch and --launches. Without any, a launch to fill in is printed for each kernel.

    A report of Nsight Compute (.ncu-rep) as SOURCE is shown in the same form: what it counted. With launches given, the
    code in it is executed, as that of a cubin is.
    """  # noqa: D301 - click wants the character, so that it keeps the line
    frontend = choose_frontend(source).name
    if frontend == "library" and not notations and not files and kernel is None:
        write_text(_list_library(source, form), output)
        return
    if frontend == "report" and not (notations or files):
        from sectorwise.cli.profile import refuse_options, show_report

        refuse_options(remedies=remedies, caches=caches)
        show_report(source, form, output, kernel)
        return
    settings = read_settings(Path.cwd())
    chosen, ignored = split_codes(select) or settings.select, split_codes(ignore) or settings.ignore
    accepted = baseline or settings.baseline
    known = None if accepted is None or accepted == baseline_to_write else _read_known(accepted)
    with show_progress("executing") as progress:
        analysis = analyze(
            source,
            (*notations, *files) or None,
            device=device or settings.device,
            config=config,
            kernel=kernel,
            macros=macros,
            include_folders=folders,
            options=choose_options(step_limit, memory, all_blocks=all_blocks),
            select=chosen,
            ignore=ignored,
            remedies=remedies,
            follow_caches=caches or cache is not None or form == "html",
            warm=cache == "warm",
            chain=cache == "chain",
            progress=progress,
        )
    write_text(_render(analysis, form, describe_page(sys.stdout) if output is None else Page()), output)
    if baseline_to_write is not None:
        from sectorwise.analysis.baseline import write_baseline

        write_text(write_baseline(analysis), baseline_to_write)
    comparison = None if known is None else _compare(analysis, known, chosen, ignored)
    if comparison is not None and comparison.better and baseline_to_write is None:
        click.echo(describe_better(comparison, str(accepted)), err=True)
    reasons = judge(analysis, fail_on or settings.fail_on or ("never" if known is None else "warning"), comparison)
    if reasons:
        click.echo("\n".join(["failed:", *(f"  {reason}" for reason in reasons)]), err=True)
        raise click.exceptions.Exit(EXIT_FINDINGS)


def _read_known(path: Path) -> Baseline:
    """What was accepted; most runs have nothing of the kind, and do not wait for what reads it."""
    from sectorwise.analysis.baseline import read_baseline

    return read_baseline(path)


def _compare(analysis: Analysis, known: Baseline, selected: tuple[str, ...], ignored: tuple[str, ...]) -> Comparison:
    from sectorwise.analysis.baseline import compare
    from sectorwise.rules.selection import choose_rules

    return compare(analysis, known, {rule.code for rule in choose_rules(selected, ignored)})


def choose_options(step_limit: int, memory: str | None, *, all_blocks: bool) -> ExecutionOptions:
    """How to run: of the memory allowed half is for what buffers hold, half for the state of what runs."""
    options = ExecutionOptions(step_limit=step_limit)
    if all_blocks:
        options = replace(options, sample_above=None)
    if memory is None:
        return options
    half = max(1, parse_size(memory, "--memory") // 2)
    return replace(options, memory_bytes=half, budget_bytes=min(options.budget_bytes, half))


def _render(analysis: Analysis, form: str, page: Page) -> str:
    """Only the terminal's report hangs on the page that it is shown on."""
    render = importlib.import_module(f"sectorwise.report.{_FORMATS[form]}").render
    text: str = render(analysis, page) if form == "terminal" else render(analysis)
    return text


def _list_library(source: Path, form: str) -> str:
    from sectorwise.frontends.library import list_kernels
    from sectorwise.report.kernels import render as render_kernels
    from sectorwise.report.kernels import render_json

    kernels = list_kernels(source)
    return (render_json if form == "json" else render_kernels)(kernels, source.as_posix())


def split_codes(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The codes of `SW2,SW301` and further texts."""
    return tuple(code.strip() for text in texts for code in text.split(",") if code.strip())
