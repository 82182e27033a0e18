"""Turns a cubin into the disassembler's listing, with source lines and chains of inlining."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from msgspec import Struct

from sectorwise.cache import make_key, read_entry, write_entry
from sectorwise.errors import CorruptBinaryError, MissingToolError
from sectorwise.installed import find_installed

_OPTIONS = ("-gi", "-c")
_NO_DATAFLOW = "-ndf"
_DISTRIBUTION = "nvidia-cuda-nvdisasm"
_NAMES = frozenset({"nvdisasm", "nvdisasm.exe"})
_TIMEOUT_SECONDS = 120
_AREA = "disassembly"
_LARGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""It fills 57 MB of tables before it reads anything: a tenth of its time goes into small pages of memory."""

_INDIRECT = re.compile(r"^\s*/\*[0-9a-f]+\*/.*\b(?:BRX|BRXU|JMX|JMXU)\b", re.MULTILINE)
"""Branches whose places only the disassembler's analysis of dataflow tells."""


class Disassembler(Struct, frozen=True):
    """The disassembler that was found: its executable, and what tells this version of it from others."""

    path: Path
    version: str


def find_disassembler() -> Disassembler:
    """Find nvdisasm: first the one of the PyPI package, then the one on the PATH.

    Raises:
        MissingToolError: there is none; the text says how to install it.
    """
    package = find_installed(_DISTRIBUTION)
    if package is not None:
        for path in (package.folder / file for file in package.files):
            if path.name in _NAMES and path.is_file():
                return Disassembler(path, package.build)
    found = shutil.which("nvdisasm")
    if found is not None:
        path = Path(found)
        status = path.stat()
        return Disassembler(path, f"{path} {status.st_size} {status.st_mtime_ns}")
    message = "nvdisasm is not installed: pip install 'sectorwise[cuda]' brings it, no CUDA toolkit is needed"
    raise MissingToolError(message)


def disassemble(data: bytes, origin: str, code_offset: int = 0, functions: tuple[int, ...] = ()) -> str:
    """Return nvdisasm's text listing of a cubin, from the cache where it was made before.

    `origin` names the cubin in errors; `code_offset` is where its code starts in the file; `functions` are the indices
    of the symbols of the functions that are wanted, all where there are none.

    Raises:
        MissingToolError: no disassembler is installed.
        CorruptBinaryError: the disassembler refuses the cubin, crashes on it, or does not end.
    """
    tool = find_disassembler()
    options = (*_OPTIONS, "-fun", ",".join(map(str, functions))) if functions else _OPTIONS
    key = make_key(data, tool.version, *options)
    stored = read_entry(_AREA, key)
    if stored is not None:
        return stored.decode()
    # Its analysis of dataflow takes a quarter of its time, and tells nothing but where indirect branches go.
    listing = _run(tool, data, (*options, _NO_DATAFLOW), origin, code_offset)
    if _INDIRECT.search(listing):
        listing = _run(tool, data, options, origin, code_offset)
    write_entry(_AREA, key, listing.encode())
    return listing


def _run(tool: Disassembler, data: bytes, options: tuple[str, ...], origin: str, code_offset: int) -> str:
    with tempfile.TemporaryDirectory(prefix="sectorwise-") as folder:
        image = Path(folder) / "image.cubin"
        image.write_bytes(data)
        try:
            done = subprocess.run(  # noqa: S603 - the tool that was found, on a file of our own, no shell
                [str(tool.path), *options, str(image)],
                capture_output=True,
                timeout=_TIMEOUT_SECONDS,
                check=False,
                env={**_LARGE_PAGES, **os.environ},
            )
        except subprocess.TimeoutExpired:
            raise _refused(origin, code_offset, f"it did not end within {_TIMEOUT_SECONDS} s") from None
        except OSError as error:
            message = f"nvdisasm at {tool.path} cannot be run: {error.strerror}"
            raise MissingToolError(message) from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().replace(str(image), origin).splitlines()
        raise _refused(origin, code_offset, said[0] if said else f"it ended with status {done.returncode}")
    return done.stdout.decode(errors="replace")


def _refused(origin: str, code_offset: int, why: str) -> CorruptBinaryError:
    message = f"{origin}: the disassembler does not accept the code at byte 0x{code_offset:x}: {why}"
    return CorruptBinaryError(message)
