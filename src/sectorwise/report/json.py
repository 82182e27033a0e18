"""Turns an analysis into the JSON document that other programs read; `analysis.schema.json` beside it is its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final

from sectorwise.binary.ir import Location

if TYPE_CHECKING:
    from sectorwise.analysis.data import Analysis
    from sectorwise.analysis.profile import Profile

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

_NUMBERS: Final = re.compile(r"\[\n\s+((?:-?\d+|null)(?:,\n\s+(?:-?\d+|null))*)\n\s+\]")
"""A list of whole numbers, each on a line of its own; no string holds a line break, so that none looks like one."""


def render(analysis: Analysis | Profile) -> str:
    """The document as text, indented, with a final newline; the same analysis gives the same bytes."""
    return write_document(to_plain(analysis))


def write_document(document: Plain) -> str:
    """A document as text, indented, lists of whole numbers on one line; with a final newline."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"


def to_plain(value: object) -> Plain:
    """Dictionaries, lists, numbers and strings in place of frozen data, without the fields kept out of documents."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case Location():
            return {**_place(value), "inlined_at": [_place(caller) for caller in value.inlined_at]}
        case list() | tuple():
            return [to_plain(item) for item in value]
        case Mapping():
            return {str(key): to_plain(item) for key, item in value.items()}
        case _ if is_dataclass(value):
            shown = [part for part in fields(value) if part.metadata.get("document", True)]
            return {part.metadata.get("name", part.name): to_plain(getattr(value, part.name)) for part in shown}
        case _:
            message = f"{type(value).__name__} has no place in the document"
            raise TypeError(message)


def _place(location: Location) -> dict[str, Plain]:
    return {"file": location.file, "line": location.line}
