"""Turns a report of Nsight Compute (`.ncu-rep`) into the machine code that was profiled: reports carry whole cubins.

So a report is a source like a cubin, and what is executed is the very build that was counted. The cubins lie in the
report as they are (seen in reports of Nsight Compute 2022.3 to 2025.3); each says in its header where it ends.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.binary.elf import MACHINE_CUDA, read_elf
from sectorwise.binary.names import read_kernel_name
from sectorwise.errors import ArgumentError, CorruptBinaryError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.source import read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPORT_SUFFIX: Final = ".ncu-rep"
_MAGIC: Final = b"\x7fELF\x02\x01"
_HEADER: Final = struct.Struct("<18xH12xQQ6xHHHH")
"""Of an ELF file's header: machine, places of program and section headers, and of both their sizes and numbers."""


@dataclass(frozen=True, slots=True)
class ReportFrontend:
    """Takes the cubin with the kernels that are launched out of a report."""

    name: str = "report"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name ends in .ncu-rep."""
        return path.suffix == REPORT_SUFFIX

    def outline(self, path: Path) -> Outline:
        """Return nothing: a report has no comments, and its kernels are read later."""
        del path
        return Outline(None)

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Find the cubin of the wanted kernels; nothing is compiled, so a request for macros or options is refused.

        Raises:
            ArgumentError: the file cannot be read, has no code of these kernels, or compile options were given.
        """
        if request.macros or request.options or request.include_folders:
            message = f"{path} has compiled code: macros, include folders and compiler options have no effect on it"
            raise ArgumentError(message)
        cubins = dict.fromkeys(find_cubins(read_bytes(path)))
        if not cubins:
            raise ArgumentError(f"{path} holds no machine code: verify its source, or the cubin that was profiled")
        found = [cubin for cubin in cubins if _has_all(cubin, request.kernels)]
        if not found:
            names = ", ".join(dict.fromkeys(name for cubin in cubins for name in _list_names(cubin)))
            wanted = ", ".join(request.kernels)
            raise ArgumentError(f"no module of {path} has {wanted}; its kernels are {names}")
        return Compilation(cubin=found[0], target=None, compiler="none (the code of a report)")


def find_cubins(data: bytes) -> Iterator[bytes]:
    """Yield every cubin that lies in the bytes as it is and whole, in their order."""
    place = data.find(_MAGIC)
    while place >= 0:
        cubin = _cut_out(data, place)
        if cubin is not None:
            yield cubin
        place = data.find(_MAGIC, place + (len(cubin) if cubin is not None else 1))


def _cut_out(data: bytes, place: int) -> bytes | None:
    """The cubin at that place up to the end of its headers' tables, which come last; None where there is none."""
    if place + _HEADER.size > len(data):
        return None
    machine, programs, sections, program_bytes, program_count, section_bytes, section_count = _HEADER.unpack_from(
        data, place
    )
    size_bytes = max(programs + program_bytes * program_count, sections + section_bytes * section_count)
    if machine != MACHINE_CUDA or place + size_bytes > len(data):
        return None
    return data[place : place + size_bytes]


def _list_names(cubin: bytes) -> tuple[str, ...]:
    """Symbols of the cubin's kernels; none where it cannot be read."""
    try:
        image = read_elf(cubin, "a cubin of the report")
    except CorruptBinaryError:
        return ()
    return tuple(symbol.name for symbol in image.symbols if symbol.is_kernel)


def _has_all(cubin: bytes, wanted: tuple[str, ...]) -> bool:
    """Whether a module has each kernel that launches name: by symbol, as written, or without namespace."""
    spelled = {form for name in _list_names(cubin) for form in _spell(name)}
    return all(name.replace(" ", "") in spelled for name in wanted)


def _spell(symbol: str) -> Iterator[str]:
    readable = read_kernel_name(symbol).readable.replace(" ", "")
    yield symbol
    yield readable
    yield readable.partition("<")[0].rpartition("::")[2]


REPORT = ReportFrontend()
