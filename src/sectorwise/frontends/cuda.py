"""Turns a CUDA C++ file into a cubin, straight through NVRTC, with what the source alone can tell of its kernels."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from sectorwise.cache import make_key, read_entry, write_entry
from sectorwise.errors import ArgumentError, CompileError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.frontends.headers import STANDARD_HEADERS
from sectorwise.frontends.host_code import drop_host_code, has_host_code
from sectorwise.frontends.includes import find_includes
from sectorwise.frontends.nvrtc import Nvrtc, Program, compile_program, load_nvrtc
from sectorwise.frontends.signatures import find_parameter_types
from sectorwise.frontends.standard_library import CPP_HEADERS
from sectorwise.installed import find_installed
from sectorwise.source import read_source

if TYPE_CHECKING:
    from pathlib import Path

_AREA = "cubins"
_SUFFIXES = frozenset({".cu", ".cuh"})
_HEADER_DISTRIBUTIONS = ("nvidia-cuda-runtime", "nvidia-cuda-crt", "nvidia-cuda-cccl")
_MISSING_HEADER = re.compile(r'could not open source file "([^"]+)"|cannot open source file "([^"]+)"')
_TEMPLATE = "<"
_MACRO = re.compile(r"[A-Za-z_]\w*(\([^)]*\))?($|=)")
# nvcc includes cuda_runtime.h before the first line, and with it these: files rely on INFINITY, uint32_t and uint.
_ALWAYS_INCLUDED = ("math.h", "stdint.h", "sys/types.h")
_KEY_VERSION = "2"
_MOST_MISSING_HEADERS = 32


@dataclass(frozen=True, slots=True)
class CudaFrontend:
    """Compiles `.cu` files: kernels that are defined there, instances of templates that are asked for by name.

    Host code in them is left out: what no kernel needs is not compiled (`host_code`).
    """

    name: str = "cuda"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name ends in .cu or .cuh."""
        return path.suffix in _SUFFIXES

    def outline(self, path: Path) -> Outline:
        """Return the text of the file, and the kernels that it defines."""
        text = read_source(path).text
        return Outline(text, find_parameter_types(text))

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Compile the file for `request.target`.

        Folders of headers are the file's own, those of the request, then those of the installed CUDA packages. The
        result is cached by all that it depends on: text, the person's own headers, options, versions.

        Raises:
            CompileError: the compiler's message, with the file's own lines.
            MissingToolError: NVRTC is not installed.
            ArgumentError: the file cannot be read, or the target is unknown to this NVRTC.

        Where instructions are of one architecture alone (wgmma), the target becomes that one: sm_90a for sm_90.
        """
        return self.compile_text(path, read_source(path).text, request)

    def compile_text(self, path: Path, text: str, request: CompileRequest) -> Compilation:
        """Compile a text as if it were what the file at `path` holds; otherwise as `compile`."""
        nvrtc = load_nvrtc()
        unit = _make_unit(path, text, request)
        program = unit.program
        key = _make_key(nvrtc, program, path, request)
        stored = _read_stored(key) if key else None
        if stored is None:
            try:
                stored = _compile(nvrtc, unit, path, request.target)
            except CompileError as error:
                if not _wants_own_instructions(request.target, str(error)):
                    raise
                return self.compile_text(path, text, replace(request, target=f"{request.target}a"))
            if key:
                _store(key, *stored)
        cubin, kernel_names = stored
        return Compilation(
            cubin=cubin,
            target=request.target,
            compiler=nvrtc.version,
            options=(f"-arch={request.target}", *(f"-D{macro}" for macro in request.macros), *request.options),
            source_file=program.name,
            source_text=text,
            kernel_names=kernel_names,
            parameter_types=find_parameter_types(text),
        )


@cache
def find_header_folders() -> tuple[Path, ...]:
    """Return the folders of CUDA headers that the installed packages bring, such as the one with `cuda_fp16.h`."""
    folders: dict[Path, None] = {}
    for distribution in _HEADER_DISTRIBUTIONS:
        package = find_installed(distribution)
        if package is None:
            continue
        for file in package.files:
            # cuda_fp16.h, crt/mma.h and cuda/std/cstdint are the names under which sources include them.
            for landmark in ("include/cuda_fp16.h", "include/crt/mma.h", "include/cccl/cuda/std/cstdint"):
                if file.endswith(landmark):
                    located = package.folder / file
                    folders[located.parents[landmark.count("/") - (2 if "cccl" in landmark else 1)]] = None
    return tuple(folders)


@dataclass(frozen=True, slots=True)
class _Unit:
    """What the compiler gets, and whether host code was left out of it."""

    program: Program
    has_host_code: bool


def _check_request(request: CompileRequest) -> None:
    for folder in request.include_folders:
        if not folder.is_dir():
            raise ArgumentError(f"--include: there is no folder {folder}")
    for macro in request.macros:
        if not _MACRO.match(macro):
            raise ArgumentError(f"{macro!r} defines no macro; write NAME or NAME=VALUE")


def _make_unit(path: Path, text: str, request: CompileRequest) -> _Unit:
    _check_request(request)
    folders = [path.resolve().parent, *request.include_folders, *find_header_folders()]
    options = (
        f"-arch={request.target}",
        "-lineinfo",
        "-default-device",
        *(f"-include={name}" for name in _ALWAYS_INCLUDED),
        *(f"-I{folder}" for folder in folders),
        *(f"-D{macro}" for macro in request.macros),
        *request.options,
    )
    expressions = tuple(name for name in request.kernels if _TEMPLATE in name)
    device, headers = _leave_out_host_code(path, text, request)
    headers = (*headers, *STANDARD_HEADERS, *CPP_HEADERS)
    return _Unit(Program(str(path.resolve()), device or text, headers, options, expressions), device is not None)


def _leave_out_host_code(
    path: Path, text: str, request: CompileRequest
) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Return the text without its host code, None where there is none, and the person's headers that had some too."""
    includes = find_includes(text.encode(), path.resolve().parent, request.include_folders)
    headers = {file: content.decode(errors="replace") for file, content in includes.headers}
    with_host_code = {file for file, content in headers.items() if has_host_code(content)}
    if not with_host_code and not has_host_code(text):
        return None, ()
    own = str(path.resolve())
    device = drop_host_code({own: text, **headers})
    changed = [
        (includes.spelled[file], f'#line 1 "{file}"\n{device[file]}') for file in headers if file in with_host_code
    ]
    return device[own], tuple(changed)


