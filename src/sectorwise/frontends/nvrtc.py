"""Turns CUDA C++ text into a cubin with NVRTC, through the library itself: no toolkit, no driver, no GPU."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sectorwise.errors import CompileError, MissingToolError
from sectorwise.installed import find_installed

_DISTRIBUTIONS = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")
_LIBRARY = re.compile(r"libnvrtc\.so\.\d+$|nvrtc64_\d+_0\.dll$")
_BUILTINS = re.compile(r"libnvrtc-builtins\.so\.[\d.]+$|nvrtc-builtins64_\d+\.dll$")
_INSTALL = "pip install 'sectorwise[cuda]' brings it, no CUDA toolkit and no GPU are needed"


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """The compiler library that was found and loaded; `version` such as `NVRTC 13.0`, `build` tells builds apart."""

    library: ctypes.CDLL
    version: str
    build: str


@dataclass(frozen=True, slots=True)
class Program:
    """One translation unit.

    The name that debug information and messages give it, its text, headers by name, options, and name expressions whose
    kernels must be made (`transpose<32>`).
    """

    name: str
    text: str
    headers: tuple[tuple[str, str], ...]
    options: tuple[str, ...]
    expressions: tuple[str, ...]


@cache
def load_nvrtc() -> Nvrtc:
    """Find NVRTC (the PyPI package first, then the system's) and load it.

    Raises:
        MissingToolError: it is not installed or cannot be loaded.
    """
    for distribution in _DISTRIBUTIONS:
        package = find_installed(distribution)
        if package is None:
            continue
        paths = [package.folder / file for file in package.files]
        for builtins in (path for path in paths if _BUILTINS.search(path.name)):
            # NVRTC opens its builtins by bare name: what is loaded already is found, wherever it lies.
            _load(builtins)
        for library in (path for path in paths if _LIBRARY.search(path.name)):
            return _describe(_load(library), package.build)
    found = ctypes.util.find_library("nvrtc")
    if found is None:
        message = f"NVRTC, which compiles CUDA C++, is not installed: {_INSTALL}"
        raise MissingToolError(message)
    return _describe(_load(Path(found)), found)


def compile_program(nvrtc: Nvrtc, program: Program) -> tuple[bytes, dict[str, str]]:
    """Compile to a cubin; also return the symbol that each name expression became.

    Raises:
        CompileError: the program does not compile; the text is the compiler's log.
    """
    handle = ctypes.c_void_p()
    texts = _strings([text for _, text in program.headers])
    names = _strings([name for name, _ in program.headers])
    created = nvrtc.library.nvrtcCreateProgram(
        ctypes.byref(handle), program.text.encode(), program.name.encode(), len(program.headers), texts, names
    )
    if created:
        raise CompileError(_explain(nvrtc, created))
    try:
        for expression in program.expressions:
            nvrtc.library.nvrtcAddNameExpression(handle, expression.encode())
        status = nvrtc.library.nvrtcCompileProgram(handle, len(program.options), _strings(list(program.options)))
        if status:
            log = _read_sized(nvrtc, handle, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
            raise CompileError(log or _explain(nvrtc, status))
        cubin = _read_sized(nvrtc, handle, "CUBIN")
        lowered = {expression: _lower(nvrtc, handle, expression) for expression in program.expressions}
    finally:
        nvrtc.library.nvrtcDestroyProgram(ctypes.byref(handle))
    return cubin, lowered


def _load(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        message = f"NVRTC at {path} cannot be loaded ({error}): {_INSTALL}"
        raise MissingToolError(message) from None


def _describe(library: ctypes.CDLL, build: str) -> Nvrtc:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return Nvrtc(library, f"NVRTC {major.value}.{minor.value}", build)


def _strings(values: list[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(values))(*[value.encode() for value in values])


def _explain(nvrtc: Nvrtc, status: int) -> str:
    said: bytes = nvrtc.library.nvrtcGetErrorString(status)
    return said.decode(errors="replace")


def _read_sized(nvrtc: Nvrtc, handle: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(nvrtc.library, f"nvrtcGet{what}Size")(handle, ctypes.byref(size))
    content = ctypes.create_string_buffer(size.value)
    getattr(nvrtc.library, f"nvrtcGet{what}")(handle, content)
    return content.raw


def _lower(nvrtc: Nvrtc, handle: ctypes.c_void_p, expression: str) -> str:
    lowered = ctypes.c_char_p()
    status = nvrtc.library.nvrtcGetLoweredName(handle, expression.encode(), ctypes.byref(lowered))
    if status or lowered.value is None:
        raise CompileError(f"the kernel {expression} cannot be named: {_explain(nvrtc, status)}")
    return lowered.value.decode()
