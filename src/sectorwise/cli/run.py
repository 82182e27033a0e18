"""Turns a Python script into reports on the kernels that it launches, which are analysed instead of run."""

from __future__ import annotations

import importlib.util
import re
import runpy
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sectorwise.analyze import DEFAULT_DEVICE
from sectorwise.binary.kinds import HEAD_BYTES, NAMED, describe_kind, identify
from sectorwise.capture.session import FRAMEWORKS, capture
from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.settings import read_settings
from sectorwise.errors import ArgumentError, CaptureError
from sectorwise.frontends.choose import list_frontends
from sectorwise.report import json
from sectorwise.report.captured import render_captured
from sectorwise.report.page import Page
from sectorwise.source import read_source

if TYPE_CHECKING:
    from sectorwise.analysis.captured import Captured

EXIT_SCRIPT_RAISED: Final = 1
_OPTIONS: Final = frozenset(("--device", "--config", "--format", "-o", "--output"))


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--device", metavar="NAME", help=f"The GPU to answer for.  [default: {DEFAULT_DEVICE}]")
@click.option(
    "--config",
    type=click.IntRange(min=0),
    metavar="N",
    help="Of autotuned Triton kernels this configuration, from 0 on.  [default: the first that pruning leaves]",
)
@options.form(("terminal", "json"))
@options.output
@click.argument("script", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def run(
    script: Path, arguments: tuple[str, ...], device: str | None, config: int | None, form: str, output: Path | None
) -> None:
    """Run SCRIPT with its ARGUMENTS; each Triton, Numba or CuPy kernel that it launches is analysed instead of run.

    Arrays keep what they held before a launch. What needs a GPU and has no replacement stops the script with its name.
    If the script raises, its traceback is shown, after what was analysed until then, and the exit code is 1.
    """
    text = _read_script(script)
    named = _find_frameworks(text)
    raised: BaseException | None = None
    with capture(
        device=device or read_settings(Path.cwd()).device or DEFAULT_DEVICE, config=config, frameworks=named or None
    ) as captured:
        raised = _run_script(script, arguments)
    mine = [each for each in arguments if each.partition("=")[0] in _OPTIONS]
    if mine and not captured.launches:
        click.echo(f"{' '.join(mine)} went to the script: options of `run` come before it", err=True)
    if form != "json" or captured.analysis is not None:
        write_text(_render(captured, form, output), output)
    if form == "json":
        # The document has what was analysed alone.
        for launch in captured.launches:
            if launch.because is not None:
                click.echo(f"{launch.kernel} was skipped: {launch.because}", err=True)
    if isinstance(raised, CaptureError):
        raise raised
    if isinstance(raised, SystemExit):
        if not isinstance(raised.code, int):
            click.echo(raised.code, err=True)
        raise click.exceptions.Exit(raised.code if isinstance(raised.code, int) else EXIT_SCRIPT_RAISED)
    if raised is not None:
        click.echo("".join(traceback.format_exception(raised)).rstrip(), err=True)
        raise click.exceptions.Exit(EXIT_SCRIPT_RAISED)
    if form == "json" and captured.analysis is None:
        what = "each launch was skipped" if captured.launches else f"it launched nothing by {_list_frameworks(named)}"
        raise CaptureError(f"{script}: there is nothing to write a document of: {what}")


def _list_frameworks(named: tuple[str, ...]) -> str:
    return ", ".join(named or FRAMEWORKS)


def _read_script(script: Path) -> str:
    """The text of a Python script; what is none is refused, with what reads it instead."""
    suffix = script.suffix.lower()
    if suffix == ".ipynb":
        raise ArgumentError(f"{script} is a notebook: put `with sw.capture() as captured:` around its launches")
    if any(each.accepts(script) for each in list_frontends() if not each.accepts(Path("script.py"))):
        raise ArgumentError(f"{script} is no Python script: `sectorwise check {script}` is for such files")
    head = script.read_bytes()[:HEAD_BYTES] if script.is_file() else b""
    if identify(head) in NAMED:
        raise ArgumentError(f"{script} is no Python script: it is {describe_kind(head)}")
    return read_source(script).text


def _find_frameworks(text: str) -> tuple[str, ...]:
    """The frameworks that a script names; what is imported with PyTorch may bring kernels of Triton along."""
    named = {name for name in FRAMEWORKS if re.search(rf"\b{name}\b", text)}
    if "torch" in named and importlib.util.find_spec("triton") is not None:
        named.add("triton")
    return tuple(name for name in FRAMEWORKS if name in named)


def _run_script(script: Path, arguments: tuple[str, ...]) -> BaseException | None:
    """Run it as `python script arguments` would, and return what it raised."""
    before, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as error:
        return error if error.code not in {None, 0} else None
    except Exception as error:  # noqa: BLE001 - the person's own script may raise anything
        return _drop_own_frames(error, script)
    finally:
        sys.argv, sys.path[:] = before, path
    return None


def _drop_own_frames(error: Exception, script: Path) -> Exception:
    """Leave of the traceback what begins in the script."""
    trace = error.__traceback__
    while trace is not None and Path(trace.tb_frame.f_code.co_filename) != script:
        trace = trace.tb_next
    return error.with_traceback(trace) if trace is not None else error


def _render(captured: Captured, form: str, output: Path | None) -> str:
    if form == "json" and captured.analysis is not None:
        return json.render(captured.analysis)
    return render_captured(captured, describe_page(sys.stdout) if output is None else Page())
