"""Turns two kernel files, or two JSON documents, into a report on what changed and why the time did."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sectorwise.analysis.comparison import compare_analyses
from sectorwise.analysis.reading import read_analysis
from sectorwise.analyze import analyze
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.progress import show_progress
from sectorwise.cli.settings import read_settings
from sectorwise.errors import ArgumentError
from sectorwise.report import comparison as report
from sectorwise.report.html import compare as html
from sectorwise.report.page import Page

if TYPE_CHECKING:
    from collections.abc import Callable

    from sectorwise.analysis.comparison import Comparison
    from sectorwise.analysis.data import Analysis

_MOST_KERNELS: Final = 2

_FORMATS: Final[dict[str, Callable[[Comparison, Page], str]]] = {
    "terminal": report.render,
    "html": lambda comparison, _: html.render(comparison),
    "json": lambda comparison, _: report.render_json(comparison),
}


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option(
    "--launch",
    "notations",
    multiple=True,
    metavar="TEXT",
    help="For sources: a launch of both, `kernel<<<grid, block>>>(f32[1024], n=5)`; may be repeated.",
)
@click.option(
    "--launches",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="For sources: a file with launches of both. Without either, the comments of each source count.",
)
@click.option(
    "--kernel",
    "kernels",
    multiple=True,
    metavar="NAME",
    help="Only the launches of this kernel; given twice, that of BEFORE and that of AFTER.",
)
@click.option("--device", metavar="NAME", help="For sources: as of `sectorwise check`.")
@click.option("-D", "--define", "macros", multiple=True, metavar="NAME[=VALUE]", help="For sources: a macro.")
@click.option(
    "-I", "--include", "folders", multiple=True, type=click.Path(path_type=Path), metavar="DIR", help="For sources."
)
@options.form(_FORMATS)
@options.output
def compare(
    before: Path,
    after: Path,
    notations: tuple[str, ...],
    files: tuple[Path, ...],
    kernels: tuple[str, ...],
    device: str | None,
    macros: tuple[str, ...],
    folders: tuple[Path, ...],
    form: str,
    output: Path | None,
) -> None:
    """Show what changed from BEFORE to AFTER, line by line, and what each cause has to do with the change of time.

    Each is a source or cubin, which is executed, or a document that `check --format json` wrote (with --caches, so
    that it has an estimate of the time).
    """
    if len(kernels) > _MOST_KERNELS:
        raise ArgumentError(f"--kernel can be given twice, for BEFORE and AFTER; got {', '.join(kernels)}")
    given: tuple[str | Path, ...] = (*notations, *files)
    device = device or read_settings(Path.cwd()).device

    def load(path: Path, kernel: str | None) -> Analysis:
        if path.suffix == ".json":
            return _keep_kernel(read_analysis(path), kernel, path)
        with show_progress("executing") as progress:
            return analyze(
                path,
                given or None,
                device=device,
                kernel=kernel,
                macros=macros,
                include_folders=folders,
                keep_outputs="small",
                follow_caches=True,
                progress=progress,
            )

    first, second = (kernels[0], kernels[-1]) if kernels else (None, None)
    comparison = compare_analyses(load(before, first), load(after, second))
    write_text(_FORMATS[form](comparison, describe_page(sys.stdout) if output is None else Page()), output)


def _keep_kernel(analysis: Analysis, kernel: str | None, path: Path) -> Analysis:
    kept = tuple(each for each in analysis.kernels if kernel in {None, each.name})
    if not kept:
        names = ", ".join(dict.fromkeys(each.name for each in analysis.kernels)) or "none"
        raise ArgumentError(f"{path}: there is no kernel {kernel!r}; there are: {names}")
    return replace(analysis, kernels=kept)
