"""Turns PTX into a cubin with nvJitLink, which holds ptxas as a library: no toolkit, no driver, no GPU."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sectorwise.errors import ArgumentError, CompileError, MissingToolError
from sectorwise.installed import find_installed

_DISTRIBUTIONS = ("nvidia-nvjitlink", "nvidia-nvjitlink-cu12")
_LIBRARY = re.compile(r"libnvJitLink\.so\.\d+$|nvJitLink_\d+_0\.dll$")
_INSTALL = "pip install 'sectorwise[cuda]' brings it, no CUDA toolkit and no GPU are needed"
_INPUT_PTX = 2  # nvJitLink.h, nvJitLinkInputType
_UNKNOWN_TARGET = re.compile(r"ERROR_UN(?:SUPPORTED|RECOGNIZED)_ARCH")
_TOO_OLD = re.compile(r"Unsupported \.version (?P<given>[\d.]+); current version is '(?P<known>[\d.]+)'")
_PLACE = re.compile(r"ptxas application ptx input, line (?P<line>\d+); *")
_CLOSING_LINE = re.compile(
    r"^(?:ERROR NVJITLINK_\w+: .*|ptxas fatal +: Ptx assembly aborted due to errors)\n?", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class NvJitLink:
    """The library that was found and loaded; `version` such as `nvJitLink 13.0`, `build` tells builds apart."""

    library: ctypes.CDLL
    version: str
    build: str


@cache
def load_nvjitlink() -> NvJitLink:
    """Find nvJitLink (the PyPI package first, then the system's) and load it.

    Raises:
        MissingToolError: it is not installed or cannot be loaded.
    """
    for distribution in _DISTRIBUTIONS:
        package = find_installed(distribution)
        if package is None:
            continue
        for file in (file for file in package.files if _LIBRARY.search(file)):
            return _describe(package.folder / file, package.build)
    found = ctypes.util.find_library("nvJitLink")
    if found is None:
        message = f"nvJitLink, which assembles PTX, is not installed: {_INSTALL}"
        raise MissingToolError(message)
    return _describe(Path(found), found)


def assemble_ptx(linker: NvJitLink, ptx: str, origin: str, target: str, options: tuple[str, ...] = ()) -> bytes:
    """Assemble PTX to a cubin for `target`, with the source lines that the PTX names; `origin` names it in errors.

    Raises:
        ArgumentError: nvJitLink does not know the target.
        CompileError: it is no sound PTX for this target, or newer than this nvJitLink; the text has the PTX's lines.
    """
    handle = ctypes.c_void_p()
    spelled = [f"-arch={target}", "-lineinfo", *options]
    given = (ctypes.c_char_p * len(spelled))(*[option.encode() for option in spelled])
    status = linker.library.nvJitLinkCreate(ctypes.byref(handle), len(spelled), given)
    try:
        content = ptx.encode() + b"\0"
        if not status:
            status = linker.library.nvJitLinkAddData(handle, _INPUT_PTX, content, len(content), b"input.ptx")
        if not status:
            status = linker.library.nvJitLinkComplete(handle)
        if status:
            raise _explain(linker, _read_log(linker, handle) if handle.value else f"status {status}", origin, target)
        return _read_cubin(linker, handle)
    finally:
        linker.library.nvJitLinkDestroy(ctypes.byref(handle))


def _describe(path: Path, build: str) -> NvJitLink:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        message = f"nvJitLink at {path} cannot be loaded ({error}): {_INSTALL}"
        raise MissingToolError(message) from None
    major, minor = ctypes.c_uint(), ctypes.c_uint()
    library.nvJitLinkVersion(ctypes.byref(major), ctypes.byref(minor))
    return NvJitLink(library, f"nvJitLink {major.value}.{minor.value}", build)


def _explain(linker: NvJitLink, log: str, origin: str, target: str) -> ArgumentError | CompileError:
    if _UNKNOWN_TARGET.search(log):
        return ArgumentError(f"{linker.version} cannot assemble for {target}: {log.strip()}")
    if too_old := _TOO_OLD.search(log):
        newest = linker.version.split()[-1]
        return CompileError(
            f"{origin} is PTX {too_old['given']}, and {linker.version} reads PTX up to {too_old['known']}: "
            f"a newer one is needed, pip install 'nvidia-nvjitlink>{newest}'"
        )
    text = _CLOSING_LINE.sub("", _PLACE.sub(lambda place: f"{origin}:{place['line']}: ", log)).strip()
    return CompileError(text if text.startswith(origin) else f"{origin}: {text}")


def _read_log(linker: NvJitLink, handle: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    linker.library.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value + 1)
    linker.library.nvJitLinkGetErrorLog(handle, content)
    return content.value.decode(errors="replace")


def _read_cubin(linker: NvJitLink, handle: ctypes.c_void_p) -> bytes:
    size = ctypes.c_size_t()
    linker.library.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value)
    linker.library.nvJitLinkGetLinkedCubin(handle, content)
    return content.raw
