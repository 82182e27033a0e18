"""Turns the files that debug information names into the names and texts that reports show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sectorwise.errors import SectorwiseError
from sectorwise.source import read_source, shorten_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sectorwise.analysis.data import KernelAnalysis
    from sectorwise.binary.ir import Location
    from sectorwise.frontends.base import Compilation


def name_file(file: str, compilation: Compilation, source: Path) -> str:
    """The name of a file as a person would write it: the source as it was given, others relative to where we are.

    A cubin remembers the path at which its source once lay: where that is gone, the file beside the cubin is meant.
    """
    if file == compilation.source_file:
        return source.as_posix()
    beside = source.parent / Path(file).name
    return beside.as_posix() if not Path(file).is_file() and beside.is_file() else shorten_path(file)


def read_texts(kernels: Iterable[KernelAnalysis], compilation: Compilation, source: Path) -> dict[str, str]:
    """Text of each file that a location of the analysis names, by that name; what cannot be read is left out."""
    texts = {}
    for file in sorted({location.file for location in _list_locations(kernels)}):
        text = compilation.source_text if file == source.as_posix() else None
        text = _read_if_there(Path(file)) if text is None else text
        if text is not None:
            texts[file] = text
    return texts


def _list_locations(kernels: Iterable[KernelAnalysis]) -> Iterator[Location]:
    for kernel in kernels:
        found = [part.location for part in kernel.sites]
        found += [part.location for part in kernel.copies]
        found += [part.location for part in kernel.faults]
        found += [part.location for part in kernel.hangs]
        found += [part.location for part in kernel.limitations]
        for location in found:
            if location is not None:
                yield location
                yield from location.inlined_at


def _read_if_there(path: Path) -> str | None:
    if not path.is_file():
        return None
    try:
        return read_source(path).text
    except SectorwiseError:
        return None
