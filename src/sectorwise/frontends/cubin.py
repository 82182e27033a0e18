"""Turns a cubin file into a compilation: it is taken as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.errors import ArgumentError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline

if TYPE_CHECKING:
    from pathlib import Path

_FATBIN_MAGIC = 0xBA55ED50.to_bytes(4, "little")
_ELF_MAGIC = b"\x7fELF"
_MACHINE_CUDA = 190
_MACHINE_AT = 18


@dataclass(frozen=True, slots=True)
class CubinFrontend:
    """Reads `.cubin` files; a host library or fat binary that is named so is refused with what to do instead."""

    name: str = "cubin"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name ends in .cubin."""
        return path.suffix == ".cubin"

    def outline(self, path: Path) -> Outline:
        """Return nothing: a cubin has no comments, and its kernels are read later."""
        del path
        return Outline(None)

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Read the file; nothing is compiled, so a request for macros or options is refused.

        Raises:
            ArgumentError: the file cannot be read, is another kind of binary, or compile options were given.
        """
        if request.macros or request.options or request.include_folders:
            message = f"{path} is compiled already: macros, include folders and compiler options have no effect on it"
            raise ArgumentError(message)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            message = f"there is no file {path}"
            raise ArgumentError(message) from None
        except OSError as error:
            message = f"{path} cannot be read: {error.strerror}"
            raise ArgumentError(message) from None
        _refuse_other_binaries(path, data)
        return Compilation(cubin=data, target=None, compiler="none (a cubin was given)")


def _refuse_other_binaries(path: Path, data: bytes) -> None:
    take_out = "cuobjdump -xelf all FILE takes the cubins out of it; only .cubin and .cu files are read so far"
    if data[:4] == _FATBIN_MAGIC:
        message = f"{path} is a fat binary, not a single cubin: {take_out}"
        raise ArgumentError(message)
    machine = int.from_bytes(data[_MACHINE_AT : _MACHINE_AT + 2], "little")
    if data[:4] == _ELF_MAGIC and machine not in (_MACHINE_CUDA, 0):
        message = f"{path} is a host binary (ELF machine {machine}), not a cubin: {take_out}"
        raise ArgumentError(message)


CUBIN = CubinFrontend()
