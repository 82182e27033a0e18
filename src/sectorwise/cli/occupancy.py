"""Turns the size of a block, or a source and register limits, into a report on how many blocks an SM holds."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sectorwise.cli import options
from sectorwise.cli.output import describe_page, write_text
from sectorwise.cli.sizes import parse_size
from sectorwise.device import load_device
from sectorwise.errors import ArgumentError, LaunchError
from sectorwise.launch.formatting import format_launch
from sectorwise.model.occupancy import check_grid
from sectorwise.model.occupancy import occupancy as find_occupancy
from sectorwise.model.waves import count_waves
from sectorwise.report import occupancy as report

if TYPE_CHECKING:
    from sectorwise.launch.config import LaunchConfig


def parse_numbers(text: str | None, option: str = "--maxrregcount", example: str = "32,48,64") -> tuple[int, ...]:
    """Whole numbers with commas between, in the order given: `32,48,64`; none for None."""
    if text is None:
        return ()
    if not re.fullmatch(r"\d+(\s*,\s*\d+)*", text.strip()):
        raise ArgumentError(f"{option}: {text!r} is no list of numbers such as {example}")
    if len(max(text.split(","), key=len)) > 18:
        raise ArgumentError(f"{option}: a number of more than 18 digits")
    return tuple(int(part) for part in text.split(","))


@click.command()
@click.argument("source", type=click.Path(path_type=Path), required=False)
@click.option("--threads", type=int, metavar="N", help="Threads a block.")
@click.option("--registers", type=int, metavar="N", help="Registers a thread.")
@click.option("--shared", default="0", metavar="SIZE", help="Shared memory a block, static plus dynamic.")
@click.option("--barriers", type=int, default=0, metavar="N", help="Named barriers a block.")
@click.option("--cluster", type=int, default=1, metavar="N", help="Blocks a cluster, from 9.0 on.")
@click.option("--blocks", type=int, metavar="N", help="Blocks of the grid: shows its waves too.")
@click.option(
    "--carveout", type=int, metavar="PERCENT", help="The launch's preferred carve-out.  [default: the driver's]"
)
@click.option("--device", default="h200", show_default=True, metavar="NAME", help="As of `sectorwise check`.")
@click.option("--maxrregcount", "limits", metavar="N,N,...", help="Recompile SOURCE with these limits.")
@click.option(
    "--min-blocks",
    metavar="N,N,...",
    help="Recompile SOURCE with __launch_bounds__(threads of the block, N).",
)
@click.option("--launch", metavar="TEXT", help="With SOURCE: execute this launch and count.  [default: its comment's]")
@click.option("--kernel", metavar="NAME", help="With SOURCE: the kernel, if there are several.")
@options.define
@options.form(["terminal", "json"])
@options.output
def occupancy(
    source: Path | None,
    threads: int | None,
    registers: int | None,
    shared: str,
    barriers: int,
    cluster: int,
    blocks: int | None,
    carveout: int | None,
    device: str,
    limits: str | None,
    min_blocks: str | None,
    launch: str | None,
    kernel: str | None,
    macros: tuple[str, ...],
    form: str,
    output: Path | None,
) -> None:
    """Show how many blocks an SM holds, what limits them, and what would change it.

    Give --threads and --registers; or a SOURCE (.cu) with --maxrregcount or --min-blocks, to see registers, spills and
    occupancy under each limit, with the counts of a --launch, or of the launch in the source's comments.
    """
    _refuse_unused(source, threads, launch)
    page = describe_page(sys.stdout)
    if source is not None:
        asked = (None, *parse_numbers(limits)), parse_numbers(min_blocks, "--min-blocks", "1,2,4")
        text = _try_limits(source, threads, parse_size(shared, "--shared"), device, asked, launch, kernel, macros, form)
    elif threads is None or registers is None:
        raise click.UsageError("give --threads and --registers, or a source file with --maxrregcount or --min-blocks")
    else:
        found = find_occupancy(
            threads,
            registers,
            parse_size(shared, "--shared"),
            device=device,
            barriers=barriers,
            cluster_blocks=cluster,
            preferred_carveout_pct=carveout,
        )
        spec = load_device(device)
        waves = None if blocks is None else count_waves(check_grid(blocks, cluster), found.blocks_per_sm, spec.sm_count)
        text = report.render_json(found, waves) if form == "json" else report.render(found, spec, page, waves)
    write_text(text, output)


def _find_commented(source: Path, kernel: str | None) -> LaunchConfig:
    """The one launch that the comments of a source name, of this kernel if it is given."""
    from sectorwise.analyze import gather_launches

    try:
        found = gather_launches(source, None, kernel)
    except LaunchError as error:
        raise click.UsageError(f"with a source file, give --threads, or a --launch to execute: {error}") from None
    if len(found) > 1:
        raise click.UsageError(
            f"{source} names {len(found)} launches: choose a kernel with one launch by --kernel, or give a --launch:"
            + "".join(f"\n  {format_launch(each)}" for each in found)
        )
    return found[0]


def _refuse_unused(source: Path | None, threads: int | None, launch: str | None) -> None:
    """Options that this form of the command would leave unread."""
    if source is None:
        _refuse("limits", "min_blocks", "launch", "kernel", "macros", why="needs a SOURCE")
        return
    _refuse("registers", "barriers", "cluster", "blocks", "carveout", why="is not for a SOURCE")
    if launch is not None:
        _refuse("threads", "shared", "kernel", why="is not for a --launch, which says so")
    elif threads is None:
        _refuse("shared", why="goes with --threads: a launch says so itself")


def _refuse(*names: str, why: str) -> None:
    context = click.get_current_context()
    given = {click.core.ParameterSource.COMMANDLINE, click.core.ParameterSource.ENVIRONMENT}
    for parameter in context.command.params:
        if parameter.name in names and context.get_parameter_source(parameter.name) in given:
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


def _try_limits(
    source: Path,
    threads: int | None,
    shared: int,
    device: str,
    asked: tuple[tuple[int | None, ...], tuple[int, ...]],
    launch: str | None,
    kernel: str | None,
    macros: tuple[str, ...],
    form: str,
) -> str:
    from sectorwise.sweep.registers import try_register_limits, try_register_limits_of_block

    limits, min_blocks = asked
    config = _find_commented(source, kernel) if launch is None and threads is None else launch
    if config is not None:
        trials = try_register_limits(source, limits, config, min_blocks=min_blocks, device=device, macros=macros)
    else:
        trials = try_register_limits_of_block(
            source,
            limits,
            threads or 0,
            min_blocks=min_blocks,
            kernel=kernel,
            dynamic_shared_bytes=shared,
            device=device,
            macros=macros,
        )
    if form == "json":
        return report.render_trials_json(trials)
    return report.render_trials(trials, load_device(device), describe_page(sys.stdout))
