"""Turns the first bytes of a file into what it is, whatever its name says."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

HEAD_BYTES: Final = 1 << 16
"""So many bytes are enough to tell."""

_ELF: Final = b"\x7fELF"
_MACHINE_AT: Final = 18
_MACHINE_CUDA: Final = 190
_FATBIN: Final = 0xBA55ED50.to_bytes(4, "little")
_SHOWN_CHARACTERS: Final = 24


class FileKind(StrEnum):
    """What a file is; the value completes `it is ...`."""

    CUBIN = "a cubin"
    HOST = "an ELF file for the host"
    FATBIN = "a fat binary"
    ARCHIVE = "an archive"
    WINDOWS = "a file of Windows"
    ZIP = "a zip archive, as wheels are"
    PTX = "PTX"
    TEXT = "text"
    EMPTY = "empty"
    OTHER = "of no kind that is known here"


NAMED: Final = {
    FileKind.CUBIN: ".cubin",
    FileKind.HOST: ".so",
    FileKind.FATBIN: ".fatbin",
    FileKind.ARCHIVE: ".a",
    FileKind.WINDOWS: ".dll",
    FileKind.ZIP: ".whl",
    FileKind.PTX: ".ptx",
}
"""How the name of a file of each kind has to end, so that it is read as what it is."""


def identify(head: bytes) -> FileKind:
    """Return the kind of a file from its first bytes (`HEAD_BYTES` of them at most are looked at)."""
    head = head[:HEAD_BYTES]
    if not head:
        return FileKind.EMPTY
    if head.startswith(_ELF):
        machine = int.from_bytes(head[_MACHINE_AT : _MACHINE_AT + 2], "little")
        return FileKind.CUBIN if machine == _MACHINE_CUDA else FileKind.HOST
    for magic, kind in (
        (_FATBIN, FileKind.FATBIN),
        (b"!<arch>\n", FileKind.ARCHIVE),
        (b"MZ", FileKind.WINDOWS),
        (b"PK\x03\x04", FileKind.ZIP),
    ):
        if head.startswith(magic):
            return kind
    text = _read_text(head)
    if text is None:
        return FileKind.OTHER
    is_ptx = any(line.lstrip().startswith(".version") for line in text.splitlines())
    return FileKind.PTX if is_ptx else FileKind.TEXT


def describe_kind(head: bytes) -> str:
    """Return what a file is, for an error: `PTX, which is read if ...`, `text that begins with 'hello'`."""
    kind = identify(head)
    if kind in NAMED:
        return f"{kind.value}, which is read if its name ends in {NAMED[kind]}"
    text = _read_text(head[:HEAD_BYTES]) if kind is FileKind.TEXT else None
    if text is not None:
        first = next((line.strip() for line in text.splitlines() if line.strip()), "")
        return f"text that begins with {first[:_SHOWN_CHARACTERS]!r}"
    if kind is FileKind.OTHER:
        return f"{kind.value}: it begins with the bytes {head[:8].hex(' ')}"
    return kind.value


def _read_text(head: bytes) -> str | None:
    """The bytes as text, None where they are none; what is cut at the end of `head` does not matter."""
    if b"\0" in head:
        return None
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and error.end == len(head)
        return head[: error.start].decode("utf-8-sig") if is_cut else None
