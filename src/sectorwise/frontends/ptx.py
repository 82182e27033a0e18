"""Turns a PTX file into a cubin for the device's target, and its `.param` lists into what a launch has to pass."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sectorwise.binary.kinds import describe_kind
from sectorwise.cache import make_key, read_entry, write_entry
from sectorwise.errors import ArgumentError
from sectorwise.frontends.base import Compilation, CompileRequest, Outline
from sectorwise.frontends.ptxas import assemble, choose_assembler
from sectorwise.source import read_source

if TYPE_CHECKING:
    from pathlib import Path

_AREA = "cubins"
_KEY_VERSION = "ptx 2"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_VERSION = re.compile(rb"^[^\S\n]*\.version\b", re.MULTILINE)
_ENTRY = re.compile(r"\.entry\s+(?P<name>[\w$%]+)\s*(?:\((?P<parameters>[^)]*)\))?")
_PARAMETER = re.compile(r"\.param(?P<words>(?:\s+\.\w+(?:\s+\d+)?)*)\s+[\w$%]+\s*(?P<array>\[\s*\d+\s*\])?")
_TARGET = re.compile(r"^\s*\.target\s+(?P<target>sm_\d+)(?P<suffix>[af]?)", re.MULTILINE)
_KNOWN_TYPES = {".f32": "float", ".f64": "double"}
"""The types of PTX that tell the type of the source; `.u32` is written for signed numbers too, `.u64` for pointers."""


@dataclass(frozen=True, slots=True)
class PtxFrontend:
    """Assembles `.ptx` files."""

    name: str = "ptx"

    def accepts(self, path: Path) -> bool:
        """Whether the file's name ends in .ptx."""
        return path.suffix == ".ptx"

    def outline(self, path: Path) -> Outline:
        """Return the text and the entries of the file, each parameter as PTX types it.

        Raises:
            ArgumentError: the file cannot be read, or is no PTX.
        """
        text = _read_ptx(path)
        return Outline(text, find_entries(text))

    def compile(self, path: Path, request: CompileRequest) -> Compilation:
        """Assemble the file for `request.target`, or for the target with `a` or `f` that the file insists on.

        Raises:
            CompileError: the assembler's message, with the file's own lines; or the PTX is newer than the assembler.
            MissingToolError: no assembler is installed.
            ArgumentError: the file cannot be read, or is no PTX, or macros or folders of headers were given.
        """
        if request.macros or request.include_folders:
            message = f"{path} is compiled to PTX already: macros and include folders have no effect on it"
            raise ArgumentError(message)
        text = _read_ptx(path)
        target = choose_target(text, request.target)
        assembler = choose_assembler(text)
        key = make_key(_KEY_VERSION, json.dumps([assembler.version, assembler.build, target, request.options]), text)
        cubin = read_entry(_AREA, key)
        if cubin is None:
            cubin = assemble(assembler, correct_lines(text), str(path), target, request.options)
            write_entry(_AREA, key, cubin)
        return Compilation(
            cubin=cubin,
            target=target,
            compiler=assembler.version,
            options=(f"-arch={target}", *request.options),
            parameter_types=find_entries(text),
        )


def _read_ptx(path: Path) -> str:
    """The text; a file that does not say which version of PTX it is, as all have to, is of another kind."""
    if path.is_file():
        content = path.read_bytes()
        if _VERSION.search(content) is None:
            raise ArgumentError(f"{path} is no PTX, which says its .version: it is {describe_kind(content)}")
    return read_source(path).text


def find_entries(ptx: str) -> dict[str, tuple[str, ...]]:
    """Return the parameters of each `.entry`: `float`, `void *`, or the type of PTX (`.u32`, `.b8[24]`).

    PTX ISA, kernel function parameters: `.ptr` marks an address; without it a `.u64` may be one or be a number.
    """
    bare = _COMMENT.sub(" ", ptx)
    return {
        found["name"]: tuple(_spell(parameter) for parameter in _PARAMETER.finditer(found["parameters"] or ""))
        for found in _ENTRY.finditer(bare)
    }


def choose_target(ptx: str, wanted: str) -> str:
    """Return `sm_90a` for PTX of that target where sm_90 is wanted: it assembles for no other; else what is wanted."""
    found = _TARGET.search(ptx)
    if found is not None and found["suffix"] and found["target"] == wanted:
        return found["target"] + found["suffix"]
    return wanted


def correct_lines(ptx: str) -> str:
    """Return PTX whose inline assembly has one place, that of its first line; other lines stay where they are.

    LLVM counts the lines of inline assembly on, from that of the call: Triton writes a load as four such lines.
    """
    lines = []
    inside, seen = False, False
    for line in ptx.split("\n"):
        word = line.strip()
        if word in {"// begin inline asm", "// end inline asm"}:
            inside, seen = word == "// begin inline asm", False
        is_place = inside and word.startswith(".loc")
        lines.append("" if is_place and seen else line)
        seen = seen or is_place
    return "\n".join(lines)


def _spell(parameter: re.Match[str]) -> str:
    words = [word for word in parameter["words"].split() if word.startswith(".")]
    if ".ptr" in words:
        return "void *"
    kind = next((word for word in words if word != ".align"), ".b8")
    return _KNOWN_TYPES.get(kind, kind) + "".join((parameter["array"] or "").split())


PTX = PtxFrontend()
