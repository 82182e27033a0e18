"""Options that several commands share, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sectorwise.machine.execution import ExecutionOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


launches: Final = click.option(
    "--launches",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="A file with launches; may be repeated. Without either, the comments `// sectorwise: launch ...` count.",
)
kernel: Final = click.option("--kernel", metavar="NAME", help="Only the launches of this kernel.")
define: Final = click.option(
    "-D", "--define", "macros", multiple=True, metavar="NAME[=VALUE]", help="A macro for the compiler."
)
include: Final = click.option(
    "-I",
    "--include",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where headers are.",
)
output: Final = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write there, not to stdout.",
)
step_limit: Final = click.option(
    "--step-limit",
    type=click.IntRange(min=1),
    default=ExecutionOptions().step_limit,
    show_default=True,
    metavar="N",
    help="Give up on a warp after so many instructions.",
)


def form(names: Iterable[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--format`, one of `names`; a terminal's unless asked otherwise."""
    return click.option(
        "--format", "form", type=click.Choice(list(names)), default="terminal", show_default=True, help="What to write."
    )
