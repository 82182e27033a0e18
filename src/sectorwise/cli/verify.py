"""Turns a kernel file, its launches and a GPU or a profiler's report into predicted numbers beside counted ones."""

from __future__ import annotations

import json as plain_json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sectorwise.analyze import analyze
from sectorwise.binary.names import read_kernel_name
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.progress import show_progress
from sectorwise.errors import ArgumentError, LaunchError
from sectorwise.frontends.choose import choose_frontend
from sectorwise.frontends.report import REPORT_SUFFIX
from sectorwise.launch.comments import find_launches
from sectorwise.machine.execution import ExecutionOptions
from sectorwise.report.json import to_plain
from sectorwise.report.page import Page
from sectorwise.report.verification import render
from sectorwise.verify.reader import read_apart
from sectorwise.verify.run import verify_here, verify_report
from sectorwise.verify.sketches import sketch_launches

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis
    from sectorwise.analysis.profile import Profile
    from sectorwise.analysis.verification import Verification
    from sectorwise.launch.config import LaunchConfig

EXIT_DIFFERENT: Final = 1
_MOST_SKETCHES: Final = 20
_FORMATS: Final = ("terminal", "json")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--launch", "notations", multiple=True, metavar="TEXT", help="A launch, as for check; may be repeated.")
@options.launches
@options.kernel
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.ncu-rep",
    help="Compare with this report of Nsight Compute instead of counting here: no GPU is needed.",
)
@click.option("--outputs", is_flag=True, help="Compare what the launches leave in their buffers, too.")
@click.option("--device", metavar="NAME", help="The GPU to predict for.  [default: the one that counts]")
@options.define
@options.include
@click.option(
    "--ncu", type=click.Path(path_type=Path), metavar="FILE", help="Nsight Compute's command, if not on the PATH."
)
@click.option(
    "--keep-report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.ncu-rep",
    help="Leave the profiler's report there.",
)
@options.form(_FORMATS)
@options.output
@options.step_limit
def verify(
    source: Path,
    notations: tuple[str, ...],
    files: tuple[Path, ...],
    kernel: str | None,
    report: Path | None,
    outputs: bool,
    device: str | None,
    macros: tuple[str, ...],
    folders: tuple[Path, ...],
    ncu: Path | None,
    keep_report: Path | None,
    form: str,
    output: Path | None,
    step_limit: int,
) -> None:
    """Lay the counters of a GPU beside those that were predicted for SOURCE (.cu, .py, .ptx, .cubin or .ncu-rep).

    The launches run on the GPU of this machine under Nsight Compute, or are looked for in a report that was made
    elsewhere (--report). A report as SOURCE is compared with itself: the code in it is executed. Exits with 1 where a
    number that is exact differs from a counter without noise, with 2 where nothing could be compared.
    """
    if report is None and source.suffix == REPORT_SUFFIX:
        report = source
    if report is not None and (outputs or ncu is not None or keep_report is not None):
        raise ArgumentError(
            "--outputs, --ncu and --keep-report are for launches on this machine; a report has counters"
        )
    if keep_report is not None:
        _check_kept(keep_report)
    launches: tuple[str | Path | LaunchConfig, ...] = (*notations, *files)
    notes: tuple[str, ...] = ()
    if report is not None and not launches:
        launches, notes = find_commented_launches(source, report, kernel)

    def run(identifier: str) -> Analysis:
        with show_progress("executing") as progress:
            return analyze(
                source,
                launches or None,
                device=identifier,
                kernel=kernel,
                macros=macros,
                include_folders=folders,
                options=ExecutionOptions(step_limit=step_limit),
                keep_outputs=report is None,
                progress=progress,
            )

    if report is not None:
        result = verify_report(run, report, device)
        result = replace(result, notes=(*notes, *result.notes))
    else:
        result = verify_here(run, device=device, ncu=ncu, keep_report=keep_report, outputs=outputs)
    write_text(_FORMAT[form](result, describe_page(sys.stdout) if output is None else Page()), output)
    if not result.passes:
        raise click.exceptions.Exit(EXIT_DIFFERENT)


def _check_kept(path: Path) -> None:
    """Raise where the profiler would leave its report elsewhere, or nowhere: that would show at the very end."""
    if path.suffix != REPORT_SUFFIX:
        raise ArgumentError(f"--keep-report {path}: the profiler writes files that end in {REPORT_SUFFIX}")
    if not path.parent.is_dir():
        raise ArgumentError(f"--keep-report {path}: there is no folder {path.parent}")


def find_commented_launches(
    source: Path, report: Path, kernel: str | None
) -> tuple[tuple[LaunchConfig, ...], tuple[str, ...]]:
    """The launches that comments tell of texts that belong to the report, and a note of where; none if the source does.

    `kernel` is the one of which launches are wanted; None: of all.

    Raises:
        LaunchError: no comment says what was launched; the text has a line for each kernel and shape to be filled in.
    """
    outline = choose_frontend(source).outline(source)
    if outline.text is not None and find_launches(outline.text, source.name, source.parent):
        return (), ()
    profile = read_apart(report)
    if source == report:
        for name, text in profile.texts.items():
            found = find_profiled_launches(profile, name)
            if found:
                place = "which the report holds" if text.found_at is None else f"read from {text.found_at}"
                return found, (f"the launches are those of the comments of {name}, {place}",)
    sketches = sketch_launches(profile, outline.kernels)
    wanted = [sketch for sketch in sketches if kernel in {None, sketch.partition("<<<")[0]}] or sketches
    written = "".join(f"\n  --launch '{sketch}'" for sketch in wanted[:_MOST_SKETCHES])
    if len(wanted) > _MOST_SKETCHES:
        written += f"\n  and {len(wanted) - _MOST_SKETCHES} more; --kernel NAME shows those of one kernel"
    raise LaunchError(
        f"{report}: say what the launches were given; counts, values and contents of buffers that decide addresses or "
        f"branches are for you to fill in:{written}"
    )


def find_profiled_launches(profile: Profile, name: str) -> tuple[LaunchConfig, ...]:
    """The launches of a text's comments that are of kernels in the report; Python's need their file's front end."""
    if name.endswith(".py"):
        return ()
    kernels = {read_kernel_name(launch.symbol).readable for launch in profile.launches}
    found = find_launches("\n".join(profile.texts[name].lines), name)
    return tuple(launch for launch in found if launch.kernel in kernels)


def render_json(verification: Verification) -> str:
    """The document as text, with whether it passes."""
    plain = to_plain(verification)
    document = {**plain, "passes": verification.passes} if isinstance(plain, dict) else plain
    return plain_json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


_FORMAT: Final = {"terminal": render, "json": lambda verification, _: render_json(verification)}
