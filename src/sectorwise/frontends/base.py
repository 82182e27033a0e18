"""Turns nothing by itself: the agreement between front ends and those who ask them to compile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """What to compile for.

    `target` such as `sm_90`, `macros` (`N` or `N=4`), folders of headers, the names of the kernels wanted as a person
    writes them (`transpose<32>` makes that instance), and options passed on as they are.
    """

    target: str
    macros: tuple[str, ...] = ()
    include_folders: tuple[Path, ...] = ()
    kernels: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Compilation:
    """What a front end made: the cubin, and what only the source could tell.

    `target` is None where the cubin alone knows it. `compiler` names it with its version. `source_file` is the name
    under which the debug information knows the source, `source_text` its text. `kernel_names` maps the names that were
    asked for to symbols of the cubin; `parameter_types` maps a kernel's symbol or plain name to the types of its
    parameters as spelled (`const float *`), where the front end knows them.
    """

    cubin: bytes
    target: str | None
    compiler: str
    options: tuple[str, ...] = ()
    source_file: str | None = None
    source_text: str | None = None
    kernel_names: dict[str, str] = field(default_factory=dict)
    parameter_types: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a file tells without being compiled.

    `text` is where comments with launches may stand, None for a binary. `kernels` maps the kernels that it defines to
    the spelled types of their parameters, as far as they are known.
    """

    text: str | None
    kernels: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Frontend(Protocol):
    """A front end: it says which files it takes, and compiles one."""

    @property
    def name(self) -> str:
        """The word for it in reports and errors, such as `cuda`."""
        ...

    def accepts(self, path: Path) -> bool:
        """Whether a file of this name is for this front end; the file is not opened."""
        ...

    def outline(self, path: Path) -> Outline:
        """Say what the file tells without being compiled.

        Raises:
            ArgumentError: the file cannot be read.
        """
        ...

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Compile the file.

        Raises:
            CompileError: the source is at fault; the text is the compiler's, with the file's own lines.
            MissingToolError: the compiler is not installed; the text says how to get it.
            ArgumentError: the file cannot be read, or an option of the request does not fit it.
        """
        ...
