"""Turns the disassembler's listing into sections of statements, each with its offset, label targets and location."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from sectorwise.binary.lines import Frame, join_frames, read_frame

if TYPE_CHECKING:
    from sectorwise.binary.ir import Location

_STATEMENT = re.compile(r"\s*/\*(?P<offset>[0-9a-f]{4,})\*/\s+(?P<text>[^;]*?)\s*;?\s*$")
_NOTE = re.compile(r"\s*\(\*(?P<note>.*?)\*\)\s*")
_LABEL = re.compile(r"(?P<name>[^\s:]+):\s*$")
_SECTION = re.compile(r'\s*\.section\s+(?P<name>[^,\s]+),"(?P<flags>[^"]*)"')
_TARGET = re.compile(r"\s*\.target\s+(?P<target>\S+)")
_BRANCH_TARGETS = "BRANCH_TARGETS"


class Statement(Struct, frozen=True):
    """One instruction as printed, without the disassembler's notes; `branch_targets` are the labels of a BRX."""

    offset: int
    text: str
    branch_targets: tuple[str, ...]
    location: Location | None


class CodeSection(Struct, frozen=True):
    """The code of one section, in address order; `labels` maps labels and function names to offsets."""

    name: str
    statements: tuple[Statement, ...]
    labels: dict[str, int]


class Listing(Struct, frozen=True):
    """All code of a cubin as printed, and the target that the disassembler names."""

    target: str | None
    sections: dict[str, CodeSection]


def read_listing(text: str) -> Listing:
    """Read the whole listing of a cubin; rows that are neither code nor labels nor places are passed over."""
    target: str | None = None
    sections: dict[str, CodeSection] = {}
    rows: list[str] = []
    name: str | None = None
    for row in text.splitlines():
        if found := _SECTION.match(row):
            if name is not None:
                sections[name] = _read_section(name, rows)
            name = found["name"].strip('"') if "x" in found["flags"] else None
            rows = []
        elif name is not None:
            rows.append(row)
        elif found := _TARGET.match(row):
            target = found["target"]
    if name is not None:
        sections[name] = _read_section(name, rows)
    return Listing(target, sections)


def _read_section(name: str, rows: list[str]) -> CodeSection:
    statements: list[Statement] = []
    labels: dict[str, int] = {}
    waiting: list[str] = []
    frames: list[Frame] = []
    location: Location | None = None
    for row in rows:
        if frame := read_frame(row):
            if frames and not frames[-1].is_inlined:
                frames.clear()
            frames.append(frame)
        elif found := _STATEMENT.match(row):
            if frames:
                location = join_frames(frames)
                frames.clear()
            statement = _read_statement(found, location)
            labels.update(dict.fromkeys(waiting, statement.offset))
            waiting.clear()
            statements.append(statement)
        elif found := _LABEL.match(row):
            waiting.append(found["name"])
            if not found["name"].startswith(".L"):
                # A function starts: what follows it has its own annotations, or comes from a library without any.
                location = None
    return CodeSection(name, tuple(statements), labels)


def _read_statement(found: re.Match[str], location: Location | None) -> Statement:
    text = found["text"]
    targets: tuple[str, ...] = ()
    if "(*" in text:
        for note in _NOTE.findall(text):
            words = note.strip('"').split()
            if words and words[0] == _BRANCH_TARGETS:
                targets = tuple(label for label in "".join(words[1:]).split(",") if label)
        text = _NOTE.sub("", text)
    return Statement(int(found["offset"], 16), " ".join(text.split()), targets, location)