def _make_key(nvrtc: Nvrtc, program: Program, path: Path, request: CompileRequest) -> str | None:
    includes = find_includes(program.text.encode(), path.resolve().parent, request.include_folders)
    if not includes.complete:
        return None
    headers = [part for name, content in includes.headers for part in (name, content)]
    versions = [nvrtc.version, nvrtc.build, *_header_versions()]
    standard = [text for _, text in program.headers]
    return make_key(
        _KEY_VERSION,
        json.dumps([program.name, program.options, program.expressions, versions, standard]),
        program.text,
        *headers,
    )


@cache
def _header_versions() -> tuple[str, ...]:
    found = (find_installed(distribution) for distribution in _HEADER_DISTRIBUTIONS)
    return tuple(package.build for package in found if package is not None)


def _read_stored(key: str) -> tuple[bytes, dict[str, str]] | None:
    stored = read_entry(_AREA, key)
    if stored is None:
        return None
    head, _, cubin = stored.partition(b"\n")
    return cubin, json.loads(head)


def _store(key: str, cubin: bytes, kernel_names: dict[str, str]) -> None:
    write_entry(_AREA, key, json.dumps(kernel_names).encode() + b"\n" + cubin)


def _wants_own_instructions(target: str, log: str) -> bool:
    """Whether a target was refused instructions that it has under another name: from sm_90 on there is an sm_90a."""
    number = target.removeprefix("sm_")
    return number.isdigit() and int(number) >= 90 and f"not supported on .target '{target}'" in log


def _compile(nvrtc: Nvrtc, unit: _Unit, path: Path, target: str) -> tuple[bytes, dict[str, str]]:
    """Compile; in files with host code a header that is nowhere is taken as empty, as it may be for the host."""
    program, missing = unit.program, list[str]()
    while True:
        empty = tuple((name, "") for name in missing)
        try:
            return compile_program(nvrtc, replace(program, headers=(*program.headers, *empty)))
        except CompileError as error:
            log = str(error).replace(program.name, str(path))
        found = _MISSING_HEADER.search(log)
        header = None if found is None else found[1] or found[2]
        if not unit.has_host_code or header is None or header in missing or len(missing) >= _MOST_MISSING_HEADERS:
            break
        missing.append(header)
    if "--gpu-architecture" in log:
        raise ArgumentError(f"{nvrtc.version} cannot compile for {target}: {log}")
    raise CompileError("\n".join([log, *_hints(unit, header, missing)]))


def _hints(unit: _Unit, header: str | None, taken_as_empty: list[str]) -> list[str]:
    hints = []
    if header is not None:
        hints.append(
            f"hint: {header} is neither beside the file nor in a folder of --include; "
            "pip install 'sectorwise[cuda]' brings CUDA's own headers (cuda_fp16.h, mma.h, cuda/std/...)"
        )
    if taken_as_empty:
        hints.append(f"hint: these headers were not found, and taken as empty: {', '.join(taken_as_empty)}")
    if unit.has_host_code:
        hints.append(
            "hint: the file has host code, which NVRTC does not compile, and what no kernel needs was left out; where "
            "that fails, put host code between #ifndef __CUDACC_RTC__ and #endif, or check what nvcc -cubin makes"
        )
    return hints


CUDA = CudaFrontend()
