"""Turns a cubin file into a compilation: it is taken as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.binary.elf import read_kernel_names
from sectorwise.binary.kinds import FileKind, describe_kind, identify
from sectorwise.binary.names import read_kernel_name
from sectorwise.errors import ArgumentError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.source import read_bytes

if TYPE_CHECKING:
    from pathlib import Path

_ELF = b"\x7fELF"
_MACHINE = slice(18, 20)


@dataclass(frozen=True, slots=True)
class CubinFrontend:
    """Reads `.cubin` files; a host library or fat binary that is named so is refused with what to do instead."""

    name: str = "cubin"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name ends in .cubin."""
        return path.suffix == ".cubin"

    def outline(self, path: Path) -> Outline:
        """Return the kernels, those whose symbols tell the types of their parameters with them.

        Raises:
            ArgumentError: the file cannot be read, or is of another kind.
            CorruptBinaryError: it contradicts itself; the text has the byte offset.
        """
        names = read_kernel_names(_read_file(path), path.as_posix())
        return Outline(None, {name: read_kernel_name(name).parameter_types or () for name in names})

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Read the file; nothing is compiled, so a request for macros or options is refused.

        Raises:
            ArgumentError: the file cannot be read, is another kind of binary, or compile options were given.
        """
        if request.macros or request.options or request.include_folders:
            message = f"{path} is compiled already: macros, include folders and compiler options have no effect on it"
            raise ArgumentError(message)
        data = _read_file(path)
        return Compilation(cubin=data, target=None, compiler="none (a cubin was given)")


def _read_file(path: Path) -> bytes:
    """The bytes of a cubin, or of what may be the remains of one."""
    data = read_bytes(path)
    if _is_another_kind(data):
        raise ArgumentError(f"{path} is no cubin: it is {describe_kind(data)}")
    return data


def _is_another_kind(data: bytes) -> bool:
    """Whether this was never a cubin; of a damaged one the reader says where."""
    if _ELF.startswith(data[:4]):  # fewer bytes than four, too
        return identify(data) is FileKind.HOST and any(data[_MACHINE])
    return identify(data) is not FileKind.OTHER


CUBIN = CubinFrontend()
