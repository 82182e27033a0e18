"""Turns the command line into one of its commands, and errors into text on stderr and exit code 2."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from typing import Final

import click

from sectorwise.cli.thrift import load_with_one_thread, search_garbage_seldom
from sectorwise.errors import SectorwiseError
from sectorwise.version import __version__

COMMANDS: Final = {
    "access": "what one access of a warp costs, from an index expression or a layout, with a picture",
    "advise": "which layout of records, mapping of a matrix-vector product or transpose is fastest, and why",
    "calibrate": "measure the GPU of this machine, into a device file",
    "check": "what each memory instruction of a kernel costs, line by line",
    "compare": "what changed between two kernels or two JSON documents, and why the time did",
    "explain": "the manual page of a rule",
    "kernels": "the package's own kernels on this machine's GPU: `kernels bench` times them",
    "learn": "questions and exercises on all of this, graded by the models",
    "occupancy": "how many blocks of a kernel an SM holds, what limits them, and what would change it",
    "rules": "the rules that kernels are checked by",
    "run": "a Python script, whose Triton, Numba and CuPy kernels are analysed instead of run",
    "table": "the tables that people memorise, computed for a device",
    "tile": "block, warp and thread tiles of a matrix product, ranked, and why the next larger loses",
    "verify": "what a GPU counts for a kernel, beside what was predicted",
}
"""Each command is the function of its own name in the module of its own name; it is imported when it is called."""

_RUN_OTHERS: Final = frozenset({"kernels", "run"})
"""These share their process with code of others, which may want all threads of NumPy."""

EXIT_ERROR: Final = 2
EXIT_INTERRUPTED: Final = 130
EXIT_BROKEN_PIPE: Final = 141


class _CommandGroup(click.Group):
    """Commands by name, imported one at a time: `sectorwise --help` must not wait for NumPy."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        if cmd_name not in _RUN_OTHERS:
            # Commands load NumPy when they come to need it.
            ctx.with_resource(load_with_one_thread())
        command = getattr(importlib.import_module(f"sectorwise.cli.{cmd_name}"), cmd_name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        if name not in COMMANDS and near and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="sectorwise", message="%(prog)s %(version)s")
def cli() -> None:
    """What a GPU kernel costs in memory, counted by executing its SASS: no GPU needed."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command line, that of this process if none is given.

    Exits with 0 when done, 1 where findings fail the run, 2 on an error.
    """
    try:
        with search_garbage_seldom(is_last=arguments is None):
            code = cli.main(arguments, prog_name="sectorwise", standalone_mode=False)
        if code:  # click gives back what a command exits with
            sys.exit(code)
    except SectorwiseError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(EXIT_ERROR)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except MemoryError as error:
        click.echo(f"error: not enough memory on this machine{f': {error}' if str(error) else ''}", err=True)
        sys.exit(EXIT_ERROR)
    except BrokenPipeError:
        # Who read the report has seen enough; Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_BROKEN_PIPE)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(EXIT_INTERRUPTED)
